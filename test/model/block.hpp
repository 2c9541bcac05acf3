// SPDX-License-Identifier: Apache-2.0
//
// What the oracle knows of a block, and what lies in it: all of a small one; of a large one its head, a word
// in every page, and its tail. Called by model and pairs; allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "support/pattern.hpp"

namespace hz_test {

struct Block {
  unsigned char* at = nullptr;
  std::size_t size = 0;       // as asked for
  std::size_t usable = 0;     // as told when it was made
  std::size_t alignment = 0;  // as asked for; 0 if by malloc
  bool resized = false;       // then sized frees may not name its first size
  std::uint64_t id = 0;
};

constexpr std::size_t kHead = std::size_t{64} << 10, kPage = std::size_t{4} << 10;

inline void Write(const Block& block) {
  FillPattern(block.at, std::min(block.usable, kHead), block.id);
  for (std::size_t page = kHead; page + 8 <= block.usable; page += kPage)
    FillPattern(block.at + page, 8, block.id + page);
  if (block.usable > kHead) block.at[block.usable - 1] = static_cast<unsigned char>(block.id);
}

inline bool HoldsUpTo(const Block& block, std::size_t bytes) {
  if (!HasPattern(block.at, std::min(bytes, kHead), block.id)) return false;
  for (std::size_t page = kHead; page + 8 <= bytes; page += kPage) {
    // The last byte may lie in a page's word.
    const std::size_t length = page + 8 == block.usable ? 7 : 8;
    if (!HasPattern(block.at + page, length, block.id + page)) return false;
  }
  return true;
}
inline bool Holds(const Block& block) {
  return HoldsUpTo(block, block.usable) &&
         (block.usable <= kHead || block.at[block.usable - 1] == static_cast<unsigned char>(block.id));
}

}  // namespace hz_test
