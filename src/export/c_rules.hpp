// SPDX-License-Identifier: Apache-2.0
//
// The rules of C and POSIX around the heap: ENOMEM, EINVAL, zero sizes. Shared by the malloc family, the
// direct API and jemalloc's functions; inlined, so that the hot path stays one function.
#pragma once

#include <errno.h>

#include <bit>
#include <cstring>

#include "export/line.hpp"

namespace hz::c_rules {

HZ_COLD inline void* no_memory() {
  errno = ENOMEM;
  return nullptr;
}
HZ_COLD inline void* invalid() {
  errno = EINVAL;
  return nullptr;
}
inline void* reallocarray(void* block, std::size_t count, std::size_t size,
                          void* (*resize)(void*, std::size_t) = &ThisHeap::realloc) {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : resize(block, bytes);
}

inline void* aligned(std::size_t alignment, std::size_t size) {
  if (!is_power_of_two(alignment)) return invalid();
  return ThisHeap::aligned(alignment, size);
}

// As glibc up to 2.37: an alignment that is no power of two counts as the next one. The standard leaves it
// undefined (C11) or has it fail (C17), but programs ask for 0, 24 or 48.
HZ_COLD inline void* aligned_rounded(std::size_t alignment, std::size_t size) {
  constexpr std::size_t kMost = SIZE_MAX / 2 + 1;
  if (alignment > kMost) return invalid();
  return ThisHeap::aligned(std::bit_ceil(alignment), size);
}
inline void* aligned_as_glibc(std::size_t alignment, std::size_t size) {
  if (HZ_UNLIKELY(!is_power_of_two(alignment))) return aligned_rounded(alignment, size);
  return ThisHeap::aligned(alignment, size);
}

inline void* aligned_calloc(std::size_t alignment, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (!is_power_of_two(alignment)) return invalid();
  return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : ThisHeap::zeroed(alignment, bytes);
}

// Leaves the block where it is as realloc does, if it lies right; a huge one grows there, if there is room.
inline void* aligned_realloc(void* block, std::size_t alignment, std::size_t size) {
  if (!is_power_of_two(alignment)) return invalid();
  if (block == nullptr) return ThisHeap::aligned(alignment, size);
  if (alignment <= kMinAlign || size == 0) return ThisHeap::realloc(block, size);
  const std::size_t old_size = ThisHeap::usable_size(block);  // reports what is no block
  if (old_size == 0 && !ThisHeap::is_empty(block)) return no_memory();
  const bool lies_right = (address(block) & (alignment - 1)) == 0;
  const auto fits = [&](std::size_t usable) {
    return lies_right && (ThisHeap::kExactSizes ? size == usable : size <= usable && size >= usable / 2);
  };
  if (fits(old_size) || (lies_right && fits(ThisHeap::resize_in_place(block, size)))) return block;
  // Both are huge, and such blocks begin with a granule: pages move, not bytes.
  if (alignment <= kGranule && old_size > kLargeMax && size > kLargeMax)
    return ThisHeap::realloc(block, size);
  void* moved = ThisHeap::aligned_beside(block, alignment, size);
  if (moved == nullptr) return lies_right && size <= old_size ? ThisHeap::kept(block, size) : nullptr;
  std::memcpy(moved, block, size < old_size ? size : old_size);
  ThisHeap::free(block);
  return moved;
}

// Returns the size itself if no block of that size can exist; the allocation then fails.
inline std::size_t good_size(std::size_t size) {
  const std::size_t usable = ThisHeap::good_size(1, size);
  return usable != 0 ? usable : size;
}

inline void* expand(void* block, std::size_t size) {
  const std::size_t usable = ThisHeap::usable_size(block);  // reports what is no block
  if (usable == 0) return nullptr;
  return usable >= size || ThisHeap::resize_in_place(block, size) >= size ? block : nullptr;
}

}  // namespace hz::c_rules
