// SPDX-License-Identifier: Apache-2.0
//
// See failing_calls.hpp: what is counted, and the system calls. The linker gives every call of
// `hz_system_call` in this program to `__wrap_hz_system_call`.
#include "fault/failing_calls.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "fault/calls.hpp"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

extern "C" long __real_hz_system_call(long number, long a, long b, long c, long d, long e, long f);

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
// key before that: the heap does not begin with one.
void FromTheStart() {
  const char* const said = std::getenv("HZ_TEST_FAIL");
  if (said == nullptr) return;
  constexpr std::size_t kWord = 5;  // "once ", "from "
  const std::uint64_t call = std::strtoull(said + kWord, nullptr, 10);
  // Who cannot wait goes round in circles.
  std::strncmp(said, "once ", kWord) == 0 ? Once(call, kAllCalls) : From(call, kAllCalls & ~kWait);
}

}  // namespace

bool Fails(unsigned call) {
  static bool begun = false;
  if (!begun && call != kHook) begun = true, FromTheStart();
  if (mode.load() == Mode::kNone || (which.load() & call) == 0 || TestsOwn::is) return false;
  if (!Decide(calls.fetch_add(1) + 1)) return false;
  ++failures;
  if (call < kProcessor) ++failures_of[__builtin_ctz(call)];
  return true;
}
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

namespace {

// Which kind a call of that number is; 0: it never fails.
unsigned KindOf(long number, long second) {
  switch (number) {
    case SYS_mmap: return kMap;
    case SYS_munmap: return kUnmap;
    case SYS_mprotect: return kProtect;
    case SYS_mremap: return kMove;
    case SYS_madvise: return kAdvise;
    case SYS_membarrier: return kBarrier;
    case SYS_futex: return (second & FUTEX_CMD_MASK) == FUTEX_WAIT ? kWait : 0;
    case SYS_sysinfo:
    case SYS_prlimit64:
    case SYS_prctl:
    case SYS_sched_getaffinity:
    case SYS_readlinkat:
    case SYS_faccessat: return kMachine;
    case SYS_openat:
    case SYS_read:
    case SYS_write:
    case SYS_fcntl:
    case SYS_renameat:
    case SYS_getcwd:
    case SYS_close_range: return kFile;
    case SYS_socket:
    case SYS_bind:
    case SYS_listen:
    case SYS_accept4:
    case SYS_ppoll:
    case SYS_getsockopt:
    case SYS_recvfrom:
    case SYS_sendto: return kSocket;
    default: return 0;
  }
}

long ErrorOf(long number) {
  static constexpr long kOfAdvice[] = {EAGAIN, EINVAL, ENOMEM};
  switch (number) {
    case SYS_mmap:
    case SYS_munmap:  // where a mapping would have to be split and there are too many
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_ppoll: return -ENOMEM;
    case SYS_madvise: return -kOfAdvice[Calls() % 3];
    case SYS_membarrier:
    case SYS_close_range: return -ENOSYS;
    case SYS_futex: return -EINTR;
    case SYS_sysinfo: return -EFAULT;
    case SYS_readlinkat:
    case SYS_faccessat:
    case SYS_renameat: return -EACCES;
    case SYS_openat:
    case SYS_fcntl:
    case SYS_socket:
    case SYS_accept4: return -EMFILE;
    case SYS_read: return -EIO;
    case SYS_write: return -ENOSPC;
    case SYS_getcwd: return -ENOENT;
    case SYS_bind:
    case SYS_listen: return -EADDRINUSE;
    case SYS_getsockopt: return -ENOBUFS;
    case SYS_recvfrom: return -ECONNRESET;
    case SYS_sendto: return -EPIPE;
    default: return -EINVAL;
  }
}

void* Pointer(long at) { return reinterpret_cast<void*>(at); }

long Real(long number, long a, long b, long c, long d, long e, long f) {
  return __real_hz_system_call(number, a, b, c, d, e, f);
}

// A move that stops where the test has said; 0 where it has said nothing.
long Stopped(long at, long bytes, long flags, long to) {
  const auto room = static_cast<std::size_t>(bytes);
  if (squats) {
    munmap(Pointer(to), room);
    void* place = static_cast<char*>(Pointer(to)) +
                  (squat_from_end ? room - squat_offset - kSquattedBytes : squat_offset);
    squatted =
        mmap(place, kSquattedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    std::memset(squatted, kSquatter, kSquattedBytes);
    ++failures;
    return -ENOMEM;
  }
  const std::size_t stop = stop_after;
  if (stop == 0 || room <= stop) return 0;
  munmap(static_cast<char*>(Pointer(to)) + stop, room - stop);
  const auto moved = static_cast<long>(stop);
  if (Real(SYS_mremap, at, moved, moved, flags, to, 0) >= 0) ++failures;
  return -ENOMEM;
}

}  // namespace

extern "C" long __wrap_hz_system_call(long number, long a, long b, long c, long d, long e, long f) {
  static const bool no_place = std::getenv("HZ_TEST_RESERVED") != nullptr;
  if (no_place && number == SYS_mmap && a != 0 && c == PROT_NONE) return -ENOMEM;
  const bool moves = number == SYS_mremap && (d & MREMAP_FIXED) != 0;
  if (const long stopped = moves ? Stopped(a, c, d, e) : 0) return stopped;
  const unsigned kind = KindOf(number, b);
  if (kind == 0 || !Fails(kind)) return Real(number, a, b, c, d, e, f);
  // Some of the kernel's reasons are found before the target is unmapped, a limit of address space after it.
  if (moves && Calls() % 4 != 0) munmap(Pointer(e), static_cast<std::size_t>(c));
  return ErrorOf(number);
}

// hz::os::current_cpu, which seldom takes a system call: 0 where the number is unknown.
extern "C" unsigned __real__ZN2hz2os11current_cpuEv();
extern "C" unsigned __wrap__ZN2hz2os11current_cpuEv() {
  return Fails(kProcessor) ? 0 : __real__ZN2hz2os11current_cpuEv();
}
