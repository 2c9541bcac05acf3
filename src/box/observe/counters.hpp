// SPDX-License-Identifier: Apache-2.0
//
// Event counters, one array per thread: a plain addition each.
#pragma once

#include "base/plain_word.hpp"
#include "box/observe/contract.hpp"

namespace hz {

struct Counters {
  struct PerThread {
    OwnerWord<std::uint64_t> of_event[kEvents];
  };

  static constexpr auto words() {
    layout::Words<kEvents> all;
    for (unsigned i = 0; i < kEvents; ++i)
      all[i] = layout::Word(kEventNames[i], offsetof(PerThread, of_event) + i * sizeof(std::uint64_t),
                            sizeof(std::uint64_t));
    return all;
  }

  HZ_INLINE static void count(PerThread& t, Event event, std::uint64_t n) {
    t.of_event[static_cast<unsigned>(event)].add(n);
  }

  static void add_to(const PerThread& t, std::uint64_t* sums) {
    for (unsigned i = 0; i < kEvents; ++i) sums[i] += t.of_event[i].peek();
  }
};

}  // namespace hz
