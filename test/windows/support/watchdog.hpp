// SPDX-License-Identifier: Apache-2.0
//
// Ends a process that hangs, with a word about it, on Windows: a timer of the system's.
#pragma once

#include <windows.h>

#include <cstdio>
#include <cstdlib>

namespace hz_test {

class Watchdog {
 public:
  explicit Watchdog(unsigned seconds = 240) {
    CreateTimerQueueTimer(&timer_, nullptr, &Watchdog::Bite, nullptr, 1000 * seconds, 0, WT_EXECUTEONLYONCE);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() { (void)DeleteTimerQueueTimer(nullptr, timer_, INVALID_HANDLE_VALUE); }

 private:
  static void CALLBACK Bite(void*, BOOLEAN) {
    std::fputs("watchdog: this process hangs\n", stderr);
    std::abort();
  }

  HANDLE timer_ = nullptr;
};

}  // namespace hz_test
