// SPDX-License-Identifier: Apache-2.0
//
// See failing_calls.hpp. The linker gives every call of `mmap` in this program to `__wrap_mmap`.
#include "fault/failing_calls.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "fault/calls.hpp"

namespace hz_test::failing {
namespace {

std::atomic<Mode> mode{Mode::kNone};
std::atomic<std::uint64_t> parameter{0};
std::atomic<unsigned> which{kAllCalls};
std::atomic<std::uint64_t> calls{0};
std::atomic<std::uint64_t> failures{0}, failures_of[kKinds];
std::atomic<bool> squats{false};
std::atomic<std::size_t> stop_after{0};
std::size_t squat_offset = 0;
bool squat_from_end = false;
std::atomic<void*> squatted{nullptr};

void Set(Mode new_mode, std::uint64_t new_parameter, unsigned new_which) {
  mode = Mode::kNone;
  parameter = new_parameter;
  which = new_which;
  calls = 0;
  mode = new_mode;
}

bool Decide(std::uint64_t number) {
  switch (mode.load()) {
    case Mode::kNone: return false;
    case Mode::kOnce: return number == parameter;
    case Mode::kFrom: return number >= parameter;
    case Mode::kSometimes: break;
  }
  std::uint64_t mixed = number * 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9U;
  return (mixed >> 32) % parameter == 0;
}

// What the environment says, as soon as the heap, which opens before main, calls anything. GoogleTest makes a
// key before that, and asks for its folder: the heap begins with neither.
void FromTheStart() {
  const char* const said = std::getenv("HZ_TEST_FAIL");
  if (said == nullptr) return;
  constexpr std::size_t kWord = 5;  // "once ", "from "
  const std::uint64_t call = std::strtoull(said + kWord, nullptr, 10);
  // Who cannot wait goes round in circles.
  std::strncmp(said, "once ", kWord) == 0 ? Once(call, kAllCalls) : From(call, kAllCalls & ~kWait);
}

bool Fails(unsigned call) {
  static bool begun = false;
  if (!begun && call != kHook && call != kFile) begun = true, FromTheStart();
  if (mode.load() == Mode::kNone || (which.load() & call) == 0 || TestsOwn::is) return false;
  if (!Decide(calls.fetch_add(1) + 1)) return false;
  ++failures;
  if (call < kProcessor) ++failures_of[__builtin_ctz(call)];
  return true;
}
int Fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

void None() {
  mode = Mode::kNone;
  squats = false;
  stop_after = 0;
}
void Once(std::uint64_t call, unsigned which_calls) { Set(Mode::kOnce, call, which_calls); }
void From(std::uint64_t call, unsigned which_calls) { Set(Mode::kFrom, call, which_calls); }
void Sometimes(unsigned one_in, unsigned which_calls) { Set(Mode::kSometimes, one_in, which_calls); }
std::uint64_t Calls() { return calls; }
std::uint64_t Failures() { return failures; }
void Forget() {
  failures = 0;
  for (auto& one : failures_of) one = 0;
}
bool StartedToFail() { return std::getenv("HZ_TEST_FAIL") != nullptr; }
Seen* Seen::Shared(int file) {
  if (ftruncate(file, sizeof(Seen)) != 0) return nullptr;
  const TestsOwn own;
  void* at = mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<Seen*>(at);
}
void Seen::Note() {
  for (unsigned kind = 0; kind < kKinds; ++kind) of_kind[kind] += static_cast<unsigned>(failures_of[kind]);
}
void Squat(std::size_t offset, bool from_end) {
  squat_offset = offset;
  squat_from_end = from_end;
  squatted = nullptr;
  squats = true;
}
const void* Squatted() { return squatted; }
void StopMovesAfter(std::size_t bytes) { stop_after = bytes; }

}  // namespace hz_test::failing

using namespace hz_test::failing;

extern "C" {

void* __real_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void* at, std::size_t bytes);
int __real_mprotect(void* at, std::size_t bytes, int protection);
void* __real_mremap(void* at, std::size_t old_bytes, std::size_t bytes, int flags, ...);
int __real_madvise(void* at, std::size_t bytes, int advice);

void* __wrap_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  static const bool no_place = std::getenv("HZ_TEST_RESERVED") != nullptr;
  const bool asks = at != nullptr && protection == PROT_NONE;
  if (!(no_place && asks) && !Fails(kMap)) return __real_mmap(at, bytes, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

// Where a mapping would have to be split and there are too many.
int __wrap_munmap(void* at, std::size_t bytes) {
  if (!Fails(kUnmap)) return __real_munmap(at, bytes);
  errno = ENOMEM;
  return -1;
}

int __wrap_mprotect(void* at, std::size_t bytes, int protection) {
  if (!Fails(kProtect)) return __real_mprotect(at, bytes, protection);
  errno = ENOMEM;
  return -1;
}

// Some of the kernel's reasons are found before the target is unmapped, a limit of address space after it.
void* __wrap_mremap(void* at, std::size_t old_bytes, std::size_t bytes, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  void* to = va_arg(arguments, void*);
  va_end(arguments);
  if (squats && (flags & MREMAP_FIXED) != 0) {
    __real_munmap(to, bytes);
    void* place =
        static_cast<char*>(to) + (squat_from_end ? bytes - squat_offset - kSquattedBytes : squat_offset);
    squatted = __real_mmap(place, kSquattedBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    std::memset(squatted, kSquatter, kSquattedBytes);
    ++failures;
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (stop_after != 0 && (flags & MREMAP_FIXED) != 0 && bytes > stop_after) {
    __real_munmap(static_cast<char*>(to) + stop_after, bytes - stop_after);
    if (__real_mremap(at, stop_after, stop_after, flags, to) != MAP_FAILED) ++failures;
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (!Fails(kMove)) return __real_mremap(at, old_bytes, bytes, flags, to);
  if ((flags & MREMAP_FIXED) != 0 && Calls() % 4 != 0) __real_munmap(to, bytes);
  errno = ENOMEM;
  return MAP_FAILED;
}

int __wrap_madvise(void* at, std::size_t bytes, int advice) {
  static constexpr int kReasons[] = {EAGAIN, EINVAL, ENOMEM};
  if (!Fails(kAdvise)) return __real_madvise(at, bytes, advice);
  errno = kReasons[Calls() % 3];
  return -1;
}

// --- what else src/os asks for

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
