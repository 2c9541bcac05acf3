// SPDX-License-Identifier: Apache-2.0
//
// See failing_calls.hpp: what is counted, and the calls about memory. The linker gives every call of `mmap`
// in this program to `__wrap_mmap`.
#include "fault/failing_calls.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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

}  // namespace

bool Fails(unsigned call) {
  static bool begun = false;
  if (!begun && call != kHook && call != kFile) begun = true, FromTheStart();
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

}  // extern "C"
