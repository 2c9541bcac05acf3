// SPDX-License-Identifier: Apache-2.0
//
// calloc gives zeroes, also where dirty blocks were freed before, and does not touch pages that are zero
// already.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/gnu_malloc.hpp"
#include "support/pattern.hpp"
#include "support/rss.hpp"
#include "support/sanitizers.hpp"

namespace {

using hz_test::IsZero;
using hz_test::kMiB;

void ExpectZeroesAfterDirtyFrees(std::size_t size, std::size_t count) {
  std::vector<void*> dirty;
  for (std::size_t i = 0; i < count; ++i) {
    dirty.push_back(std::malloc(size));
    ASSERT_NE(nullptr, dirty.back());
    std::memset(dirty.back(), 0xA5, malloc_usable_size(dirty.back()));
  }
  for (void* block : dirty) std::free(block);
  for (void*& block : dirty) {
    block = std::calloc(1, size);
    ASSERT_NE(nullptr, block);
    EXPECT_TRUE(IsZero(block, size)) << size;
  }
  for (void* block : dirty) std::free(block);
}

TEST(Calloc, ZeroesEverySmallSize) {
  for (std::size_t size = 1; size <= 2100; size += 5) ExpectZeroesAfterDirtyFrees(size, 40);
}

TEST(Calloc, ZeroesEveryMediumSize) {
  for (std::size_t size = 2048; size <= 70'000; size += 509) ExpectZeroesAfterDirtyFrees(size, 6);
}

TEST(Calloc, ZeroesLargeSizes) {
  for (std::size_t size = 65'536; size <= 24 * kMiB; size += size / 3) ExpectZeroesAfterDirtyFrees(size, 3);
}

TEST(Calloc, ZeroesAfterTrim) {
  std::vector<void*> dirty;
  for (int i = 0; i < 4000; ++i) std::memset(dirty.emplace_back(std::malloc(3000)), 0xA5, 3000);
  for (void* block : dirty) std::free(block);
  malloc_trim(0);
  ExpectZeroesAfterDirtyFrees(3000, 2000);
}

TEST(Calloc, CountTimesSize) {
  for (const std::size_t count : {1u, 3u, 7u, 100u, 1001u}) {
    for (const std::size_t size : {1u, 5u, 16u, 333u, 5000u}) {
      void* block = std::calloc(count, size);
      ASSERT_NE(nullptr, block);
      EXPECT_GE(malloc_usable_size(block), count * size);
      EXPECT_TRUE(IsZero(block, count * size));
      std::memset(block, 0xA5, malloc_usable_size(block));
      std::free(block);
    }
  }
}

TEST(Calloc, LeavesFreshPagesUntouched) {
  const std::size_t before = hz_test::RssBytes();
  void* block = std::calloc(256, kMiB);
  ASSERT_NE(nullptr, block);
  if (!hz_test::kUnderTool) {
    EXPECT_LE(hz_test::RssBytes(), before + kMiB);
  }
  EXPECT_TRUE(IsZero(block, 256 * kMiB));
  std::free(block);
}

TEST(Calloc, LeavesFreshPagesOfLargeBlocksUntouched) {
  const std::size_t before = hz_test::RssBytes();
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(std::calloc(1, kMiB));
  EXPECT_LE(hz_test::RssBytes(), before + 4 * kMiB);
  for (void* block : blocks) {
    EXPECT_TRUE(IsZero(block, kMiB));
    std::free(block);
  }
}

}  // namespace
