// SPDX-License-Identifier: Apache-2.0
//
// Ends a process that hangs, with a word about it. Generous: the machine may be slow.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace hz_test {

class Watchdog {
 public:
  explicit Watchdog(unsigned seconds = 240) {
    std::signal(SIGALRM, [](int) {
      static const char text[] = "watchdog: this process hangs\n";
      if (write(2, text, sizeof text - 1) < 0) _exit(4);
      std::signal(SIGABRT, SIG_DFL);
      std::abort();
    });
    alarm(seconds);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() { alarm(0); }
};

}  // namespace hz_test
