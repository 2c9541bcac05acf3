// SPDX-License-Identifier: Apache-2.0
//
// The numbers, for every line, while operations are counted: they add up whenever nothing moves. Started with
// counting on, which must be so before the heap's first use.
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

#include "contract/lines.hpp"
#include "support/barrier.hpp"
#include "support/variable.hpp"

namespace hz_test {
namespace {

template <class Line>
class Counting : public ::testing::Test {
 protected:
  using Heap = hz::Heap<Line>;

  static hz_stats_t Stats() { return hz::Library<Line>::stats(); }

  void SetUp() override {
    Heap::free(Heap::malloc(1));
    ASSERT_EQ(1u, Stats().counting);
  }

  void* New(std::size_t size) {
    void* at = Heap::malloc(size);
    live_.push_back(at);
    return at;
  }
  void FreeAt(std::size_t i) {
    Heap::free(live_[i]);
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
      const std::size_t size = Heap::usable_size(at);
      ++(size <= hz::kSmallMax ? small : size <= hz::kMediumMax ? medium : large);
      bytes += size;
    }
    EXPECT_EQ(small, s.alloc_small - s.free_small);
    EXPECT_EQ(medium, s.alloc_medium - s.free_medium);
    EXPECT_EQ(large, s.alloc_large - s.free_large);
    EXPECT_EQ(bytes, s.bytes_live);
    EXPECT_EQ(s.bytes_held, s.bytes_live + s.bytes_cached);
    EXPECT_EQ(s.remote_sent, s.remote_collected + s.remote_waiting);
    EXPECT_LE(s.remote_collected, s.remote_sent);
    EXPECT_LE(s.spans_retired, s.spans_acquired);
    EXPECT_GE(s.bytes_peak, s.bytes_held);
  }

