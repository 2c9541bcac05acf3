// SPDX-License-Identifier: Apache-2.0
//
// Each capacity of a line with bounds (hz6), driven far past its bound: the program goes on, nothing is lost,
// what has no room is returned by who sent it, and what is held does not grow with how far the bound was
// passed.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "contract/heap/line.hpp"
#include "support/barrier.hpp"

namespace hz_test {
namespace {

using Line = hz::ThisLine;
using Heap = hz::Heap<Line>;

hz_stats_t Stats() { return hz::Library<Line>::stats(); }

std::vector<void*> Allocated(std::size_t count, std::size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) block = Heap::malloc(size);
  return blocks;
}
void FreeByAnother(const std::vector<void*>& blocks) {
  std::thread([&] {
    for (void* block : blocks) Heap::free(block);
  }).join();
}

void ExpectAllHome() {
  Heap::trim(0);
  const hz_stats_t stats = Stats();
  EXPECT_EQ(0u, stats.bytes_held) << "slots were lost";
  EXPECT_EQ(0u, stats.bytes_cached);
  EXPECT_EQ(0u, stats.bytes_dirty);
  EXPECT_EQ(stats.spans_acquired, stats.spans_retired);
}

// kBatchEntries: a hundred times as many frees for somebody else, of every class, by one thread.
TEST(Capacity, OfAnOutboxInEntries) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 100UL * Line::kBatchEntries; ++i)
    blocks.push_back(Heap::malloc(1 + i * 61 % 4096));
  const hz_stats_t before = Stats();
  FreeByAnother(blocks);
  const hz_stats_t after = Stats();
  EXPECT_LE(blocks.size() - Line::kBatchEntries,
            after.remote_sent + after.remote_refused - before.remote_sent - before.remote_refused);
  ExpectAllHome();
}

// kBatchBytes: the same by bytes.
TEST(Capacity, OfAnOutboxInBytes) {
  const std::vector<void*> blocks = Allocated(20 * Line::kBatchBytes / hz::kMediumMax, hz::kMediumMax);
  FreeByAnother(blocks);
  ExpectAllHome();
}

// kShelfBytes: many times what one class may have in the transfer cache, and nobody who takes it.
TEST(Capacity, OfTheTransferCache) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{1024}, std::size_t{40000}}) {
    const std::vector<void*> blocks = Allocated(64 * Line::kShelfBytes / size, size);
    const std::uint64_t refused = Stats().remote_refused;
    FreeByAnother(blocks);
    EXPECT_LT(refused, Stats().remote_refused) << size << ": the sender was to do the work";
    EXPECT_LE(Stats().bytes_held, blocks.size() * size / 2) << size;
  }
  ExpectAllHome();
}

// kBinBytes, kThreadCacheBytes: a thread that frees far more than it may cache, of one class and of all.
TEST(Capacity, OfAThreadsCache) {
  for (const std::size_t size : {std::size_t{128}, std::size_t{16384}}) {
    for (void* block : Allocated(8 * Line::kThreadCacheMost / size, size)) Heap::free(block);
    EXPECT_LE(Stats().bytes_cached, 2 * Line::kThreadCacheMost) << size;
  }
  std::vector<void*> blocks;
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin)
    for (unsigned i = 0; i < 8; ++i) blocks.push_back(Heap::malloc(hz::bin_size(bin)));
  for (void* block : blocks) Heap::free(block);
  EXPECT_LE(Stats().bytes_cached, 2 * Line::kThreadCacheMost);
  ExpectAllHome();
}

// kOwners: more threads at once than are told apart, who free each other's blocks.
TEST(Capacity, OfOwners) {
  constexpr unsigned kThreads = Line::kOwners + 100;
  std::vector<void*> blocks(kThreads);
  Barrier everybody(kThreads);
  std::atomic<unsigned> good{0};
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      blocks[id] = Heap::malloc(100 + id);
      *static_cast<unsigned*>(blocks[id]) = id;
      everybody.Wait();
      void*& theirs = blocks[(id + kThreads / 2) % kThreads];
      good += *static_cast<unsigned*>(theirs) == (id + kThreads / 2) % kThreads ? 1 : 0;
      Heap::free(theirs);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kThreads, good.load());
  ExpectAllHome();
}

// Generations: a slot that was allocated more often than they have values, by its owner and by strangers.
TEST(Capacity, OfGenerations) {
  constexpr unsigned kLives = 10 * hz::Lifecycle<Line>::kGenerations;
  for (unsigned life = 0; life < kLives; ++life) Heap::free(Heap::malloc(64));
  for (unsigned life = 0; life < kLives; ++life) FreeByAnother(Allocated(3, 64));
  ExpectAllHome();
}

}  // namespace
}  // namespace hz_test
