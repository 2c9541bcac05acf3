// SPDX-License-Identifier: Apache-2.0
//
// Walks over all blocks, and over those of a first-class heap: the direct API alone allocates here, so what
// is visited is known exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "hakozuna/hakozuna.hpp"
#include "support/barrier.hpp"
#include "support/capture.hpp"
#include "support/line.hpp"
#include "support/sanitizers.hpp"

namespace {

using Blocks = std::map<void*, std::size_t>;

int Note(void* block, std::size_t bytes, void* blocks) {
  EXPECT_TRUE(static_cast<Blocks*>(blocks)->emplace(block, bytes).second) << block << " is visited twice";
  return 0;
}
Blocks All() {
  Blocks blocks;
  EXPECT_EQ(0, hz_walk(&Note, &blocks));
  return blocks;
}
Blocks Of(hz_heap_t* heap) {
  Blocks blocks;
  EXPECT_EQ(0, hz_heap_walk(heap, &Note, &blocks));
  return blocks;
}

// The blocks that a test has, beside those that were there before.
class Walk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (hz_test::IsTiny()) GTEST_SKIP() << "the line has none";
    before_ = All();
  }
  void* Keep(void* block, std::size_t size) {
    if (block != nullptr) kept_[block] = size;
    return block;
  }
  void Free(void* block) {
    kept_.erase(block);
    hz_free(block);
  }
  void FreeAll() {
    while (!kept_.empty()) Free(kept_.begin()->first);
  }
  // Each of the test's once, with no fewer bytes than it was asked for, and nothing else.
  void ExpectExactly() {
    Blocks now = All();
    for (const auto& [block, bytes] : before_)
      EXPECT_EQ(1U, now.erase(block)) << bytes << " were there before";
    for (const auto& [block, size] : kept_) {
      EXPECT_GE(now[block], size) << block;
      now.erase(block);
    }
    EXPECT_TRUE(now.empty()) << now.size() << " are nobody's, such as one of " << now.begin()->second;
  }

  Blocks before_, kept_;
};

TEST(WalkOfNoLine, IsRefused) {
  if (!hz_test::IsTiny()) GTEST_SKIP() << "the line has one";
  Blocks blocks;
  hz_heap_stats_t stats = {};
  errno = 0;
  EXPECT_EQ(-1, hz_walk(&Note, &blocks));
  EXPECT_EQ(-1, hz_heap_walk(nullptr, &Note, &blocks));
  EXPECT_EQ(-1, hz_heap_stats(nullptr, &stats, sizeof stats));
  EXPECT_EQ(ENOSYS, errno);
  EXPECT_TRUE(blocks.empty());
}

TEST_F(Walk, VisitsEachLiveBlockOnce) {
  std::uint32_t dice = 7;
  for (const std::size_t most : {40U, 600U, 5000U, 70'000U, 900'000U, 9'000'000U}) {
    for (unsigned i = 0; i < (most > 100'000 ? 8 : 300); ++i) {
      dice = dice * 1103515245 + 12345;
      const std::size_t size = (dice >> 8) % most;
      Keep(i % 3 == 0   ? hz_aligned_alloc(std::size_t{64} << i % 8, size)
           : i % 3 == 1 ? hz_calloc(1, size)
                        : hz_malloc(size),
           size);
    }
  }
  ExpectExactly();
  for (auto at = kept_.begin(); at != kept_.end();) {
    void* const block = (at++)->first;
    if ((dice = dice * 1103515245 + 12345) >> 30 == 0) Free(block);
  }
  ExpectExactly();
  FreeAll();
  ExpectExactly();
}

TEST_F(Walk, WhatThreadsCacheIsNotVisited) {
  if (hz_test::kThreadSanitizer) GTEST_SKIP() << "not without a barrier on all threads";
  constexpr unsigned kThreads = 3, kBlocks = 400;
  hz_test::Barrier idle(kThreads + 1), done(kThreads + 1);
  std::vector<void*> shared(kThreads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::vector<void*> own;
      for (unsigned k = 0; k < kBlocks; ++k) own.push_back(hz_malloc(16 + k % 64 * 8));
      shared[i] = hz_malloc(100);
      for (void* const block : own) hz_free(block);
      idle.Wait();
      done.Wait();
    });
  }
  idle.Wait();
  for (void* const block : shared) Keep(block, 100);
  ExpectExactly();
  done.Wait();
  for (std::thread& thread : threads) thread.join();
  ExpectExactly();
  FreeAll();
}

TEST_F(Walk, TheVisitorEndsIt) {
  for (unsigned i = 0; i < 100; ++i) Keep(hz_malloc(50), 50);
  unsigned left = 10;
  const int answer = hz_walk(
      [](void*, std::size_t, void* count) { return --*static_cast<unsigned*>(count) == 0 ? 42 : 0; }, &left);
  EXPECT_EQ(42, answer);
  FreeAll();
}

TEST_F(Walk, TheVisitorMayFree) {
  for (unsigned i = 0; i < 1000; ++i) Keep(hz_malloc(i % 50 * 100), i % 50 * 100);
  const int answer = hz_walk(
      [](void* block, std::size_t, void* kept) {
        if (static_cast<Blocks*>(kept)->erase(block) != 0) hz_free(block);
        return 0;
      },
      &kept_);
  EXPECT_EQ(0, answer);
  EXPECT_TRUE(kept_.empty());
  ExpectExactly();
}

