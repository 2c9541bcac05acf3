// SPDX-License-Identifier: Apache-2.0
//
// What every implementation on POSIX is careful of: errno is the program's, and a thread that is cancelled
// while it holds our locks would never open them. Called on cold paths; costs a load, or two calls.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include <cstddef>

#include "os/os.hpp"

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

// The system's part: advises the system about memory that was just mapped, and returns its address.
void* advised(void* at, std::size_t bytes, Use use);
// Names the calling thread, which is ours, and ends what it inherited from the program's thread that started
// it: normal scheduling class, and the processors that the process had at its start. Keeps what the system
// refuses.
void settle_this_thread(const char* name);
// Returns the action for SIGTERM that before_termination() chose, or nullptr if it chose none.
const struct sigaction* termination_action();
// Returns the action of ours that stands for the default one of SIGSEGV or SIGBUS: no handler comes behind
// it. nullptr of another signal, or where on_access_fault() set none, or while it gives way to the default.
const struct sigaction* access_action(int signal);
// Returns the handler that a signal() shows in place of `handler`: of ours for SIGSEGV and SIGBUS the one
// that stands behind it. Ours cannot be set by signal(), nor called with a number alone.
void (*behind_access(int signal, void (*handler)(int)))(int);
// Opens a file of the process once more, by its number, for a thread with a separate table of descriptors.
// Returns less than 0 if that fails.
long reopened(long number);
// Returns a function of that name that a loaded library has, or nullptr.
void* loaded_function(const char* name);
// Returns where the calling thread's stack lies, as far as that is known. `callers`: `count` return addresses
// of this thread. May allocate, and make a system call, but not for the first thread. It returns nothing
// while the thread asks the C library for its stack, which holds a lock and allocates meanwhile.
Code thread_stack(void* const* callers, unsigned count);
// Requires: called before thread_stack(). May take the loader's lock.
void prepare_thread_stack();

}  // namespace hz::os
