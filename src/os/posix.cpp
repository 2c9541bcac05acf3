// SPDX-License-Identifier: Apache-2.0
//
// What POSIX says alike of Linux and macOS: limits, the process, the ends of threads, forks. See os.hpp for
// the contract; called on cold paths only.
#include "os/posix.hpp"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.hpp"
#include "os/calls.hpp"
#include "os/os.hpp"
#include "os/quiet_write.hpp"

namespace hz::os {

std::size_t address_space_limit() {
  struct rlimit limit;
  if (call::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

std::uint64_t microseconds() {
  struct timespec now = {};
  call::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

std::uint64_t unix_seconds() {
  struct timespec now = {};
  call::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec);
}

std::uint64_t process_id() { return static_cast<std::uint64_t>(call::getpid()); }

namespace {

// A second descriptor of the file that stderr was at the start. A program may close it, and open another file
// that gets its number.
struct ErrorStream {
  long copy = -1;
  dev_t device = 0;
  ino_t file = 0;
};
constinit ErrorStream kept;

HZ_SLOW bool is_kept(long descriptor) {
  struct stat found;
  return call::fstat(descriptor, &found) == 0 && found.st_dev == kept.device && found.st_ino == kept.file;
}

// Returns the copy only where stderr is another file by now, or closed.
long error_stream() {
  if (HZ_LIKELY(kept.copy < 0) || is_kept(STDERR_FILENO)) return STDERR_FILENO;
  return is_kept(kept.copy) ? kept.copy : STDERR_FILENO;
}

// Of a thread that has no descriptors of the process. Returns a new one, or less than 0.
HZ_SLOW long reopened_error_stream() {
  const long copy = kept.copy < 0 ? -1 : reopened(kept.copy);
  if (copy < 0 || is_kept(copy)) return copy < 0 ? reopened(STDERR_FILENO) : copy;
  call::close(copy);
  return reopened(STDERR_FILENO);
}

}  // namespace

void keep_error_stream() {
  constexpr int kOutOfTheWay = 100;  // programs count on low numbers for what they open
  struct stat found;
  const long copy = call::duplicate(STDERR_FILENO, kOutOfTheWay);
  if (copy >= 0 && call::fstat(copy, &found) == 0) kept = {copy, found.st_dev, found.st_ino};
}

void write_error(const char* text, std::size_t length) {
  const long found = error_stream();
  const QuietWrite quiet;
  long own = -1;
  while (length != 0) {
    const long n = quiet.some(own >= 0 ? own : found, text, length);
    if (n == -EINTR) continue;
    if (n == -EBADF && own < 0) {
      own = reopened_error_stream();
      if (own < 0) return;
      continue;
    }
    if (n <= 0) break;
    text += n;
    length -= static_cast<std::size_t>(n);
  }
  if (own >= 0) call::close(own);
}

bool is_process_ending() { return false; }

// This may be the purger, which takes no signal, and musl's abort calls no handler of one that is blocked.
void abort_process() {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGABRT);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  abort();
}

bool create_exit_hook(void (*at_thread_exit)(void*), unsigned* key) {
  const KeepErrno keep;
  pthread_key_t made;
  if (pthread_key_create(&made, at_thread_exit) != 0) return false;
  return *key = static_cast<unsigned>(made), true;
}

bool arm_exit_hook(unsigned key, void* state) {
  const KeepErrno keep;
  return pthread_setspecific(key, state) == 0;
}

// Weak: the part that keeps them says so before any constructor runs, by its own definition.
__attribute__((weak)) constinit ForkHooks* fork_hooks_kept = nullptr;

void set_fork_hooks(void (*prepare)(), void (*parent)(), void (*child)()) {
  if (fork_hooks_kept != nullptr) return void(*fork_hooks_kept = {prepare, parent, child});
  const KeepErrno keep;
  pthread_atfork(prepare, parent, child);
}

void give_way() { call::sched_yield(); }

}  // namespace hz::os