TEST_F(Walk, GuardedBlocksAreVisited) {
  ASSERT_EQ(0, hz_ctl("guard_sample", "1", nullptr, 0));
  for (unsigned i = 0; i < 500; ++i) Keep(hz_malloc(i), i);
  ASSERT_EQ(0, hz_ctl("guard_sample", "0", nullptr, 0));
  ExpectExactly();
  FreeAll();
  ExpectExactly();
}

TEST_F(Walk, BlocksOfAHeapAreVisited) {
  hz_heap_t* const heap = hz_heap_new();
  hz_heap_t* const other = hz_heap_new();
  hz_heap_stats_t stats = {1, 1, 1};
  ASSERT_EQ(0, hz_heap_stats(heap, &stats, sizeof stats));
  EXPECT_EQ(0U, stats.blocks + stats.bytes_live + stats.bytes_held);
  Blocks mine;
  std::uint32_t dice = 9;
  for (unsigned i = 0; i < 3000; ++i) {
    dice = dice * 1103515245 + 12345;
    const std::size_t size = (dice >> 8) & (i % 100 == 0 ? 0xFFFFF : 0x3FF);
    mine[Keep(hz_heap_aligned_alloc(heap, std::size_t{16} << i % 6, size), size)] = size;
    Keep(hz_heap_malloc(other, 77), 77);
    if (i % 5 != 0) continue;
    void* const block = std::next(mine.begin(), static_cast<std::ptrdiff_t>(dice % mine.size()))->first;
    mine.erase(block);
    Free(block);
  }
  ExpectExactly();
  Blocks seen = Of(heap);
  std::size_t live = 0;
  for (const auto& [block, bytes] : seen) live += bytes;
  ASSERT_EQ(0, hz_heap_stats(heap, &stats, sizeof stats));
  EXPECT_EQ(mine.size(), stats.blocks);
  EXPECT_EQ(live, stats.bytes_live);
  EXPECT_GE(stats.bytes_held, stats.bytes_live);
  for (const auto& [block, size] : mine) {
    EXPECT_GE(seen[block], size);
    seen.erase(block);
  }
  EXPECT_TRUE(seen.empty());

  // What outlives a heap is the process's.
  hz_heap_delete(other);
  ExpectExactly();
  for (const auto& [block, size] : mine) kept_.erase(block);
  hz_heap_destroy(heap);
  ExpectExactly();
  FreeAll();
  ExpectExactly();

  ASSERT_EQ(0, hz_ctl("on_invalid", "report", nullptr, 0));
  hz_test::Capture said;
  EXPECT_EQ(-1, hz_heap_walk(heap, &Note, &seen));
  EXPECT_EQ(-1, hz_heap_stats(heap, &stats, sizeof stats));
  EXPECT_NE(std::string::npos, said.Text().find("E07 no-heap"));
  ASSERT_EQ(0, hz_ctl("on_invalid", "abort", nullptr, 0));
}

TEST_F(Walk, AHeapOfCxxTellsWhatItHolds) {
  hakozuna::heap heap;
  EXPECT_EQ(0U, heap.stats().blocks);
  void* const block = heap.allocate(1000);
  EXPECT_EQ(1U, heap.stats().blocks);
  EXPECT_GE(heap.stats().bytes_live, 1000U);
  heap.deallocate(block, 1000);
  EXPECT_EQ(0U, heap.stats().blocks);
}

// Others go on: what stays is visited in any case, and nothing breaks.
TEST_F(Walk, BesideThreadsThatAllocate) {
  for (unsigned i = 0; i < 300; ++i) Keep(hz_malloc(i * 7), i * 7);
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2; ++i) {
    threads.emplace_back([&ends, i] {
      std::uint32_t dice = i;
      while (!ends.load()) {
        dice = dice * 1103515245 + 12345;
        void* const block = hz_malloc((dice >> 8) & (dice % 16 == 0 ? 0xFFFFF : 0xFFF));
        void* const cleared = hz_calloc(1, dice >> 20);
        hz_heap_t* const heap = hz_heap_new();
        void* heap_blocks[5];
        for (void*& one : heap_blocks) one = hz_heap_malloc(heap, 20'000);
        if (dice % 2 == 0) {
          hz_heap_destroy(heap);
        } else {
          hz_heap_delete(heap);
          for (void* one : heap_blocks) hz_free(one);
        }
        hz_free(block);
        hz_free(cleared);
      }
    });
  }
  for (unsigned i = 0; i < 20; ++i) {
    std::vector<void*> seen;
    hz_walk(
        [](void* block, std::size_t, void* all) {
          static_cast<std::vector<void*>*>(all)->push_back(block);
          return 0;
        },
        &seen);
    std::sort(seen.begin(), seen.end());
    for (const auto& [block, size] : kept_) EXPECT_TRUE(std::binary_search(seen.begin(), seen.end(), block));
  }
  ends.store(true);
  for (std::thread& thread : threads) thread.join();
  ExpectExactly();
  FreeAll();
}

}  // namespace
