// SPDX-License-Identifier: Apache-2.0
//
// Catches what this process writes to a file descriptor (usually 2) while the object lives. Called by tests
// of messages that do not end the process; for those that do, see child.hpp.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "support/calls.hpp"

namespace hz_test {

class Capture {
 public:
  explicit Capture(int fd = 2) : fd_(fd), saved_(dup(fd)), file_(memfd_create("capture", MFD_CLOEXEC)) {
    dup2(file_, fd_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    Restore();
    close(file_);
  }

  // Ends the capture and returns what was written, without the calls of reports.
  std::string Text() {
    Restore();
    std::string text;
    char buffer[4096];
    ssize_t got = 0;
    for (off_t at = 0; (got = pread(file_, buffer, sizeof buffer, at)) > 0; at += got) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    TakeCalls(text);
    return text;
  }

 private:
  void Restore() {
    if (saved_ < 0) return;
    dup2(saved_, fd_);
    close(saved_);
    saved_ = -1;
  }

  int fd_;
  int saved_;
  int file_;
};

}  // namespace hz_test
