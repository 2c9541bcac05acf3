// SPDX-License-Identifier: Apache-2.0
//
// Blocks that can be checked: each is filled with a pattern of its own when it is made and proved intact when
// it is freed, whichever thread does it. Called by the stress tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "stress/scale.hpp"
#include "support/heap_api.hpp"
#include "support/pattern.hpp"

namespace hz_test {

struct Block {
  void* at = nullptr;
  std::size_t size = 0;
  std::uint64_t seed = 0;
};

inline std::uint64_t FreshSeed() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

inline Block MakeBlock(std::size_t size) {
  const Block block = {api::Malloc(size), size, FreshSeed()};
  EXPECT_NE(nullptr, block.at) << size;
  if (block.at != nullptr) FillPattern(block.at, size, block.seed);
  return block;
}

inline bool Intact(const Block& block) {
  return block.at == nullptr || HasPattern(block.at, block.size, block.seed);
}

inline void CheckAndFree(const Block& block) {
  EXPECT_TRUE(Intact(block)) << "block " << block.at << " of " << block.size << " bytes";
  api::Free(block.at);
}

// Where threads leave blocks for each other.
class Exchange {
 public:
  explicit Exchange(std::size_t room = 0) { blocks_.reserve(room); }

  void Put(const Block& block) {
    const std::lock_guard<std::mutex> hold(mutex_);
    blocks_.push_back(block);
  }
  void PutAll(const std::vector<Block>& blocks) {
    const std::lock_guard<std::mutex> hold(mutex_);
    blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  }
  // Any block; false if there is none.
  bool Take(Random& random, Block& out) {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (blocks_.empty()) return false;
    std::swap(blocks_[Below(random, blocks_.size())], blocks_.back());
    out = blocks_.back();
    blocks_.pop_back();
    return true;
  }
  std::vector<Block> TakeAll() {
    const std::lock_guard<std::mutex> hold(mutex_);
    std::vector<Block> all;
    all.swap(blocks_);
    return all;
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

// True where every block of the heap is a test's, so that all bytes must be accounted for when all are freed.
#ifdef HZ_TEST_DIRECT
inline constexpr bool kHeapIsOurs = true;
#else
inline constexpr bool kHeapIsOurs = false;
#endif

// Exact while no other thread uses the heap.
inline hz_stats_t HeapStats() {
  static auto* const read = FindFunction<void(hz_stats_t*, std::size_t)>("hz_stats");
  hz_stats_t stats = {};
  if (read != nullptr) read(&stats, sizeof stats);
  return stats;
}

// Every test that frees all it allocated ends with this: no slot was lost on its way between threads.
inline void ExpectNothingLost() {
  if (kHeapIsOurs) {
    EXPECT_EQ(0U, HeapStats().bytes_live);
  }
}

}  // namespace hz_test
