// SPDX-License-Identifier: Apache-2.0
//
// What a block of up to many MiB holds while memory is short: all of its first 64 KiB, a word in every
// sixteenth page after that, and its last byte. So a walk over hundreds of large blocks needs address space,
// but not the machine's memory. Called by the walk; allocates nothing.
#pragma once

#include <algorithm>

#include "stress/blocks.hpp"

namespace hz_test {

constexpr std::size_t kWritten = std::size_t{64} << 10;
constexpr std::size_t kWordStride = std::size_t{64} << 10;

inline void FillBlock(const Block& block) {
  auto* bytes = static_cast<unsigned char*>(block.at);
  FillPattern(bytes, std::min(block.size, kWritten), block.seed);
  for (std::size_t at = kWritten; at + 8 < block.size; at += kWordStride)
    FillPattern(bytes + at, 8, block.seed + at);
  if (block.size > kWritten) bytes[block.size - 1] = static_cast<unsigned char>(block.seed);
}

// The first `bytes` of a block that was filled at its full size.
inline bool HoldsUpTo(const void* block, const Block& filled, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(block);
  if (!HasPattern(at, std::min(bytes, kWritten), filled.seed)) return false;
  for (std::size_t word = kWritten; word + 8 < bytes; word += kWordStride) {
    if (!HasPattern(at + word, 8, filled.seed + word)) return false;
  }
  return bytes < filled.size || filled.size <= kWritten ||
         at[filled.size - 1] == static_cast<unsigned char>(filled.seed);
}
inline bool Holds(const Block& block) { return HoldsUpTo(block.at, block, block.size); }

// As much of it as FillBlock writes, and the rest of the small ones.
inline bool LooksZero(const void* block, std::size_t bytes) {
  constexpr std::size_t kRead = std::size_t{1} << 20;
  const auto* at = static_cast<const unsigned char*>(block);
  if (!IsZero(at, std::min(bytes, kRead))) return false;
  for (std::size_t word = kRead; word + 8 < bytes; word += kWordStride) {
    if (!IsZero(at + word, 8)) return false;
  }
  return bytes == 0 || at[bytes - 1] == 0;
}

}  // namespace hz_test
