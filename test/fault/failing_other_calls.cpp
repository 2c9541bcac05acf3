// SPDX-License-Identifier: Apache-2.0
//
// See failing_calls.hpp: what src/os asks of the system beside memory. Not under sanitizers, whose own
// runtime is in the program and calls the same names before it is ready.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>

#include "fault/failing_calls.hpp"

using namespace hz_test::failing;

namespace {
int Fail(int error) {
  errno = error;
  return -1;
}
}  // namespace

extern "C" {

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  switch (number) {
    case SYS_membarrier:
      if (Fails(kBarrier)) return Fail(ENOSYS);
      break;
    case SYS_futex:
      if ((b & FUTEX_CMD_MASK) == FUTEX_WAIT && Fails(kWait)) return Fail(EINTR);
      break;
    case SYS_sched_getaffinity:
      if (Fails(kMachine)) return Fail(EINVAL);
      break;
    case SYS_gettid: break;  // cannot fail
    default:                 // close_range
      if (Fails(kFile)) return Fail(ENOSYS);
  }
  return __real_syscall(number, a, b, c, d, e, f);
}

int __real_sysinfo(struct sysinfo* info);
int __wrap_sysinfo(struct sysinfo* info) { return Fails(kMachine) ? Fail(EFAULT) : __real_sysinfo(info); }
int __real_getrlimit(int resource, rlimit* limit);
int __wrap_getrlimit(int resource, rlimit* limit) {
  return Fails(kMachine) ? Fail(EINVAL) : __real_getrlimit(resource, limit);
}
int __real_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  return Fails(kMachine) ? Fail(EINVAL) : __real_prctl(option, a, b, c, d);
}
int __real_sched_getcpu();
int __wrap_sched_getcpu() { return Fails(kProcessor) ? Fail(ENOSYS) : __real_sched_getcpu(); }
char* __real_getcwd(char* out, std::size_t room);
char* __wrap_getcwd(char* out, std::size_t room) {
  if (!Fails(kFile)) return __real_getcwd(out, room);
  errno = ENOENT;
  return nullptr;
}
ssize_t __real_readlink(const char* path, char* out, std::size_t room);
ssize_t __wrap_readlink(const char* path, char* out, std::size_t room) {
  return Fails(kMachine) ? Fail(EACCES) : __real_readlink(path, out, room);
}
int __real_access(const char* path, int how);
int __wrap_access(const char* path, int how) {
  return Fails(kMachine) ? Fail(EACCES) : __real_access(path, how);
}

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
  return Fails(kHook) ? Fail(EINVAL) : __real_sigaction(number, now, before);
}

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0);
  va_end(arguments);
  return Fails(kFile) ? Fail(EMFILE) : __real_open(path, flags, mode);
}
ssize_t __real_read(int file, void* out, std::size_t room);
ssize_t __wrap_read(int file, void* out, std::size_t room) {
  return Fails(kFile) ? Fail(EIO) : __real_read(file, out, room);
}
ssize_t __real_write(int file, const void* text, std::size_t bytes);
ssize_t __wrap_write(int file, const void* text, std::size_t bytes) {
  return Fails(kFile) ? Fail(ENOSPC) : __real_write(file, text, bytes);
}
int __real_fcntl(int file, int what, ...);
int __wrap_fcntl(int file, int what, ...) {
  std::va_list arguments;
  va_start(arguments, what);
  const int with = va_arg(arguments, int);
  va_end(arguments);
  return Fails(kFile) ? Fail(EMFILE) : __real_fcntl(file, what, with);
}
int __real_rename(const char* from, const char* to);
int __wrap_rename(const char* from, const char* to) {
  return Fails(kFile) ? Fail(EACCES) : __real_rename(from, to);
}

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol) {
  return Fails(kSocket) ? Fail(EMFILE) : __real_socket(domain, type, protocol);
}
int __real_bind(int file, const sockaddr* name, socklen_t bytes);
int __wrap_bind(int file, const sockaddr* name, socklen_t bytes) {
  return Fails(kSocket) ? Fail(EADDRINUSE) : __real_bind(file, name, bytes);
}
int __real_listen(int file, int waiting);
int __wrap_listen(int file, int waiting) {
  return Fails(kSocket) ? Fail(EADDRINUSE) : __real_listen(file, waiting);
}
int __real_accept4(int file, sockaddr* name, socklen_t* bytes, int flags);
int __wrap_accept4(int file, sockaddr* name, socklen_t* bytes, int flags) {
  return Fails(kSocket) ? Fail(EMFILE) : __real_accept4(file, name, bytes, flags);
}
int __real_ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* mask);
int __wrap_ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return Fails(kSocket) ? Fail(ENOMEM) : __real_ppoll(files, count, timeout, mask);
}
int __real_getsockopt(int file, int level, int option, void* out, socklen_t* bytes);
int __wrap_getsockopt(int file, int level, int option, void* out, socklen_t* bytes) {
  return Fails(kSocket) ? Fail(ENOBUFS) : __real_getsockopt(file, level, option, out, bytes);
}
ssize_t __real_recv(int file, void* out, std::size_t room, int flags);
ssize_t __wrap_recv(int file, void* out, std::size_t room, int flags) {
  return Fails(kSocket) ? Fail(ECONNRESET) : __real_recv(file, out, room, flags);
}
ssize_t __real_send(int file, const void* text, std::size_t bytes, int flags);
ssize_t __wrap_send(int file, const void* text, std::size_t bytes, int flags) {
  return Fails(kSocket) ? Fail(EPIPE) : __real_send(file, text, bytes, flags);
}
}
