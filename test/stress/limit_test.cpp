// SPDX-License-Identifier: Apache-2.0
//
// Limits that the user sets: past limit_hard the answer is NULL and ENOMEM and the process is no larger;
// before limit_soft is passed, what caches hold serves others. Every test runs in a process of its own, which
// has the setting.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "stress/footprint.hpp"
#include "stress/limited.hpp"
#include "stress/threads.hpp"
#include "support/capture.hpp"

namespace hz_test {
namespace {

constexpr std::size_t kHard = 64 * kMiB;
TEST(LimitHard, IsReachedAndNeverPassed) {
  InProcessWith({{"HZ_LIMIT_HARD", "64M"}}, [] {
    for (unsigned bits : {9, 16, 19, 23}) {
      const Growth growth;
      std::size_t first = 0;
      for (int turn = 0; turn < 2; ++turn) {
        Random random(Seed());
        Pile pile;
        errno = 0;
        while (pile.Grow(LogSize(random, bits))) {
        }
        EXPECT_EQ(ENOMEM, errno) << bits;
        EXPECT_LE(growth.Bytes(), kHard + kBeside) << bits;
        EXPECT_GE(pile.Bytes(), kHard / 2) << bits;
        if (turn == 0) first = pile.Bytes();
        EXPECT_GE(pile.Bytes(), first / 10 * 8) << "what was freed serves again, bits " << bits;
        for (int i = 0; i < 3; ++i) EXPECT_EQ(nullptr, api::Malloc(kHard));
        EXPECT_TRUE(pile.FreeAll());
        void* half = api::Malloc(kHard / 2);
        EXPECT_NE(nullptr, half) << "what lay in small blocks must serve a large one";
        api::Free(half);
      }
    }
    ExpectNothingLost();
  });
}

TEST(LimitHard, ManyThreads) {
  InProcessWith({{"HZ_LIMIT_HARD", "64M"}}, [] {
    constexpr unsigned kThreads = 8;
    const Growth growth;
    std::atomic<bool> stop{false};
    std::size_t highest = 0;
    Thread watcher([&] {
      while (!stop.load()) {
        const std::size_t now = growth.Bytes();
        if (now > highest) highest = now;
        usleep(2000);
      }
    });
    for (unsigned turn = 0; turn < Scaled(4, 1); ++turn) {
      Barrier full(kThreads);
      Together(kThreads, [&](unsigned thread) {
        Random random(Seed() + thread);
        Pile pile;
        while (pile.Grow(LogSize(random, thread % 2 == 0 ? 12 : 19))) {
        }
        full.Wait();
        EXPECT_TRUE(pile.FreeAll());
        // Everybody at once: some of them have to come away empty-handed.
        for (unsigned i = 0; i < Scaled(200, 50); ++i) {
          void* block = api::Malloc(1 + Below(random, 24 * kMiB));
          if (block != nullptr)
            std::memset(block, 1, kMiB < api::UsableSize(block) ? kMiB : api::UsableSize(block));
          api::Free(block);
        }
      });
    }
    stop = true;
    watcher.Join();
    EXPECT_LE(highest, kHard + kBeside + kThreads * kMiB);
    Pile pile;
    while (pile.Grow(1000)) {
    }
    EXPECT_GT(pile.Bytes(), kHard / 2) << "what the threads had can be had again";
    EXPECT_TRUE(pile.FreeAll());
    ExpectNothingLost();
  });
}

TEST(LimitHard, FailedReallocKeepsTheBlock) {
  InProcessWith({{"HZ_LIMIT_HARD", "64M"}}, [] {
    for (std::size_t size : {std::size_t{100}, std::size_t{100000}, 6 * kMiB, 30 * kMiB, 50 * kMiB}) {
      const Block block = MakeBlock(size);
      errno = 0;
      EXPECT_EQ(nullptr, api::Realloc(block.at, 100 * kMiB)) << size;
      EXPECT_EQ(ENOMEM, errno);
      CheckAndFree(block);
    }
    ExpectNothingLost();
  });
}

// It stays where it is if need be, and is as large as was asked for: a sized free says so.
TEST(LimitHard, ABlockShrinksWhereMemoryIsFull) {
  InProcessWith({{"HZ_LIMIT_HARD", "64M"}}, [] {
    Capture said;
    void *huge = api::Malloc(20 * kMiB), *slot = api::Malloc(30'000);
    Pile pile;
    while (pile.Grow(1000)) {
    }
    void* const fewest = api::Realloc(slot, 3'000);
    void* const less = api::Realloc(huge, 3 * kMiB);
    ASSERT_EQ(huge, less);
    ASSERT_NE(nullptr, fewest);
    EXPECT_TRUE(fewest == slot || HasSeals()) << "there is nowhere else, but for a slot that waits";
    api::FreeSized(less, 3 * kMiB);
    api::FreeSized(fewest, 3'000);
    EXPECT_EQ("", said.Text());
    EXPECT_TRUE(pile.FreeAll());
    ExpectNothingLost();
  });
}

TEST(LimitHard, ABlockOfNoBytesIsHadWhereASlotIs) {
  InProcessWith({{"HZ_LIMIT_HARD", "64M"}}, [] {
    void* last = api::Malloc(1);
    Pile pile;
    for (const std::size_t size : {1000, 1}) {
      while (pile.Grow(size)) {
      }
    }
    api::Free(last);
    void* none = api::Malloc(0);
    EXPECT_NE(nullptr, none);
    api::Free(none);
    EXPECT_TRUE(pile.FreeAll());
    ExpectNothingLost();
  });
}

// A block that moves takes its pages along: it need not fit twice.
TEST(LimitHard, ABlockOfMoreThanHalfMayGrow) {
  if (IsTiny() || HasSeals()) GTEST_SKIP() << "it moves no pages";
  InProcessWith({{"HZ_LIMIT_HARD", "64M"}}, [] {
    Block block = MakeBlock(36 * kMiB);
    void* wall = api::Malloc(6 * kMiB);
    ASSERT_NE(nullptr, wall);
    for (std::size_t size : {40 * kMiB, 46 * kMiB, 52 * kMiB}) {
      void* moved = api::Realloc(block.at, size);
      ASSERT_NE(nullptr, moved) << size;
      EXPECT_TRUE(HasPattern(moved, block.size, block.seed));
      block.at = moved;
    }
    EXPECT_EQ(nullptr, api::Realloc(block.at, 60 * kMiB));
    CheckAndFree(block);
    api::Free(wall);
    ExpectNothingLost();
  });
}

TEST(LimitSoft, CachesComeBackBeforeTheHeapGrowsPastIt) {
  if (kUnderTool) GTEST_SKIP() << "resident memory means nothing here";
  InProcessWith({{"HZ_LIMIT_SOFT", "56M"}, {"HZ_RETAIN", "1000"}, {"HZ_THREAD_CACHE", "67108864"}},
                [] { EXPECT_LE(PeakOfGenerations(), 56 * kMiB / 16 * 17 + kBeside); });
}

// The counterpart: without the limit the same program is larger, or the test above would prove nothing.
TEST(LimitSoft, WithoutItTheyStay) {
  if (PurgesPromptly()) GTEST_SKIP() << "nothing much stays";
  if (kUnderTool) GTEST_SKIP() << "resident memory means nothing here";
  InProcessWith({{"HZ_LIMIT_SOFT", "0"}, {"HZ_RETAIN", "1000"}, {"HZ_THREAD_CACHE", "67108864"}},
                [] { EXPECT_GT(PeakOfGenerations(), 72 * kMiB); });
}

// However much larger a block is than the growth between two recalls, and whoever else grows meanwhile.
TEST(LimitSoft, RefusesNothing) {
  InProcessWith({{"HZ_LIMIT_SOFT", "1M"}}, [] {
    Together(Scaled(4, 2), [](unsigned thread) {
      Random random(Seed() + thread);
      std::vector<Block> blocks(12);
      for (unsigned i = 0; i < Scaled(300, 40); ++i) {
        Block& block = blocks[Below(random, blocks.size())];
        CheckAndFree(block);
        block = MakeBlock(LogSize(random, 23));
      }
      for (Block& block : blocks) {
        void* longer = api::Realloc(block.at, 9 * kMiB);
        EXPECT_NE(nullptr, longer);
        if (longer != nullptr) block.at = longer;
        CheckAndFree(block);
      }
    });
    ExpectNothingLost();
  });
}

// A heap that must live beyond its soft limit works on, and does not empty its caches for every span.
TEST(LimitSoft, BeyondItRecallsAreRare) {
  InProcessWith({{"HZ_LIMIT_SOFT", "16M"}}, [] {
    Pile pile;
    while (pile.Bytes() < 64 * kMiB) ASSERT_TRUE(pile.Grow(500));
    const std::uint64_t purges = HeapStats().purges;
    EXPECT_LE(purges, 64U) << "16 recalls per 16 MiB of growth, at the most";
    const std::uint64_t flushed = HeapStats().refills;
    std::vector<void*> blocks(2000, nullptr);
    Random random(Seed());
    for (unsigned i = 0; i < Scaled(400000, 40000); ++i) {
      void*& block = blocks[Below(random, blocks.size())];
      api::Free(block);
      block = api::Malloc(LogSize(random, 12));
      ASSERT_NE(nullptr, block);
    }
    EXPECT_LE(HeapStats().purges - purges, 200U);
    EXPECT_LE(HeapStats().refills - flushed, Scaled(400000, 40000) / 4) << "the bins were kept";
    for (void* block : blocks) api::Free(block);
    EXPECT_TRUE(pile.FreeAll());
    ExpectNothingLost();
  });
}

}  // namespace
}  // namespace hz_test
