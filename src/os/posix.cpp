// SPDX-License-Identifier: Apache-2.0
//
// What POSIX says alike of Linux and macOS: limits, the process, the ends of threads, forks. See os.hpp for
// the contract; called on cold paths only.
#include "os/posix.hpp"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/calls.hpp"
#include "os/os.hpp"

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
constinit long error_stream = STDERR_FILENO;
}

void keep_error_stream() {
  constexpr int kOutOfTheWay = 100;  // programs count on low numbers for what they open
  const long copy = call::duplicate(STDERR_FILENO, kOutOfTheWay);
  if (copy >= 0) error_stream = copy;
}

void write_error(const char* text, std::size_t length) {
  long reopened = -1;
  while (length != 0) {
    const long n = call::write(reopened >= 0 ? reopened : error_stream, text, length);
    if (n == -EINTR) continue;
    if (n == -EBADF && reopened < 0) {
      reopened = reopened_error_stream(error_stream);
      if (reopened < 0) return;
      continue;
    }
    if (n <= 0) break;
    text += n;
    length -= static_cast<std::size_t>(n);
  }
  if (reopened >= 0) call::close(reopened);
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
