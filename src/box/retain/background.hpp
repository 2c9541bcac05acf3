// SPDX-License-Identifier: Apache-2.0
//
// When a purger is worth its thread, and how it takes its time: an idle process is small within a second, a busy one
// hardly notices it. Asked by heap/purger.hpp once a tick.
#pragma once

#include "base/units.hpp"
#include "box/retain/contract.hpp"

namespace hz {

struct Background {
  static constexpr unsigned kTickMilliseconds = 100;
  static constexpr unsigned kIdleTicks = 2;   // a thread that wakes more often keeps its cache
  static constexpr unsigned kRestTicks = 20;  // then the purger itself sleeps, or ends
  static constexpr unsigned kRetryMilliseconds = 1000;
  static constexpr std::size_t kWorthBytes = 16 * kMiB;

  static constexpr std::size_t kStuckBytes = 12 * kMiB;

  static bool stuck(std::size_t held_bytes, std::size_t live_bytes) {
    return held_bytes > kStuckBytes + live_bytes + live_bytes / 2;
  }
  static bool worth(std::size_t held_bytes) { return held_bytes > kWorthBytes; }
  static bool is_idle(unsigned ticks_unchanged) { return ticks_unchanged >= kIdleTicks; }
  static bool outgrown(std::size_t out_bytes, std::size_t highest) { return out_bytes < highest / 4 * 3; }
  static bool at_rest(unsigned ticks_without_work) { return ticks_without_work >= kRestTicks; }
};

}  // namespace hz
