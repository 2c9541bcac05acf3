// SPDX-License-Identifier: Apache-2.0
//
// Linux: a thread of our own, and a memory barrier on all threads of the process. See os.hpp for the
// contract; called by the purger and by whoever takes back what other threads cache.
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/compiler.hpp"
#include "base/units.hpp"
#include "os/linux_file.hpp"
#include "os/os.hpp"

namespace hz::os {
namespace {

struct Start {
  void (*run)();
  const char* name;
};
constinit Start start = {};  // one thread at a time is started

// The loader has come to constructors: before, it is still laying out what a thread needs. Atomic, or a
// compiler that runs constructors while it compiles would have it set from the start (clang does).
constinit std::atomic<bool> loaded{false};
__attribute__((constructor)) void now_loaded() { loaded.store(true, std::memory_order_relaxed); }

constinit std::atomic<bool> has_barrier{false};

void* begin(void*) {
  prctl(PR_SET_NAME, start.name, 0, 0, 0);
  start.run();
  return nullptr;
}

// The new thread inherits the mask: no signal of the program is ever delivered to it.
int create(std::size_t stack_bytes) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return EAGAIN;
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes != 0) pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_t thread;
    error = pthread_create(&thread, &attributes, &begin, nullptr);
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace

bool start_thread(void (*run)(), const char* name) {
  if (!loaded.load(std::memory_order_relaxed)) return false;
  const KeepErrno keep;
  start = {run, name};
  constexpr std::size_t kStack = 128 * kKiB;
  int error = create(kStack);
  if (error == EINVAL) error = create(0);  // the program's thread-local storage alone is larger
  return error == 0;
}

void prepare_barrier() {
  if constexpr (kThreadSanitizer) return;  // it does not know this kind of order
  const KeepErrno keep;
  const bool has = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  has_barrier.store(has, std::memory_order_relaxed);
}

bool barrier_on_all_threads() {
  if (!has_barrier.load(std::memory_order_relaxed)) return false;
  const KeepErrno keep;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void wait_at_most(const std::uint32_t* word, std::uint32_t while_value, unsigned milliseconds) {
  const KeepErrno keep;
  const timespec timeout = {milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1000000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_value, &timeout, nullptr, 0);
}

}  // namespace hz::os
