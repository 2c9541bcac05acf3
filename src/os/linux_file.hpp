// SPDX-License-Identifier: Apache-2.0
//
// Reading files of the kernel's, for the implementation on Linux: byte by byte through a buffer, or all at
// once into its own memory, so that nothing allocates and nothing of the C library must be initialised.
#pragma once

#include <errno.h>

#include <cstddef>

#include "base/units.hpp"
#include "os/calls.hpp"

namespace hz::os {

// Through the caller's buffer. A file that cannot be opened or read is empty.
class FileBytes {
 public:
  template <std::size_t kRoom>
  FileBytes(const char* path, char (&buffer)[kRoom])
      : fd_(call::open(path, O_RDONLY | O_CLOEXEC)), buffer_(buffer), room_(kRoom) {}
  ~FileBytes() {
    if (fd_ >= 0) call::close(fd_);
  }

  // The next byte, or -1 at the end.
  int next() {
    if (at_ == filled_) {
      const long n = fd_ < 0 ? 0 : call::read(fd_, buffer_, room_);
      if (n <= 0) return -1;
      at_ = 0;
      filled_ = static_cast<std::size_t>(n);
    }
    return static_cast<unsigned char>(buffer_[at_++]);
  }

 private:
  const long fd_;
  char* const buffer_;
  const std::size_t room_;
  std::size_t at_ = 0, filled_ = 0;
};

// All of a file, in memory mapped for it. False if it cannot be read whole; then nothing is mapped.
struct FileText {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::size_t room = 0;  // what is mapped

  bool read_all(const char* path) {
    const long fd = call::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool whole = grow(kFirst) && fill(fd);
    call::close(fd);
    if (!whole) drop();
    return whole;
  }
  void drop() {
    if (text != nullptr) call::munmap(text, room);
    text = nullptr;
    bytes = room = 0;
  }

 private:
  static constexpr std::size_t kFirst = std::size_t{64} << 10;

  bool grow(std::size_t to) {
    const long at = text == nullptr
                        ? call::mmap(nullptr, to, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS)
                        : call::mremap(text, room, to, MREMAP_MAYMOVE, nullptr);
    if (at < 0) return false;
    text = static_cast<char*>(pointer(static_cast<std::uintptr_t>(at)));
    room = to;
    return true;
  }
  bool fill(long fd) {
    for (;;) {
      if (bytes == room && !grow(2 * room)) return false;
      const long n = call::read(fd, text + bytes, room - bytes);
      if (n == -EINTR) continue;
      if (n <= 0) return n == 0;
      bytes += static_cast<std::size_t>(n);
    }
  }
};

}  // namespace hz::os
