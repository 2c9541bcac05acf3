// SPDX-License-Identifier: Apache-2.0
//
// macOS: system calls by the C library, which alone may make them there. See calls.hpp for the contract.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "os/posix.hpp"

namespace hz::os::call {

template <class Call>
long make(Call the_call) {
  const KeepErrno keep;
  const NoCancel no_cancel;
  const long answer = the_call();
  return answer == -1 ? -errno : answer;
}

inline long mmap(void* at, std::size_t bytes, int protection, int flags) {
  return make([&] { return reinterpret_cast<long>(::mmap(at, bytes, protection, flags, -1, 0)); });
}
inline long munmap(void* at, std::size_t bytes) {
  return make([&] { return ::munmap(at, bytes); });
}
inline long mprotect(void* at, std::size_t bytes, int protection) {
  return make([&] { return ::mprotect(at, bytes, protection); });
}
inline long open_at(long folder, const char* path, int flags, unsigned mode = 0) {
  return make([&] { return ::openat(static_cast<int>(folder), path, flags, mode); });
}
inline long open(const char* path, int flags, unsigned mode = 0) {
  return open_at(AT_FDCWD, path, flags, mode);
}
inline long read(long file, void* out, std::size_t room) {
  return make([&] { return ::read(static_cast<int>(file), out, room); });
}
inline long write(long file, const void* text, std::size_t bytes) {
  return make([&] { return ::write(static_cast<int>(file), text, bytes); });
}
inline long close(long file) {
  return make([&] { return ::close(static_cast<int>(file)); });
}
inline long duplicate(long file, int least) {
  return make([&] { return fcntl(static_cast<int>(file), F_DUPFD_CLOEXEC, least); });
}
inline long rename_at(long from_folder, const char* from, long to_folder, const char* to) {
  return make(
      [&] { return ::renameat(static_cast<int>(from_folder), from, static_cast<int>(to_folder), to); });
}
inline long unlink_at(long folder, const char* path) {
  return make([&] { return ::unlinkat(static_cast<int>(folder), path, 0); });
}
inline long readlink_at(long folder, const char* path, char* out, std::size_t room) {
  return make([&] { return ::readlinkat(static_cast<int>(folder), path, out, room); });
}
inline long lstat_at(long folder, const char* path, struct stat* out) {
  return make([&] { return ::fstatat(static_cast<int>(folder), path, out, AT_SYMLINK_NOFOLLOW); });
}
inline long fstat(long file, struct stat* out) {
  return make([&] { return ::fstat(static_cast<int>(file), out); });
}
inline long fchmod(long file, unsigned mode) {
  return make([&] { return ::fchmod(static_cast<int>(file), static_cast<mode_t>(mode)); });
}
inline long ftruncate(long file, long bytes) {
  return make([&] { return ::ftruncate(static_cast<int>(file), bytes); });
}
inline long getcwd(char* out, std::size_t room) {
  return make([&] { return ::getcwd(out, room) != nullptr ? 1 : -1; });
}
inline long getpid() { return ::getpid(); }
inline long geteuid() { return ::geteuid(); }
inline long getrlimit(int resource, rlimit* limit) {
  return make([&] { return ::getrlimit(resource, limit); });
}
inline long rt_sigprocmask(int how, const std::uint64_t* signals, std::uint64_t* before) {
  const auto wanted = static_cast<sigset_t>(*signals);
  sigset_t had = 0;
  const int error = pthread_sigmask(how, &wanted, &had);
  if (before != nullptr) *before = had;
  return -error;
}
inline long rt_sigpending(std::uint64_t* signals) {
  sigset_t pending = 0;
  const long error = make([&] { return ::sigpending(&pending); });
  *signals = pending;
  return error;
}
inline long take_signal(const std::uint64_t* signals) {
  const auto wanted = static_cast<sigset_t>(*signals);
  sigset_t pending = 0;
  int taken = 0;
  if (sigpending(&pending) != 0 || (pending & wanted) == 0) return -EAGAIN;
  return -sigwait(&wanted, &taken);
}
inline long sched_yield() { return ::sched_yield(); }
inline void clock_gettime(clockid_t clock, timespec* out) {
  make([&] { return ::clock_gettime(clock, out); });
}

}  // namespace hz::os::call
