// SPDX-License-Identifier: Apache-2.0
//
// jemalloc's functions that allocate, resize, free and measure, over the same heap as malloc. Called by
// programs that know jemalloc's interface; a test of the flags and a jump more than malloc costs. Which cache
// or which arena a block comes from is this heap's business: those flags are ignored.
#include <stdlib.h>

#include <algorithm>
#include <cstring>

#include "base/units.hpp"
#include "export/jemalloc/heap.hpp"
#include "hakozuna/hakozuna.h"
#include "os/os.hpp"

using hz::jemalloc::good_size;
using hz::jemalloc::resize_in_place;

namespace {

// Of the flags, as jemalloc's manual defines them: the binary logarithm of the alignment, and a bit.
constexpr int kAlignment = 0x3f, kZero = 0x40;

HZ_INLINE std::size_t alignment_in(int flags) { return std::size_t{1} << (flags & kAlignment); }

// Bytes of a block from `begin` to `end`, which its owner has not seen, read as zero from here on. Of many,
// whole granules go to the system.
void clear(void* block, std::size_t begin, std::size_t end) {
  constexpr std::size_t kWorthACall = hz::kMiB;
  const std::uintptr_t at = hz::address(block) + begin, last = hz::address(block) + end;
  const std::uintptr_t first_whole = hz::align_up(at, hz::kGranule), last_whole = last & ~(hz::kGranule - 1);
  if (last_whole < first_whole + kWorthACall ||
      !hz::os::purge(hz::pointer(first_whole), last_whole - first_whole)) {
    std::memset(hz::pointer(at), 0, last - at);
    return;
  }
  std::memset(hz::pointer(at), 0, first_whole - at);
  std::memset(hz::pointer(last_whole), 0, last - last_whole);
}

// All that the block has reads as zero: a growth that asks for zeroes, too, begins behind it.
HZ_SLOW void* allocate(std::size_t size, int flags) {
  const std::size_t alignment = alignment_in(flags);
  if ((flags & kZero) == 0) return hz_aligned_alloc(alignment, size);
  const std::size_t cleared = std::max(size, good_size(alignment, size));
  void* block = hz_aligned_calloc(alignment, 1, cleared);
  // While some blocks are guarded samples, the good size is that of a sample, and others have more.
  const std::size_t usable = block == nullptr ? 0 : hz_usable_size(block);
  if (usable > cleared) clear(block, cleared, usable);
  return block;
}

}  // namespace

HZ_EXPORT void* mallocx(size_t size, int flags) {
  return HZ_LIKELY((flags & (kAlignment | kZero)) == 0) ? malloc(size) : allocate(size, flags);
}

// No size is undefined in jemalloc; here it is the smallest block, and never the end of one.
HZ_EXPORT void* rallocx(void* ptr, size_t size, int flags) {
  if (ptr == nullptr) return allocate(size, flags);
  const size_t before = (flags & kZero) != 0 ? hz_usable_size(ptr) : 0;
  void* block = hz_aligned_realloc(ptr, alignment_in(flags), std::max<size_t>(size, 1));
  if (block == nullptr || (flags & kZero) == 0) return block;
  const size_t usable = hz_usable_size(block);
  if (usable > before) clear(block, before, usable);
  return block;
}

HZ_EXPORT size_t xallocx(void* ptr, size_t size, size_t extra, int flags) {
  const size_t before = hz_usable_size(ptr);  // reports what is no block
  if (before == 0 || (hz::address(ptr) & (alignment_in(flags) - 1)) != 0) return before;
  const size_t least = std::max<size_t>(size, 1), most = least + std::min(extra, SIZE_MAX - least);
  size_t usable = resize_in_place(ptr, most);
  if (usable < least) usable = resize_in_place(ptr, least);
  if (usable > before && (flags & kZero) != 0) clear(ptr, before, usable);
  return usable;
}

HZ_EXPORT size_t sallocx(const void* ptr, int) { return hz_usable_size(ptr); }
HZ_EXPORT void dallocx(void* ptr, int) { free(ptr); }
HZ_EXPORT void sdallocx(void* ptr, size_t size, int flags) {
  hz_free_aligned_sized(ptr, alignment_in(flags), size);
}
// What Redis adds to its copy of jemalloc, for its active defragmentation.
HZ_EXPORT int je_get_defrag_hint(void* ptr) { return hz_defrag_hint(ptr); }
HZ_EXPORT size_t nallocx(size_t size, int flags) { return good_size(alignment_in(flags), size); }
