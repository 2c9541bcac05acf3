// SPDX-License-Identifier: Apache-2.0
//
// Linux: the kernel is asked directly. Libraries wrap the C library's functions, and their wrappers allocate,
// while the heap asks with its locks held. See calls.hpp for the contract. Costs what the C library's
// functions do, without errno.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Every system call of ours passes here: tests replace it by their own function (--wrap).
extern "C" __attribute__((visibility("hidden"))) long hz_system_call(long number, long a, long b, long c,
                                                                     long d, long e, long f);

namespace hz::os {

// Returns a value that the kernel passed to the process at its start (AT_PAGESZ and others), or 0 if it
// passed none.
std::uintptr_t auxiliary_value(std::uint64_t type);

namespace call {

template <class T>
long word(T value) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<long>(value);
  else
    return static_cast<long>(value);
}
template <class... Words>
long make(long number, Words... words) {
  const long all[6] = {word(words)...};
  return hz_system_call(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}

// --- memory

inline long mmap(void* at, std::size_t bytes, int protection, int flags) {
  return make(SYS_mmap, at, bytes, protection, flags, -1, 0);
}
inline long munmap(void* at, std::size_t bytes) { return make(SYS_munmap, at, bytes); }
inline long mprotect(void* at, std::size_t bytes, int protection) {
  return make(SYS_mprotect, at, bytes, protection);
}
inline long mremap(void* at, std::size_t bytes, std::size_t new_bytes, int flags, void* to) {
  return make(SYS_mremap, at, bytes, new_bytes, flags, to);
}
inline long madvise(void* at, std::size_t bytes, int advice) { return make(SYS_madvise, at, bytes, advice); }

// --- files

// A relative path is meant from `folder`.
inline long open_at(long folder, const char* path, int flags, unsigned mode = 0) {
  return make(SYS_openat, folder, path, flags, mode);
}
inline long open(const char* path, int flags, unsigned mode = 0) {
  return open_at(AT_FDCWD, path, flags, mode);
}
inline long read(long file, void* out, std::size_t room) { return make(SYS_read, file, out, room); }
inline long pread(long file, void* out, std::size_t room, std::uint64_t from) {
  return make(SYS_pread64, file, out, room, from);
}
inline long write(long file, const void* text, std::size_t bytes) {
  return make(SYS_write, file, text, bytes);
}
inline long close(long file) { return make(SYS_close, file); }
// A copy with a number that is no smaller than `least`, and that a new program does not inherit.
inline long duplicate(long file, int least) { return make(SYS_fcntl, file, F_DUPFD_CLOEXEC, least); }
inline long rename_at(long from_folder, const char* from, long to_folder, const char* to) {
  return make(SYS_renameat, from_folder, from, to_folder, to);
}
inline long unlink_at(long folder, const char* path) { return make(SYS_unlinkat, folder, path, 0); }
inline long access(const char* path, int how) { return make(SYS_faccessat, AT_FDCWD, path, how); }
inline long readlink_at(long folder, const char* path, char* out, std::size_t room) {
  return make(SYS_readlinkat, folder, path, out, room);
}
inline long readlink(const char* path, char* out, std::size_t room) {
  return readlink_at(AT_FDCWD, path, out, room);
}
inline long lstat_at(long folder, const char* path, struct stat* out) {
  return make(SYS_newfstatat, folder, path, out, AT_SYMLINK_NOFOLLOW);
}
inline long fstat(long file, struct stat* out) { return make(SYS_fstat, file, out); }
inline long fchmod(long file, unsigned mode) { return make(SYS_fchmod, file, mode); }
inline long ftruncate(long file, long bytes) { return make(SYS_ftruncate, file, bytes); }
inline long getcwd(char* out, std::size_t room) { return make(SYS_getcwd, out, room); }

// --- the process and the machine

inline long getpid() { return make(SYS_getpid); }
inline long gettid() { return make(SYS_gettid); }
inline long geteuid() { return make(SYS_geteuid); }
inline long getrlimit(int resource, rlimit* limit) { return make(SYS_prlimit64, 0, resource, 0, limit); }
inline long sysinfo(struct sysinfo* out) { return make(SYS_sysinfo, out); }
inline long sched_yield() { return make(SYS_sched_yield); }
inline long sched_getaffinity(long thread, std::size_t bytes, void* mask) {
  return make(SYS_sched_getaffinity, thread, bytes, mask);
}
inline long prctl(int what, std::uintptr_t a, std::uintptr_t b, std::uintptr_t c, const void* d) {
  return make(SYS_prctl, what, a, b, c, d);
}
inline long membarrier(int command) { return make(SYS_membarrier, command, 0, 0); }
inline long futex(const std::uint32_t* word, int what, std::uint32_t value, const timespec* timeout) {
  return make(SYS_futex, word, what, value, timeout, 0, 0);
}
// A child of one thread, without what the C library and the program do at a fork. The program does not see
// it: there is no signal at its end, and a wait for any child passes it over. (QEMU makes no such child.) Nor
// does a debugger, which would take a child without a signal for a thread.
inline long fork() {
  const long child = make(SYS_clone, CLONE_UNTRACED, 0, 0, 0, 0);
  return child == -EINVAL ? make(SYS_clone, SIGCHLD, 0, 0, 0, 0) : child;
}
inline long wait4(long child, int* status, int how) {
  return make(SYS_wait4, child, status, how | __WALL, 0);
}
inline long kill(long process, int signal) { return make(SYS_kill, process, signal); }
[[noreturn]] inline void exit_group(int code) {
  for (;;) make(SYS_exit_group, code);
}
// `signals` and `before` are of 64 signals.
inline long rt_sigprocmask(int how, const std::uint64_t* signals, std::uint64_t* before) {
  return make(SYS_rt_sigprocmask, how, signals, before, sizeof *signals);
}
inline long rt_sigpending(std::uint64_t* signals) {
  return make(SYS_rt_sigpending, signals, sizeof *signals);
}
// Takes one of these signals that is pending, and does not wait for one.
inline long take_signal(const std::uint64_t* signals) {
  constexpr timespec kNow = {0, 0};
  return make(SYS_rt_sigtimedwait, signals, 0, &kNow, sizeof *signals);
}
// Without a system call wherever the kernel's vDSO can.
unsigned getcpu();
void clock_gettime(clockid_t clock, timespec* out);

// --- sockets

inline long socket(int domain, int type, int protocol) { return make(SYS_socket, domain, type, protocol); }
inline long bind(long file, const sockaddr* name, socklen_t bytes) {
  return make(SYS_bind, file, name, bytes);
}
inline long listen(long file, int waiting) { return make(SYS_listen, file, waiting); }
inline long accept4(long file, int flags) { return make(SYS_accept4, file, 0, 0, flags); }
inline long getsockopt(long file, int level, int option, void* out, socklen_t* bytes) {
  return make(SYS_getsockopt, file, level, option, out, bytes);
}
inline long recv(long file, void* out, std::size_t room, int flags) {
  return make(SYS_recvfrom, file, out, room, flags, 0, 0);
}
inline long send(long file, const void* text, std::size_t bytes, int flags) {
  return make(SYS_sendto, file, text, bytes, flags, 0, 0);
}
inline long shutdown(long file, int how) { return make(SYS_shutdown, file, how); }
inline long ppoll(pollfd* one, timespec* timeout) { return make(SYS_ppoll, one, 1, timeout, 0, 0); }

}  // namespace call
}  // namespace hz::os
