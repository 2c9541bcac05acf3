// SPDX-License-Identifier: Apache-2.0
//
// The units in which memory is dealt out, and arithmetic on addresses. Used by everything; constants only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.hpp"

namespace hz {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;
inline constexpr std::size_t kGiB = 1024 * kMiB;

// The granule is a multiple of every page size in use (4, 16 and 64 KiB), so all that is purged is whole
// pages.
inline constexpr unsigned kGranuleShift = 16;
inline constexpr std::size_t kGranule = std::size_t{1} << kGranuleShift;

// The unit of carving and of page tags; independent of the system's page size.
inline constexpr unsigned kPageShift = 12;
inline constexpr std::size_t kPage = std::size_t{1} << kPageShift;
inline constexpr unsigned kPagesPerGranule = static_cast<unsigned>(kGranule / kPage);
inline constexpr std::size_t kCacheLine = 64;

HZ_INLINE std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
HZ_INLINE void* pointer(std::uintptr_t a) { return reinterpret_cast<void*>(a); }

HZ_INLINE constexpr std::size_t align_up(std::size_t n, std::size_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}
HZ_INLINE constexpr bool is_power_of_two(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Position of the highest set bit; n must not be 0.
HZ_INLINE constexpr unsigned log2_floor(std::size_t n) {
  return 63U - static_cast<unsigned>(__builtin_clzll(n));
}

}  // namespace hz
