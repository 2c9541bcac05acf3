// SPDX-License-Identifier: Apache-2.0
//
// Counts nothing, in no space: the other half of an A/B that asks what counting costs.
#pragma once

#include "box/observe/contract.hpp"

namespace hz {

struct NoCounters {
  struct PerThread {};
  static void count(PerThread&, Event, std::uint64_t) {}
  static void add_to(const PerThread&, std::uint64_t*) {}
};

}  // namespace hz
