// SPDX-License-Identifier: Apache-2.0
//
// See failing_calls.hpp: what src/os asks of the C library. Not under sanitizers, whose own runtime is in the
// program and calls the same names before it is ready.
#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

#include "fault/failing_calls.hpp"

using namespace hz_test::failing;

extern "C" {

int __real_pthread_create(pthread_t* out, const pthread_attr_t* how, void* (*run)(void*), void* with);
int __wrap_pthread_create(pthread_t* out, const pthread_attr_t* how, void* (*run)(void*), void* with) {
  return Fails(kThread) ? EAGAIN : __real_pthread_create(out, how, run, with);
}
int __real_pthread_attr_init(pthread_attr_t* how);
int __wrap_pthread_attr_init(pthread_attr_t* how) {
  return Fails(kThread) ? ENOMEM : __real_pthread_attr_init(how);
}
int __real_pthread_attr_setstacksize(pthread_attr_t* how, std::size_t bytes);
int __wrap_pthread_attr_setstacksize(pthread_attr_t* how, std::size_t bytes) {
  return Fails(kThread) ? EINVAL : __real_pthread_attr_setstacksize(how, bytes);
}
int __real_pthread_sigmask(int how, const sigset_t* set, sigset_t* before);
int __wrap_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  // What it takes back it can take back.
  return how == SIG_SETMASK && before != nullptr && Fails(kThread) ? EINVAL
                                                                   : __real_pthread_sigmask(how, set, before);
}

int __real_pthread_key_create(pthread_key_t* key, void (*at_end)(void*));
int __wrap_pthread_key_create(pthread_key_t* key, void (*at_end)(void*)) {
  return Fails(kHook) ? EAGAIN : __real_pthread_key_create(key, at_end);
}
int __real_pthread_setspecific(pthread_key_t key, const void* value);
int __wrap_pthread_setspecific(pthread_key_t key, const void* value) {
  return Fails(kHook) ? ENOMEM : __real_pthread_setspecific(key, value);
}
int __real_pthread_atfork(void (*prepare)(), void (*parent)(), void (*child)());
int __wrap_pthread_atfork(void (*prepare)(), void (*parent)(), void (*child)()) {
  return Fails(kHook) ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}
int __real_sigaction(int number, const struct sigaction* now, struct sigaction* before);
int __wrap_sigaction(int number, const struct sigaction* now, struct sigaction* before) {
  if (!Fails(kHook)) return __real_sigaction(number, now, before);
  errno = EINVAL;
  return -1;
}
}
