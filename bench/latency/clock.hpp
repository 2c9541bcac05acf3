// SPDX-License-Identifier: Apache-2.0
//
// A clock that is cheap enough to be read before and after each call: the processor's own counter where it
// has one that user code may read, else the system's. How long a tick is, is measured beside the system's
// clock during the run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "support/process.hpp"

namespace hz::bench {

inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return now_ns();
#endif
}

class Stopwatch {
 public:
  // Nanoseconds of a tick, by what has passed since this was made.
  double tick_ns() const {
    const std::uint64_t passed = ticks() - first_ticks_;
    return static_cast<double>(now_ns() - first_ns_) /
           static_cast<double>(std::max<std::uint64_t>(passed, 1));
  }

 private:
  std::uint64_t first_ns_ = now_ns();
  std::uint64_t first_ticks_ = ticks();
};

// What two readings in a row differ by at least: it is part of every time.
inline std::uint64_t clock_ticks() {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t before = ticks();
    least = std::min(least, ticks() - before);
  }
  return least;
}

}  // namespace hz::bench
