// SPDX-License-Identifier: Apache-2.0
//
// The threads of this process as the kernel sees them: names, signal masks, and for how long they waited for
// a processor. Reads /proc without allocating, so that a process that looks at itself stays idle. Called by
// the tests of the purger and of what it gives back.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hz_test {

constexpr const char* kPurgerName = "hz-purger";

// Text of a file in /proc, cut to the buffer; empty if there is none (the thread may have ended).
template <std::size_t kBytes>
void ReadText(const char* path, char (&text)[kBytes]) {
  text[0] = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t got = read(fd, text, kBytes - 1);
  text[got > 0 ? got : 0] = 0;
  close(fd);
}

template <std::size_t kBytes>
void ReadOfTask(int tid, const char* file, char (&text)[kBytes]) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, file);
  ReadText(path, text);
}

template <class Visit>
void ForEachTask(Visit visit) {
  struct Entry {
    std::uint64_t inode, offset;
    unsigned short length;
    unsigned char type;
    char name[1];
  };
  const int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(8) char buffer[4096];
  for (long got = 0; fd >= 0 && (got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->length;
      const int tid = std::atoi(entry->name);
      if (tid > 0) visit(tid);
    }
  }
  if (fd >= 0) close(fd);
}

inline unsigned TaskCount() {
  unsigned count = 0;
  ForEachTask([&count](int) { ++count; });
  return count;
}

// The purger's thread id, 0 if there is none.
inline int Purger() {
  int found = 0;
  ForEachTask([&found](int tid) {
    char name[32];
    ReadOfTask(tid, "comm", name);
    if (std::strncmp(name, kPurgerName, std::strlen(kPurgerName)) == 0) found = tid;
  });
  return found;
}

// How long the threads that live now have waited for a processor, in all; 0 where the kernel does not count
// it.
inline std::uint64_t RunDelayNanoseconds() {
  std::uint64_t sum = 0;
  ForEachTask([&sum](int tid) {
    char text[128];
    ReadOfTask(tid, "schedstat", text);
    std::uint64_t ran = 0, waited = 0;
    if (std::sscanf(text, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2) sum += waited;
  });
  return sum;
}

}  // namespace hz_test
