// SPDX-License-Identifier: Apache-2.0
//
// POSIX: threads of ours. See os.hpp for the contract; called by the purger and by control.
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "base/units.hpp"
#include "os/os.hpp"
#include "os/posix.hpp"

namespace hz::os {
namespace {

// The loader has come to constructors, and this is the first of ours: before, it is still laying out what a
// thread needs. Volatile, or a compiler that runs constructors while it compiles has it set from the start
// (clang does; 18 an atomic, too).
constinit volatile std::atomic<bool> loaded{false};
constexpr int kFirstOfAll = 101;
__attribute__((constructor(kFirstOfAll))) void now_loaded() { loaded.store(true, std::memory_order_relaxed); }

void* begin(void* what) {
  const auto* const thread = static_cast<const OwnThread*>(what);
  settle_this_thread(thread->name);
  thread->run();
  return nullptr;
}

// The new thread inherits the mask: no signal of the program is ever delivered to it.
int create(const OwnThread& what, std::size_t stack_bytes) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return EAGAIN;
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes != 0) pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_t thread;
    error = pthread_create(&thread, &attributes, &begin, const_cast<OwnThread*>(&what));
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace

// Relaxed: see os.hpp for the order of calls.
void note_process() {
  of_process.load(std::memory_order_relaxed)->noted.store(process_id(), std::memory_order_relaxed);
}
bool is_noted_process() {
  return of_process.load(std::memory_order_relaxed)->noted.load(std::memory_order_relaxed) == process_id();
}

bool start_thread(const OwnThread& thread) {
  if (!loaded.load(std::memory_order_relaxed) || !is_noted_process()) return false;
  const KeepErrno keep;
  constexpr std::size_t kStack = 128 * kKiB;
  int error = create(thread, kStack);
  if (error == EINVAL) error = create(thread, 0);  // the program's thread-local storage alone is larger
  return error == 0;
}

}  // namespace hz::os
