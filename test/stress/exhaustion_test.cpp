// SPDX-License-Identifier: Apache-2.0
//
// Memory runs out: the answer is NULL and ENOMEM, what is there stays intact, and all of it can be had again
// after it was freed. Small limits make a small heap, not a refusal to start.
#include <gtest/gtest.h>

#include <cerrno>

#include "stress/blocks.hpp"
#include "stress/limited.hpp"
#include "stress/pile.hpp"
#include "stress/threads.hpp"

namespace hz_test {
namespace {

// Fills memory with blocks of 2^low … 2^high bytes, twice.
void FillTwice(std::size_t limit, unsigned low, unsigned high) {
  std::size_t first = 0;
  for (int turn = 0; turn < 2; ++turn) {
    Random random(Seed());
    Pile pile;
    while (pile.Grow((std::size_t{1} << low) + LogSize(random, high))) {
    }
    if (turn == 0) {
      first = pile.Bytes();
      EXPECT_GT(first, limit / 3);
    } else {
      EXPECT_GT(pile.Bytes(), first / 10 * 8);
    }
    // Full is full: asking again is answered, too.
    for (int i = 0; i < 3; ++i) EXPECT_EQ(nullptr, api::Malloc(limit));
    EXPECT_TRUE(pile.FreeAll());
  }
  void* half = api::Malloc(limit / 3);
  EXPECT_NE(nullptr, half) << "what lay in small blocks must serve a large one";
  api::Free(half);
  ExpectNothingLost();
}

constexpr std::size_t kSmallLimit = 256 * kMiB;
constexpr std::size_t kLargeLimit = 1024 * kMiB;

TEST(Exhaustion, BySmallBlocks) {
  UnderLimitOf(kSmallLimit, [] { FillTwice(kSmallLimit, 4, 10); });
}
TEST(Exhaustion, ByMixedBlocks) {
  const std::size_t limit = Quick() ? kSmallLimit : kLargeLimit;
  UnderLimitOf(limit, [limit] { FillTwice(limit, 4, 17); });
}
TEST(Exhaustion, ByLargeBlocks) {
  UnderLimitOf(kSmallLimit, [] { FillTwice(kSmallLimit, 19, 20); });
}
TEST(Exhaustion, ByHugeBlocks) {
  UnderLimitOf(kSmallLimit, [] { FillTwice(kSmallLimit, 23, 23); });
}

// A block just above half of a granule has one to itself. What lies behind it makes room for others under a
// limit, and serves larger blocks again once it is free.
TEST(Exhaustion, ByBlocksOfHalfAGranule) {
  if (HasSeals()) GTEST_SKIP() << "a span's pages stay mapped, for they must not be touched while it is free";
  if (IsTiny()) GTEST_SKIP() << "a heap without a plan of addresses has regions";
  UnderLimitOf(kSmallLimit, [] {
    std::size_t first = 0;
    for (const std::size_t size : {33000, 60000, 100000, 33000}) {
      Pile pile;
      while (pile.Grow(size)) {
      }
      EXPECT_GT(pile.Bytes(), kSmallLimit / 8 * 5) << size;
      if (first == 0) first = pile.Bytes();
      if (size == 33000) {
        EXPECT_GT(pile.Bytes(), first / 100 * 95);
      }
      EXPECT_EQ(nullptr, api::Malloc(kSmallLimit / 2));
      EXPECT_TRUE(pile.FreeAll());
    }
    void* half = api::Malloc(kSmallLimit / 2);
    EXPECT_NE(nullptr, half);
    api::Free(half);
    ExpectNothingLost();
  });
}

TEST(Exhaustion, SaysNoMemory) {
  UnderLimitOf(kSmallLimit, [] {
    errno = 0;
    EXPECT_EQ(nullptr, api::Malloc(kSmallLimit));
    EXPECT_EQ(ENOMEM, errno) << "malloc, at once";
    Pile pile;
    errno = 0;
    while (pile.Grow(1000)) {
    }
    EXPECT_EQ(ENOMEM, errno) << "malloc, when all is used";
    errno = 0;
    EXPECT_EQ(nullptr, api::AlignedAlloc(4096, 8 * kMiB));
    EXPECT_EQ(ENOMEM, errno) << "aligned_alloc";
    errno = 0;
    EXPECT_EQ(nullptr, api::Realloc(nullptr, 8 * kMiB));
    EXPECT_EQ(ENOMEM, errno) << "realloc";
    EXPECT_TRUE(pile.FreeAll());
  });
}

TEST(Exhaustion, FailedReallocKeepsTheBlock) {
  UnderLimitOf(kSmallLimit, [] {
    for (std::size_t size : {std::size_t{100}, std::size_t{100000}, 6 * kMiB, 100 * kMiB}) {
      const Block block = MakeBlock(size);
      EXPECT_EQ(nullptr, api::Realloc(block.at, kSmallLimit));
      CheckAndFree(block);
    }
    ExpectNothingLost();
  });
}

// Threads that meet the end at the same time, each with a cache the others cannot see: nobody hangs.
TEST(Exhaustion, ByManyThreads) {
  UnderLimitOf(kSmallLimit, [] {
    // The same threads in every turn: what the heap has of the addresses it keeps, and then there may be none
    // for the stack of a new one.
    Barrier full(4);
    Together(4, [&](unsigned thread) {
      Random random(Seed() + thread);
      for (int turn = 0; turn < 3; ++turn) {
        Pile pile;
        while (pile.Grow(LogSize(random, thread % 2 == 0 ? 12 : 19))) {
        }
        full.Wait();
        EXPECT_TRUE(pile.FreeAll());
        full.Wait();
      }
    });
    Pile pile;
    while (pile.Grow(1000)) {
    }
    EXPECT_GT(pile.Bytes(), kSmallLimit / 4);
    EXPECT_TRUE(pile.FreeAll());
    ExpectNothingLost();
  });
}

class AddressSpace : public ::testing::TestWithParam<std::size_t> {};

TEST_P(AddressSpace, SmallLimitsMakeASmallHeap) {
  const std::size_t limit = GetParam() * kMiB;
  UnderLimitOf(limit, [limit] {
    std::vector<Block> blocks;
    for (std::size_t size = 1; size < limit / 8 && size <= 32 * kMiB; size *= 2)
      blocks.push_back(MakeBlock(size));
    auto* large = static_cast<char*>(api::Malloc(limit / 4));
    ASSERT_NE(nullptr, large);
    large[0] = large[limit / 4 - 1] = 'e';
    api::Free(large);
    for (const Block& block : blocks) CheckAndFree(block);
    void* aligned = api::AlignedAlloc(2 * kMiB, kMiB);
    EXPECT_NE(nullptr, aligned);
    api::Free(aligned);
    EXPECT_EQ(nullptr, api::Malloc(limit));
    ExpectNothingLost();
  });
}

INSTANTIATE_TEST_SUITE_P(MiB, AddressSpace, ::testing::Values(64, 100, 128, 256, 1000, 1024, 4096, 16384),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace hz_test
