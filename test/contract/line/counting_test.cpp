// SPDX-License-Identifier: Apache-2.0
//
// The numbers, for every line, while operations are counted: they add up whenever nothing moves. Started with
// HZ_STATS, for counting must be on before the heap's first use.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/size_classes.hpp"
#include "hakozuna/hakozuna.h"
#include "support/barrier.hpp"
#include "support/line.hpp"

namespace hz_test {
namespace {

class Counting : public ::testing::Test {
 protected:
  static hz_stats_t Stats() {
    hz_stats_t stats;
    hz_stats(&stats, sizeof stats);
    return stats;
  }

  void SetUp() override {
    hz_free(hz_malloc(1));
    ASSERT_EQ(1u, Stats().counting);
  }

  void* New(std::size_t size) {
    void* at = hz_malloc(size);
    live_.push_back(at);
    return at;
  }
  void FreeAt(std::size_t i) {
    hz_free(live_[i]);
    live_[i] = live_.back();
    live_.pop_back();
  }
  void FreeAll() {
    while (!live_.empty()) FreeAt(live_.size() - 1);
  }

  static std::size_t MixedSize(std::mt19937& random) {
    const unsigned kind = random() % 100;
    if (kind == 0) return 1 + random() % (8 * hz::kMiB);
    if (kind < 5) return 1 + random() % (512 * hz::kKiB);
    if (kind < 25) return 1 + random() % (64 * hz::kKiB);
    return 1 + random() % 2048;
  }

  // What the counts must say of the blocks that this test knows to be alive.
  static void ExpectAddsUp(const std::vector<void*>& live) {
    const hz_stats_t s = Stats();
    std::uint64_t small = 0;
    std::uint64_t medium = 0;
    std::uint64_t large = 0;
    std::uint64_t bytes = 0;
    for (void* at : live) {
      const std::size_t size = hz_usable_size(at);
      ++(size <= hz::kSmallMax ? small : size <= hz::kMediumMax ? medium : large);
      bytes += size;
    }
    if (HasSeals()) {  // with the seal a block may be of another kind, and has more than can be used
      EXPECT_EQ(live.size(),
                s.alloc_small - s.free_small + s.alloc_medium - s.free_medium + s.alloc_large - s.free_large);
      EXPECT_LE(bytes + 8 * live.size(), s.bytes_live);
    } else {
      EXPECT_EQ(small, s.alloc_small - s.free_small);
      EXPECT_EQ(medium, s.alloc_medium - s.free_medium);
      EXPECT_EQ(large, s.alloc_large - s.free_large);
      EXPECT_EQ(bytes, s.bytes_live);
    }
    EXPECT_EQ(s.bytes_held, s.bytes_live + s.bytes_cached);
    EXPECT_EQ(s.remote_sent, s.remote_collected + s.remote_waiting);
    EXPECT_LE(s.remote_collected, s.remote_sent);
    EXPECT_LE(s.spans_retired, s.spans_acquired);
    EXPECT_GE(s.bytes_peak, s.bytes_held);
  }

  // After a trim only spans with a living block are held.
  static void ExpectTrimmed(const std::vector<void*>& live) {
    hz_trim(0);
    ExpectAddsUp(live);
    std::set<std::uintptr_t> spans;  // a large or huge block begins its own
    for (void* at : live) spans.insert(hz::address(at) >> hz::kGranuleShift);
    const hz_stats_t s = Stats();
    EXPECT_EQ(spans.size(), s.spans_acquired - s.spans_retired);
    EXPECT_EQ(0u, s.bytes_cached);
    EXPECT_EQ(s.bytes_live, s.bytes_held);
    EXPECT_EQ(0u, s.bytes_dirty);
    EXPECT_EQ(0u, s.remote_waiting);
  }

