// SPDX-License-Identifier: Apache-2.0
//
// A write of ours that never ends the program. If a pipe has no reader, or a file may not grow
// (RLIMIT_FSIZE), the system sends a signal that ends the program by default. Called for messages, statistics
// and profiles. Cost: two system calls, one more if the write fails, and one more if the program blocks such
// a signal.
#pragma once

#include <errno.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "os/calls.hpp"

namespace hz::os {

class QuietWrite {
 public:
  QuietWrite() {
    call::rt_sigprocmask(SIG_BLOCK, &kSignals, &before_);
    // Only a signal that the program blocks can be pending here, and that one stays its own.
    if ((before_ & kSignals) != 0) call::rt_sigpending(&pending_);
  }
  ~QuietWrite() { call::rt_sigprocmask(SIG_SETMASK, &before_, nullptr); }
  QuietWrite(const QuietWrite&) = delete;
  QuietWrite& operator=(const QuietWrite&) = delete;

  // Returns what was written, or a negative error, whose signal is gone.
  long some(long file, const char* text, std::size_t length) const {
    const long written = call::write(file, text, length);
    if (written == -EPIPE) take(kPipe);
    if (written == -EFBIG) take(kFileSize);
    return written;
  }

 private:
  static constexpr std::uint64_t kPipe = std::uint64_t{1} << (SIGPIPE - 1);
  static constexpr std::uint64_t kFileSize = std::uint64_t{1} << (SIGXFSZ - 1);
  static constexpr std::uint64_t kSignals = kPipe | kFileSize;

  void take(const std::uint64_t& signal) const {
    if ((pending_ & signal) == 0) call::take_signal(&signal);
  }

  std::uint64_t before_ = 0, pending_ = 0;
};

}  // namespace hz::os
