// SPDX-License-Identifier: Apache-2.0
//
// A system whose pages are HZ_TEST_PAGE bytes: the system calls about memory as such a kernel has them, in
// place of ours in the programs that this is linked into (--wrap).
// An address or a length that is no multiple is refused and counted (lengths of mmap and munmap are rounded
// up, as kernels do). Memory from mmap is aligned to the page.
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>

#include "life/pages.hpp"

extern "C" long __real_hz_system_call(long number, long a, long b, long c, long d, long e, long f);

namespace hz_test {

std::atomic<std::uint64_t> emulated_calls{0}, refused_calls{0};

namespace {

constexpr std::uintptr_t kMask = HZ_TEST_PAGE - 1;

// Counts; false if any of the numbers is no multiple of the page.
bool Whole(long a, long b = 0, long c = 0, long d = 0) {
  emulated_calls.fetch_add(1, std::memory_order_relaxed);
  if ((static_cast<std::uintptr_t>(a | b | c | d) & kMask) == 0) return true;
  refused_calls.fetch_add(1, std::memory_order_relaxed);
  return false;
}
long Up(long n) { return static_cast<long>((static_cast<std::uintptr_t>(n) + kMask) & ~kMask); }

long Ask(long number, long a, long b, long c = 0, long d = 0, long e = 0, long f = 0) {
  return __real_hz_system_call(number, a, b, c, d, e, f);
}

long Map(long at, long bytes, long protection, long flags, long fd, long offset) {
  constexpr long kExactly = MAP_FIXED | 0x100000;  // MAP_FIXED_NOREPLACE
  if ((flags & kExactly) != 0)
    return Whole(at) ? Ask(SYS_mmap, at, Up(bytes), protection, flags, fd, offset) : -EINVAL;
  Whole(0);
  const long raw = Ask(SYS_mmap, 0, Up(bytes) + HZ_TEST_PAGE, protection, flags, fd, offset);
  if (raw < 0) return raw;
  const long before = Up(raw) - raw;
  if (before != 0) Ask(SYS_munmap, raw, before);
  if (before != HZ_TEST_PAGE) Ask(SYS_munmap, raw + before + Up(bytes), HZ_TEST_PAGE - before);
  return raw + before;
}

}  // namespace
}  // namespace hz_test

extern "C" long __wrap_hz_system_call(long number, long a, long b, long c, long d, long e, long f) {
  using namespace hz_test;
  switch (number) {
    case SYS_mmap: return Map(a, b, c, d, e, f);
    case SYS_munmap: return Whole(a) ? Ask(number, a, Up(b)) : -EINVAL;
    case SYS_mprotect:
    case SYS_madvise: return Whole(a, b) ? Ask(number, a, b, c) : -EINVAL;
    case SYS_mremap:
      return Whole(a, b, c, (d & MREMAP_FIXED) != 0 ? e : 0) ? Ask(number, a, b, c, d, e) : -EINVAL;
    default: return Ask(number, a, b, c, d, e, f);
  }
}

// hz::os::auxiliary_value
extern "C" unsigned long __real__ZN2hz2os15auxiliary_valueEm(unsigned long type);
extern "C" unsigned long __wrap__ZN2hz2os15auxiliary_valueEm(unsigned long type) {
  return type == AT_PAGESZ ? HZ_TEST_PAGE : __real__ZN2hz2os15auxiliary_valueEm(type);
}
