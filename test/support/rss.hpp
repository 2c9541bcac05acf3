// SPDX-License-Identifier: Apache-2.0
//
// Resident memory of this process, now and at its peak, read without allocating (what is measured must not
// move). Called by tests that claim that memory is, or is not, taken or given back.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace hz_test {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

// The number behind `key` in a /proc file of "Key:  123 kB" lines, in bytes; 0 if there is none.
inline std::size_t ProcBytes(const char* path, const char* key) {
  char text[8192];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < sizeof text - 1;
       length += static_cast<std::size_t>(got > 0 ? got : 0)) {
    got = read(fd, text + length, sizeof text - 1 - length);
  }
  close(fd);
  text[length] = 0;
  const char* found = std::strstr(text, key);
  return found == nullptr ? 0 : std::strtoull(found + std::strlen(key), nullptr, 10) * 1024;
}

// Exact (the counters in statm lag behind by up to 64 pages per thread).
inline std::size_t RssBytes() { return ProcBytes("/proc/self/smaps_rollup", "Rss:"); }

inline std::size_t PeakRssBytes() { return ProcBytes("/proc/self/status", "VmHWM:"); }

// Starts a new peak at the present RSS; false where the kernel does not allow it.
inline bool ResetPeakRss() {
  const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = write(fd, "5", 1) == 1;
  close(fd);
  return done;
}

}  // namespace hz_test
