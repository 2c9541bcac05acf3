// SPDX-License-Identifier: Apache-2.0
//
// Fills blocks with bytes that depend on a seed and the position, and checks them later: a block that was
// shared, moved wrongly or written by the allocator is found. Called by tests of any folder; allocates
// nothing. By the compiler's own copies, for tests of an allocator are built with -fno-builtin, and eight
// bytes would be a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hz_test {

inline std::uint64_t PatternWord(std::uint64_t seed, std::size_t index) {
  std::uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u;
  x ^= x >> 32;
  return x * 0xDABA0B6EB09322E3u;
}

inline void FillPattern(void* block, std::size_t size, std::uint64_t seed) {
  auto* bytes = static_cast<unsigned char*>(block);
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const std::uint64_t word = PatternWord(seed, at / 8);
    __builtin_memcpy(bytes + at, &word, 8);
  }
  const std::uint64_t last = PatternWord(seed, at / 8);
  __builtin_memcpy(bytes + at, &last, size - at);
}

// True if the first `size` bytes are what FillPattern with the same seed wrote.
inline bool HasPattern(const void* block, std::size_t size, std::uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    std::uint64_t found;
    __builtin_memcpy(&found, bytes + at, 8);
    if (found != PatternWord(seed, at / 8)) return false;
  }
  const std::uint64_t last = PatternWord(seed, at / 8);
  return __builtin_memcmp(bytes + at, &last, size - at) == 0;
}

inline bool IsFilledWith(const void* block, std::size_t size, unsigned char value) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  return size == 0 || (bytes[0] == value && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

inline bool IsZero(const void* block, std::size_t size) { return IsFilledWith(block, size, 0); }

inline bool IsAligned(const void* block, std::size_t alignment) {
  return (reinterpret_cast<std::uintptr_t>(block) & (alignment - 1)) == 0;
}

}  // namespace hz_test
