// SPDX-License-Identifier: Apache-2.0
//
// What threads cache, for a line of boxes, and what the purger has in its hands.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "contract/heap/line.hpp"
#include "support/fork.hpp"
#include "support/sanitizers.hpp"

namespace hz_test {
namespace {

template <class Line>
class CacheContract : public ::testing::Test {
 protected:
  using Heap = hz::Heap<Line>;

  // Blocks that threads sent to who had allocated them.
  static std::uint64_t Sent() {
    const hz_stats_t stats = hz::Library<Line>::stats();
    return stats.remote_sent + stats.remote_refused;
  }
};
TYPED_TEST_SUITE(CacheContract, ThisLine);

// Threads that free what they allocated have nothing to do with each other, where owners are told apart: no
// span has slots of two of them.
TYPED_TEST(CacheContract, WhoFreesItsOwnBlocksSendsNone) {
  using Heap = typename TestFixture::Heap;
  constexpr unsigned kThreads = 2, kSteps = 200000;  // of more threads not all may have their own
  const std::uint64_t before = this->Sent();
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) {
    threads.emplace_back([id] {
      std::mt19937 random(id);
      void* blocks[400] = {};
      for (unsigned step = 0; step < kSteps; ++step) {
        void*& block = blocks[random() % std::size(blocks)];
        if (block == nullptr) {
          block = Heap::malloc(16 + random() % 2033);
        } else {
          Heap::free(std::exchange(block, nullptr));
        }
      }
      for (void* block : blocks) Heap::free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(this->Sent() - before, kThreads * kSteps / 2 / 100);
}

TYPED_TEST(CacheContract, SizesThatAThreadHasLeftDoNotStayInItsBins) {
  using Heap = typename TestFixture::Heap;
  using Front = typename TypeParam::Front;
  std::thread([] {
    const auto churn = [](std::size_t size, std::size_t count) {
      std::vector<void*> blocks;
      for (std::size_t i = 0; i < count; ++i) blocks.push_back(Heap::malloc(size));
      for (void* block : blocks) Heap::free(block);
    };
    constexpr std::size_t kLeft = 8 * hz::kKiB, kInUse = hz::kKiB;
    const hz::Bin bin = hz::scan_bin(kLeft + TypeParam::Guard::kSealBytes);
    for (int round = 0; round < 4; ++round) churn(kLeft, 64);
    const auto& front = hz::State<TypeParam>::tls().heap->front;
    ASSERT_GE(Front::count(front, bin), 8u);
    for (int round = 0; round < 400; ++round) churn(kInUse, 1000);
    EXPECT_EQ(0u, Front::count(front, bin));
  }).join();
}

TYPED_TEST(CacheContract, AThreadThatCrossesOftenMayCacheMore) {
  using Heap = typename TestFixture::Heap;
  if (hz::kThreadSanitizer || kEmulated || !kOptimized) GTEST_SKIP() << "every crossing is slow";
  if (kSealed<TypeParam>) GTEST_SKIP() << "clearing takes longer than crossing";
  std::thread([] {
    std::vector<void*> blocks(20000);
    std::mt19937 random(1);
    const auto start = std::chrono::steady_clock::now();
    std::size_t budget = 0;
    do {
      for (void*& block : blocks) block = Heap::malloc(1 + random() % (16 * hz::kKiB));
      for (void* block : blocks) Heap::free(block);
      budget = hz::State<TypeParam>::tls().heap->policy.budget;
    } while (budget < TypeParam::kThreadCacheMost &&
             std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    EXPECT_EQ(TypeParam::kThreadCacheMost, budget);
    EXPECT_LE(hz::State<TypeParam>::tls().heap->capacity_bytes, budget);
  }).join();
}

// Where there is no purger a thread caches no more than an eighth of what it has as soon as much is free in
// spans, so that the last block that goes leaves next to none; and it caches again when it allocates again.
TYPED_TEST(CacheContract, WithoutAPurgerWhoFreesAllCachesNone) {
  using Heap = typename TestFixture::Heap;
  using S = hz::State<TypeParam>;
  constexpr std::size_t kSize = 512, kLeft = 256 * hz::kKiB;
  std::vector<void*> blocks(64 * hz::kMiB / kSize);
  for (void*& block : blocks) block = Heap::malloc(kSize);
  if (S::tls().heap == &S::shared) GTEST_SKIP() << "nobody tells of this thread's end";
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
  for (void* block : blocks) Heap::free(block);
  EXPECT_LE(S::tls().heap->capacity_bytes, kLeft);
  for (std::size_t i = 0; i < 4096; ++i) blocks[i] = Heap::malloc(kSize);
  for (std::size_t i = 0; i < 4096; ++i) Heap::free(blocks[i]);
  EXPECT_GE(S::tls().heap->capacity_bytes, 4 * kSize);
}

// A handler that forks may interrupt a thread while slots leave a bin, which still has them. Its child gets
// none of these, with its first malloc either.
TYPED_TEST(CacheContract, TheChildOfAForkAtTheBoundaryGetsNoSlotOfABin) {
  using Heap = typename TestFixture::Heap;
  using S = hz::State<TypeParam>;
  void* const block = Heap::malloc(100);
  if (S::tls().heap == &S::shared) GTEST_SKIP() << "nobody tells of this thread's end";
  Heap::free(block);
  S::tls().heap->lock.lock();
  ++S::tls().inside;
  const int answer = InAFork([block] {
    --S::tls().inside;
    void* const other = Heap::malloc(100);
    const bool shown = S::tls().heap == &S::fast();
    Heap::free(other);
    return other == nullptr || other == block ? 1 : shown ? 0 : 2;
  });
  --S::tls().inside;
  S::tls().heap->lock.unlock();
  EXPECT_EQ(0, answer);
}

// What the purger has in its hands is in no list that a trim looks into, and free a moment later.
TYPED_TEST(CacheContract, ATrimWaitsForThePurger) {
  using Heap = typename TestFixture::Heap;
  using S = hz::State<TypeParam>;
  void* block = Heap::malloc(100);
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
  Heap::free(block);
}

}  // namespace
}  // namespace hz_test
