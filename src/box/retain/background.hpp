// SPDX-License-Identifier: Apache-2.0
//
// When a purger is worth its thread, and how it takes its time. Asked by heap/process/purger.hpp once a tick.
#pragma once

#include "base/units.hpp"
#include "box/retain/contract.hpp"

namespace hz {

// Steady: an idle process is small within a second, a busy one hardly notices.
struct SteadyTicks {
  static constexpr unsigned kTickMilliseconds = 100;
  static constexpr unsigned kTidyTicks = 1;   // so often it is tidied while threads are at work
  static constexpr unsigned kIdleTicks = 2;   // a thread that wakes more often keeps its cache
  static constexpr unsigned kStillTicks = 2;  // the same, when no thread moves
  static constexpr unsigned kRestTicks = 20;  // then the purger itself sleeps, or ends
  static constexpr std::size_t kWorthBytes = 4 * kMiB;
};

// Prompt: a process is small 50 ms after its last thread stood still. On a busy machine a thread may wait for
// a processor for longer; all of them do not.
struct PromptTicks {
  static constexpr unsigned kTickMilliseconds = 8;
  static constexpr unsigned kTidyTicks = 12;
  static constexpr unsigned kIdleTicks = 25;
  static constexpr unsigned kStillTicks = 2;
  static constexpr unsigned kRestTicks = 60;
  static constexpr std::size_t kWorthBytes = kMiB;
};

template <class Ticks>
struct BasicBackground {
  static constexpr unsigned kTickMilliseconds = Ticks::kTickMilliseconds;
  static constexpr unsigned kRetryMilliseconds = 1000;

  static bool tidies(unsigned tick) { return tick % Ticks::kTidyTicks == 0; }
  static bool worth(std::size_t held_bytes) { return held_bytes > Ticks::kWorthBytes; }
  static bool is_idle(unsigned ticks_unchanged) { return ticks_unchanged >= Ticks::kIdleTicks; }
  static bool is_still(unsigned ticks_unchanged) { return ticks_unchanged >= Ticks::kStillTicks; }
  static bool outgrown(std::size_t out_bytes, std::size_t highest) { return out_bytes < highest / 4 * 3; }
  static bool at_rest(unsigned ticks_without_work) { return ticks_without_work >= Ticks::kRestTicks; }
};

using Background = BasicBackground<SteadyTicks>;
using PromptBackground = BasicBackground<PromptTicks>;

}  // namespace hz
