// SPDX-License-Identifier: Apache-2.0
//
// Reading files of the kernel's, for the implementation on Linux: byte by byte, through a buffer of its own, so that
// nothing allocates and nothing of the C library must be initialised. One system call per half KiB.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstddef>

namespace hz::os {

class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

// System calls at which a thread may be cancelled are made while locks are held.
class NoCancel {
 public:
  NoCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// A file that cannot be opened or read is empty.
class FileBytes {
 public:
  explicit FileBytes(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~FileBytes() {
    if (fd_ >= 0) close(fd_);
  }

  // The next byte, or -1 at the end.
  int next() {
    if (at_ == filled_) {
      const ssize_t n = fd_ < 0 ? 0 : read(fd_, buffer_, sizeof buffer_);
      if (n <= 0) return -1;
      at_ = 0;
      filled_ = static_cast<std::size_t>(n);
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }

 private:
  const NoCancel no_cancel_;
  int fd_;
  std::size_t at_ = 0, filled_ = 0;
  char buffer_[512];
};

}  // namespace hz::os
