// SPDX-License-Identifier: Apache-2.0
//
// A system whose pages are HZ_TEST_PAGE bytes: the memory functions of the C library as such a kernel has
// them, in place of the real ones in the programs that this is linked into, and so in our preloaded library.
// An address or a length that is no multiple is refused and counted (lengths of mmap and munmap are rounded
// up, as kernels do). Memory from mmap is aligned to the page.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include "life/pages.hpp"

namespace hz_test {

std::atomic<std::uint64_t> emulated_calls{0}, refused_calls{0};

namespace {

constexpr std::uintptr_t kMask = HZ_TEST_PAGE - 1;

std::size_t Up(std::size_t n) { return (n + kMask) & ~kMask; }

// Counts; false and EINVAL if any of the numbers is no multiple of the page.
bool Whole(std::uintptr_t a, std::uintptr_t b = 0, std::uintptr_t c = 0, std::uintptr_t d = 0) {
  emulated_calls.fetch_add(1, std::memory_order_relaxed);
  if (((a | b | c | d) & kMask) == 0) return true;
  refused_calls.fetch_add(1, std::memory_order_relaxed);
  errno = EINVAL;
  return false;
}

std::uintptr_t Number(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

void* Raw(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

void* Map(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  constexpr int kExactly = MAP_FIXED | 0x100000;  // MAP_FIXED_NOREPLACE
  if ((flags & kExactly) != 0) {
    return Whole(Number(at)) ? Raw(at, Up(bytes), protection, flags, fd, offset) : MAP_FAILED;
  }
  if ((flags & MAP_ANONYMOUS) == 0) return Raw(at, bytes, protection, flags, fd, offset);
  Whole(0);
  auto* raw = static_cast<char*>(Raw(nullptr, Up(bytes) + HZ_TEST_PAGE, protection, flags, fd, offset));
  if (raw == MAP_FAILED) return raw;
  const std::size_t before = Up(Number(raw)) - Number(raw);
  if (before != 0) syscall(SYS_munmap, raw, before);
  if (before != HZ_TEST_PAGE) syscall(SYS_munmap, raw + before + Up(bytes), HZ_TEST_PAGE - before);
  return raw + before;
}

}  // namespace
}  // namespace hz_test

using hz_test::Number;
using hz_test::Whole;

extern "C" {

void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return hz_test::Map(at, bytes, protection, flags, fd, offset);
}
#if !defined(mmap64)  // musl: another name of mmap
void* mmap64(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return hz_test::Map(at, bytes, protection, flags, fd, offset);
}
#endif
int munmap(void* at, std::size_t bytes) noexcept {
  return Whole(Number(at)) ? static_cast<int>(syscall(SYS_munmap, at, hz_test::Up(bytes))) : -1;
}
int mprotect(void* at, std::size_t bytes, int protection) noexcept {
  return Whole(Number(at), bytes) ? static_cast<int>(syscall(SYS_mprotect, at, bytes, protection)) : -1;
}
int madvise(void* at, std::size_t bytes, int advice) noexcept {
  return Whole(Number(at), bytes) ? static_cast<int>(syscall(SYS_madvise, at, bytes, advice)) : -1;
}
void* mremap(void* from, std::size_t old_bytes, std::size_t bytes, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  if (!Whole(Number(from), old_bytes, bytes, Number(to))) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mremap, from, old_bytes, bytes, flags, to));
}
int getpagesize() noexcept { return HZ_TEST_PAGE; }
}