  static void RunThreads(unsigned count, const std::function<void(unsigned)>& body) {
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < count; ++id) threads.emplace_back(body, id);
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<void*> live_;
};

TEST_F(Counting, EveryKindOfOperationIsCounted) {
  const hz_stats_t before = Stats();
  live_ = {hz_malloc(100),
           hz_calloc(10, 10),
           hz_aligned_alloc(64, 100),
           hz_malloc(3000),
           hz_aligned_alloc(4096, 1),
           hz_malloc(100000),
           hz_malloc(9000000),
           hz_aligned_alloc(1 << 20, 100000),
           hz_calloc(3, 30000)};
  const hz_stats_t after = Stats();
  EXPECT_EQ(3u, after.alloc_small - before.alloc_small);
  EXPECT_EQ(2u, after.alloc_medium - before.alloc_medium);
  EXPECT_EQ(4u, after.alloc_large - before.alloc_large);
  ExpectAddsUp(live_);
  FreeAll();
  const hz_stats_t freed = Stats();
  EXPECT_EQ(3u, freed.free_small - before.free_small);
  EXPECT_EQ(2u, freed.free_medium - before.free_medium);
  EXPECT_EQ(4u, freed.free_large - before.free_large);
  ExpectTrimmed({});
}

TEST_F(Counting, AReallocKeepsTheBalance) {
  std::mt19937 random(2);
  for (int i = 0; i < 20; ++i) New(MixedSize(random));
  for (int step = 0; step < 1000; ++step) {
    void*& block = live_[random() % live_.size()];
    const std::size_t size =
        random() % 10 == 0 ? hz::kLargeMax + 1 + random() % (8 * hz::kMiB) : MixedSize(random);
    block = hz_realloc(block, size);
    ASSERT_NE(nullptr, block);
    if (step % 50 == 0) ExpectAddsUp(live_);
  }
  ExpectAddsUp(live_);
  ExpectTrimmed(live_);
  FreeAll();
  ExpectTrimmed({});
}

TEST_F(Counting, AddsUpAtEveryMoment) {
  std::mt19937 random(3);
  for (int step = 0; step < 20000; ++step) {
    if (live_.size() < 500 || random() % 2 == 0) {
      New(MixedSize(random));
    } else {
      FreeAt(random() % live_.size());
    }
    if (live_.size() > 1000) {
      while (live_.size() > 200) FreeAt(random() % live_.size());
    }
    if (step % 500 == 0) ExpectAddsUp(live_);
    if (step % 5000 == 0) ExpectTrimmed(live_);
    if (HasFailure()) FAIL() << "step " << step;
  }
  ExpectTrimmed(live_);
  FreeAll();
  ExpectAddsUp({});
  ExpectTrimmed({});
}

// The purger takes caches back and puts back what waits, while nobody else moves.
TEST_F(Counting, AddsUpWhileThePurgerWorks) {
  std::mt19937 random(4);
  RunThreads(1, [&](unsigned) {  // main is the second one, so there may be a purger
    for (int round = 0; round < 10; ++round) {
      while (live_.size() < 3000) New(MixedSize(random));
      while (live_.size() > 100) FreeAt(random() % live_.size());
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
      while (std::chrono::steady_clock::now() < end && !HasFailure()) ExpectAddsUp(live_);
    }
    FreeAll();
  });
  ExpectTrimmed({});
}

// Threads free each other's blocks; between two rounds nothing moves, and they are alive.
TEST_F(Counting, AddsUpWhileThreadsRest) {
  constexpr unsigned kThreads = 5;
  std::vector<void*> handed[kThreads];
  Barrier sync(kThreads);
  RunThreads(kThreads, [&](unsigned id) {
    std::mt19937 random(id);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < 800; ++i) handed[id].push_back(hz_malloc(1 + random() % 3000));
      sync.Wait();
      auto& theirs = handed[(id + 1) % kThreads];
      for (std::size_t i = 0; i < 600; ++i) {
        hz_free(theirs.back());
        theirs.pop_back();
      }
      sync.Wait();
      if (id == 0) {
        std::vector<void*> live;
        for (const auto& list : handed) live.insert(live.end(), list.begin(), list.end());
        ExpectAddsUp(live);
      }
      sync.Wait();
    }
    for (void* at : handed[id]) hz_free(at);
  });
  EXPECT_TRUE(IsTiny() || HasSeals() || SeesSecondFreesLate() || Stats().remote_sent > 0)
      << "by routes with owners";
  ExpectAddsUp({});
  ExpectTrimmed({});
}

TEST_F(Counting, TheDeadAreStillCounted) {
  const hz_stats_t before = Stats();
  std::vector<void*> live[50];
  constexpr unsigned kMost = 2048 - 8;  // small with a seal, too
  RunThreads(50, [&](unsigned id) {
    std::mt19937 random(id);
    for (int i = 0; i < 100; ++i) live[id].push_back(hz_malloc(1 + random() % kMost));
    for (int i = 0; i < 60; ++i) {
      hz_free(live[id].back());
      live[id].pop_back();
    }
  });
  EXPECT_EQ(5000u, Stats().alloc_small - before.alloc_small);
  EXPECT_EQ(3000u, Stats().free_small - before.free_small);
  EXPECT_EQ(before.threads, Stats().threads);
  for (const auto& list : live) live_.insert(live_.end(), list.begin(), list.end());
  ExpectAddsUp(live_);
  ExpectTrimmed(live_);
  FreeAll();
  ExpectTrimmed({});
}

TEST_F(Counting, PurgesAreCounted) {
  for (int i = 0; i < 2000; ++i) std::fill_n(static_cast<char*>(New(20000)), 20000, 'x');
  FreeAll();
  const hz_stats_t before = Stats();
  hz_trim(0);
  const hz_stats_t after = Stats();
  EXPECT_GE(after.purges, before.purges);
  EXPECT_GE(after.bytes_purged - before.bytes_purged, before.bytes_dirty);
  EXPECT_GE(after.bytes_purged, 32 * hz::kMiB) << "by and by, or by the trim";
  EXPECT_GE(after.bytes_peak, 40u * 1000 * 1000);
}

}  // namespace
}  // namespace hz_test