  // After a trim only spans with a living block are held.
  static void ExpectTrimmed(const std::vector<void*>& live) {
    Heap::trim(0);
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
TYPED_TEST_SUITE(Counting, Lines);

TYPED_TEST(Counting, EveryKindOfOperationIsCounted) {
  using Heap = typename TestFixture::Heap;
  const hz_stats_t before = this->Stats();
  this->live_ = {Heap::malloc(100),     Heap::calloc(10, 10),           Heap::aligned(64, 100),
                 Heap::malloc(3000),    Heap::aligned(4096, 1),         Heap::malloc(100000),
                 Heap::malloc(9000000), Heap::aligned(1 << 20, 100000), Heap::calloc(3, 30000)};
  const hz_stats_t after = this->Stats();
  EXPECT_EQ(3u, after.alloc_small - before.alloc_small);
  EXPECT_EQ(2u, after.alloc_medium - before.alloc_medium);
  EXPECT_EQ(4u, after.alloc_large - before.alloc_large);
  this->ExpectAddsUp(this->live_);
  this->FreeAll();
  const hz_stats_t freed = this->Stats();
  EXPECT_EQ(3u, freed.free_small - before.free_small);
  EXPECT_EQ(2u, freed.free_medium - before.free_medium);
  EXPECT_EQ(4u, freed.free_large - before.free_large);
  this->ExpectTrimmed({});
}

TYPED_TEST(Counting, AReallocKeepsTheBalance) {
  using Heap = typename TestFixture::Heap;
  std::mt19937 random(2);
  for (int i = 0; i < 20; ++i) this->New(this->MixedSize(random));
  for (int step = 0; step < 1000; ++step) {
    void*& block = this->live_[random() % this->live_.size()];
    const std::size_t size =
        random() % 10 == 0 ? hz::kLargeMax + 1 + random() % (8 * hz::kMiB) : this->MixedSize(random);
    block = Heap::realloc(block, size);
    ASSERT_NE(nullptr, block);
    if (step % 50 == 0) this->ExpectAddsUp(this->live_);
  }
  this->ExpectAddsUp(this->live_);
  this->ExpectTrimmed(this->live_);
  this->FreeAll();
  this->ExpectTrimmed({});
}

TYPED_TEST(Counting, AddsUpAtEveryMoment) {
  std::mt19937 random(3);
  for (int step = 0; step < 20000; ++step) {
    if (this->live_.size() < 500 || random() % 2 == 0) {
      this->New(this->MixedSize(random));
    } else {
      this->FreeAt(random() % this->live_.size());
    }
    if (this->live_.size() > 1000) {
      while (this->live_.size() > 200) this->FreeAt(random() % this->live_.size());
    }
    if (step % 500 == 0) this->ExpectAddsUp(this->live_);
    if (step % 5000 == 0) this->ExpectTrimmed(this->live_);
    if (this->HasFailure()) FAIL() << "step " << step;
  }
  this->ExpectTrimmed(this->live_);
  this->FreeAll();
  this->ExpectAddsUp({});
  this->ExpectTrimmed({});
}

// The purger takes caches back and puts back what waits, while nobody else moves.
TYPED_TEST(Counting, AddsUpWhileThePurgerWorks) {
  std::mt19937 random(4);
  this->RunThreads(1, [&](unsigned) {  // main is the second one, so there may be a purger
    for (int round = 0; round < 10; ++round) {
      while (this->live_.size() < 3000) this->New(this->MixedSize(random));
      while (this->live_.size() > 100) this->FreeAt(random() % this->live_.size());
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
      while (std::chrono::steady_clock::now() < end && !this->HasFailure()) this->ExpectAddsUp(this->live_);
    }
    this->FreeAll();
  });
  this->ExpectTrimmed({});
}

// Threads free each other's blocks; between two rounds nothing moves, and they are alive.
TYPED_TEST(Counting, AddsUpWhileThreadsRest) {
  using Heap = typename TestFixture::Heap;
  constexpr unsigned kThreads = 5;
  std::vector<void*> handed[kThreads];
  Barrier sync(kThreads);
  this->RunThreads(kThreads, [&](unsigned id) {
    std::mt19937 random(id);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < 800; ++i) handed[id].push_back(Heap::malloc(1 + random() % 3000));
      sync.Wait();
      auto& theirs = handed[(id + 1) % kThreads];
      for (std::size_t i = 0; i < 600; ++i) {
        Heap::free(theirs.back());
        theirs.pop_back();
      }
      sync.Wait();
      if (id == 0) {
        std::vector<void*> live;
        for (const auto& list : handed) live.insert(live.end(), list.begin(), list.end());
        this->ExpectAddsUp(live);
      }
      sync.Wait();
    }
    for (void* at : handed[id]) Heap::free(at);
  });
  if constexpr (kOfBoxes<TypeParam>) {
    EXPECT_TRUE(!TypeParam::Route::kOwned || this->Stats().remote_sent > 0);
  }
  this->ExpectAddsUp({});
  this->ExpectTrimmed({});
}

TYPED_TEST(Counting, TheDeadAreStillCounted) {
  using Heap = typename TestFixture::Heap;
  const hz_stats_t before = this->Stats();
  std::vector<void*> live[50];
  this->RunThreads(50, [&](unsigned id) {
    std::mt19937 random(id);
    for (int i = 0; i < 100; ++i) live[id].push_back(Heap::malloc(1 + random() % 2048));
    for (int i = 0; i < 60; ++i) {
      Heap::free(live[id].back());
      live[id].pop_back();
    }
  });
  EXPECT_EQ(5000u, this->Stats().alloc_small - before.alloc_small);
  EXPECT_EQ(3000u, this->Stats().free_small - before.free_small);
  EXPECT_EQ(before.threads, this->Stats().threads);
  for (const auto& list : live) this->live_.insert(this->live_.end(), list.begin(), list.end());
  this->ExpectAddsUp(this->live_);
  this->ExpectTrimmed(this->live_);
  this->FreeAll();
  this->ExpectTrimmed({});
}

// What the purger has in its hands is in no list that a trim looks into, and free a moment later.
TYPED_TEST(Counting, ATrimWaitsForThePurger) {
  using Heap = typename TestFixture::Heap;
  if constexpr (kOfBoxes<TypeParam>) {
    using S = typename Heap::S;
    this->New(100);
    std::atomic<bool> trimmed{false};
    S::purger_state.lock.lock();
    std::thread trimming([&] {
      Heap::trim(0);
      trimmed = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(trimmed);
    S::purger_state.lock.unlock();
    trimming.join();
  } else {
    GTEST_SKIP() << "it has none";
  }
}

TYPED_TEST(Counting, PurgesAreCounted) {
  using Heap = typename TestFixture::Heap;
  for (int i = 0; i < 2000; ++i) std::fill_n(static_cast<char*>(this->New(20000)), 20000, 'x');
  this->FreeAll();
  const hz_stats_t before = this->Stats();
  Heap::trim(0);
  const hz_stats_t after = this->Stats();
  EXPECT_GE(after.purges, before.purges);
  EXPECT_GE(after.bytes_purged - before.bytes_purged, before.bytes_dirty);
  EXPECT_GE(after.bytes_purged, 32 * hz::kMiB) << "by and by, or by the trim";
  EXPECT_GE(after.bytes_peak, 40u * 1000 * 1000);
}

}  // namespace
}  // namespace hz_test

int main(int argc, char** argv) {
  hz_test::SetVariable("HZ_STATS", "1");
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
