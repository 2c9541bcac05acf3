// SPDX-License-Identifier: Apache-2.0
//
// KeepRefill: retention for a process that is to be small. A span that empties in a busy program is kept as
// it is, dirty and next in turn, instead of being given back and had again; how much of that may stay is the
// residency budget:
//
//   free dirty bytes  <=  kFloor + what fell of the recent peak of live bytes          (see hysteresis.hpp)
//
// It is enforced at each crossing and by each tick of the purger. Used by hz8, whose slots seldom wait.
#pragma once

#include "box/retain/hysteresis.hpp"

namespace hz {

struct ResidencyBudget {
  static constexpr std::size_t kFloor = 128 * kKiB;
  static constexpr std::size_t kDefaultPercent = 150;
  static constexpr std::uint64_t kWindowMilliseconds = 100;
  static constexpr std::uint64_t kQuietMilliseconds = 8;
  static constexpr std::size_t kAloneFloor = kFloor;
  static constexpr std::size_t kReturns = 0, kBytesPerMicrosecond = 0;  // the budget stands
};

using KeepRefill = BasicHysteresis<ResidencyBudget>;

}  // namespace hz
