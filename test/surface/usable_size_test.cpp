// SPDX-License-Identifier: Apache-2.0
//
// malloc_usable_size: at least what was asked for, constant for the life of the block, and all of it usable.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "support/gnu_malloc.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::FillPattern;
using hz_test::HasPattern;

struct Block {
  void* address;
  std::size_t usable;
};

// Writes all usable bytes of all blocks, then verifies them: no two may share a byte, and no size may have
// changed.
void ExpectAllUsable(const std::vector<Block>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) FillPattern(blocks[i].address, blocks[i].usable, i);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(HasPattern(blocks[i].address, blocks[i].usable, i)) << "usable " << blocks[i].usable;
    EXPECT_EQ(blocks[i].usable, malloc_usable_size(blocks[i].address));
    std::free(blocks[i].address);
  }
}

void Keep(std::vector<Block>& blocks, void* address, std::size_t asked) {
  ASSERT_NE(nullptr, address) << asked;
  const std::size_t usable = malloc_usable_size(address);
  EXPECT_GE(usable, asked);
  blocks.push_back({address, usable});
}

TEST(UsableSize, OfNullIsZero) { EXPECT_EQ(0u, malloc_usable_size(hz_test::Opaque<void*>(nullptr))); }

TEST(UsableSize, OfPlainBlocks) {
  std::vector<Block> blocks;
  for (std::size_t size = 0; size < 5000; size += 3) Keep(blocks, std::malloc(size), size);
  for (std::size_t size = 5000; size < 600'000; size += 9973) Keep(blocks, std::malloc(size), size);
  for (const std::size_t size : {3'000'000u, 4'194'304u, 4'194'305u, 9'000'001u})
    Keep(blocks, std::malloc(size), size);
  ExpectAllUsable(blocks);
}

TEST(UsableSize, OfZeroedBlocks) {
  std::vector<Block> blocks;
  for (std::size_t size = 1; size < 300'000; size += 1 + size / 3) Keep(blocks, std::calloc(1, size), size);
  ExpectAllUsable(blocks);
}

TEST(UsableSize, OfAlignedBlocks) {
  std::vector<Block> blocks;
  for (std::size_t alignment = 16; alignment <= std::size_t{1} << 21; alignment *= 2) {
    for (const std::size_t size : {1u, 100u, 3000u, 20'000u, 70'000u, 300'000u}) {
      for (int i = 0; i < 3; ++i) Keep(blocks, memalign(alignment, size), size);
    }
  }
  ExpectAllUsable(blocks);
}

TEST(UsableSize, AfterRealloc) {
  std::vector<Block> blocks;
  for (const std::size_t from : {1u, 100u, 3000u, 70'000u, 5'000'000u}) {
    for (const std::size_t to : {1u, 99u, 2500u, 65'000u, 80'000u, 1'000'000u, 4'900'000u, 6'000'000u}) {
      Keep(blocks, std::realloc(std::malloc(from), to), to);
      Keep(blocks, std::realloc(memalign(4096, from), to), to);
    }
  }
  ExpectAllUsable(blocks);
}

// It belongs to the block, not to what happens around it.
TEST(UsableSize, IsConstantWhileOthersComeAndGo) {
  std::vector<Block> blocks;
  for (std::size_t size = 1; size < 200'000; size += 1 + size / 2) Keep(blocks, std::malloc(size), size);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t size = 1; size < 200'000; size += 1 + size / 5) std::free(std::malloc(size));
    malloc_trim(0);
    for (const Block& block : blocks) ASSERT_EQ(block.usable, malloc_usable_size(block.address));
  }
  ExpectAllUsable(blocks);
}

// realloc within the usable size needs no move.
TEST(UsableSize, ReallocWithinItStaysInPlace) {
  for (const std::size_t size : {20u, 100u, 1000u, 3000u, 70'000u}) {
    void* block = std::malloc(size);
    void* const before = hz_test::Opaque(block);
    block = std::realloc(block, malloc_usable_size(block));
    EXPECT_EQ(before, block) << size;
    std::free(block);
  }
}

}  // namespace
