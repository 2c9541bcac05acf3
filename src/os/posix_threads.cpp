// SPDX-License-Identifier: Apache-2.0
//
// POSIX: a thread of our own. See os.hpp for the contract; called by the purger.
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "base/units.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

namespace hz::os {
namespace {

struct Start {
  void (*run)();
  const char* name;
};
constinit Start start = {};  // one thread at a time is started

// The loader has come to constructors: before, it is still laying out what a thread needs. Volatile, or a
// compiler that runs constructors while it compiles has it set from the start (clang does; 18 an atomic,
// too).
constinit volatile std::atomic<bool> loaded{false};
__attribute__((constructor)) void now_loaded() { loaded.store(true, std::memory_order_relaxed); }

void* begin(void*) {
  name_this_thread(start.name);
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

}  // namespace hz::os
