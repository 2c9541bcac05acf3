// SPDX-License-Identifier: Apache-2.0
//
// An observer that keeps what it counted to itself.
#include "box/observe/contract.hpp"

using namespace hz;

struct Box {
  struct PerThread {};
  static void count(PerThread&, Event, std::uint64_t);
#ifdef HZ_COMPLETE
  static void add_to(const PerThread&, std::uint64_t*);
#endif
};

static_assert(ObserveContract<Box>);
