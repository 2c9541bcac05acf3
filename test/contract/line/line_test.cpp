// SPDX-License-Identifier: Apache-2.0
//
// The promises of a heap, for every line, by its direct API beside the C library's malloc. The names of the C
// world are tested in test/surface, reports in test/death.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/size_classes.hpp"
#include "box/guard/contract.hpp"
#include "hakozuna/hakozuna.h"
#include "support/barrier.hpp"
#include "support/fork.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"
#include "support/rss.hpp"
#include "support/sanitizers.hpp"

namespace hz_test {
namespace {

struct Block {
  void* at;
  std::size_t size;
  std::uint64_t seed;
};

class LineContract : public ::testing::Test {
 protected:
  static hz_stats_t Stats() {
    hz_stats_t stats;
    hz_stats(&stats, sizeof stats);
    return stats;
  }

  static hz::Fault Check(const void* at) { return static_cast<hz::Fault>(hz_check(at)); }

  static Block New(std::size_t size, std::uint64_t seed) {
    Block block = {hz_malloc(size), size, seed};
    FillPattern(block.at, size, seed);
    return block;
  }
  static bool Intact(const Block& block) { return HasPattern(block.at, block.size, block.seed); }
  static void Delete(const Block& block) {
    EXPECT_TRUE(Intact(block)) << block.size << " bytes";
    hz_free(block.at);
  }

  // Sizes as programs have them: most are small, a few large, one in a thousand huge.
  static std::size_t MixedSize(std::mt19937& random) {
    const unsigned kind = random() % 1000;
    if (kind == 0) return 1 + random() % (6 * hz::kMiB);
    if (kind < 10) return 1 + random() % (256 * hz::kKiB);
    if (kind < 100) return 1 + random() % (32 * hz::kKiB);
    return 1 + random() % 1024;
  }

  static void RunThreads(unsigned count, const std::function<void(unsigned)>& body) {
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < count; ++id) threads.emplace_back(body, id);
    for (std::thread& thread : threads) thread.join();
  }

  // With no thread but this one and no block alive, a trim brings every slot back to its span and every page
  // back.
  static void ExpectAllHome() {
    hz_trim(0);
    const hz_stats_t stats = Stats();
    EXPECT_EQ(0u, stats.bytes_held) << "slots were lost";
    EXPECT_EQ(0u, stats.bytes_cached);
    EXPECT_EQ(0u, stats.bytes_dirty);
    EXPECT_EQ(0u, stats.remote_waiting);
    EXPECT_EQ(stats.spans_acquired, stats.spans_retired);
  }
};

TEST_F(LineContract, EverySizeFitsAndIsAligned) {
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    if (hz::is_spare(bin)) continue;
    for (std::size_t size : {hz::bin_size(bin - 1) + 1, hz::bin_size(bin) - 1, hz::bin_size(bin)}) {
      const Block block = New(size, size);
      ASSERT_NE(nullptr, block.at);
      EXPECT_TRUE(IsAligned(block.at, 16)) << size;
      // The longest class is none where a region of that length begins with notes.
      if (!IsTiny() || bin != hz::kLastBin) {
        EXPECT_EQ(HasSeals() ? size : hz::bin_size(bin), hz_usable_size(block.at)) << size;
      }
      EXPECT_TRUE(hz_owns(block.at));
      std::memset(block.at, 1, hz_usable_size(block.at));
      hz_free(block.at);
    }
  }
  ExpectAllHome();
}

TEST_F(LineContract, SizeZeroIsABlock) {
  void* a = hz_malloc(Opaque(std::size_t{0}));
  void* b = hz_malloc(Opaque(std::size_t{0}));
  EXPECT_NE(nullptr, a);
  EXPECT_NE(a, b);
  EXPECT_EQ(hz_usable_size(a) == 0, HasSeals());
  hz_free(a);
  hz_free(b);
  hz_free(nullptr);
}

TEST_F(LineContract, HugeBlocks) {
  for (std::size_t size : {hz::kLargeMax + 1, 5 * hz::kMiB + 123, 64 * hz::kMiB, 100 * hz::kMiB - 1}) {
    const Block block = New(size, size);
    ASSERT_NE(nullptr, block.at);
    EXPECT_GE(hz_usable_size(block.at), size);
    EXPECT_LT(hz_usable_size(block.at), size + hz::kGranule);
    EXPECT_TRUE(hz_owns(block.at));
    Delete(block);
  }
  ExpectAllHome();
}

TEST_F(LineContract, WhatCannotBeIsRefused) {
  for (std::size_t size : {SIZE_MAX, SIZE_MAX - 15, std::size_t{PTRDIFF_MAX} + 1, std::size_t{PTRDIFF_MAX}}) {
    EXPECT_EQ(nullptr, hz_malloc(Opaque(size))) << size;
    EXPECT_EQ(nullptr, hz_calloc(1, Opaque(size))) << size;
    EXPECT_EQ(nullptr, hz_aligned_alloc(4096, Opaque(size))) << size;
    for (std::size_t old_size : {100u, 100000u, 10000000u}) {
      const Block block = New(old_size, 3);
      EXPECT_EQ(nullptr, hz_realloc(block.at, Opaque(size))) << old_size << " to " << size;
      Delete(block);
    }
  }
  EXPECT_EQ(nullptr, hz_calloc(Opaque(std::size_t{1} << 32), std::size_t{1} << 32));
  EXPECT_EQ(nullptr, hz_calloc(Opaque(SIZE_MAX), 2));
  ExpectAllHome();
}

TEST_F(LineContract, CallocIsZeroAlsoInUsedMemory) {
  std::mt19937 random(1);
  for (int round = 0; round < 3; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 1000; ++i) {
      const std::size_t size = MixedSize(random);
      void* at = hz_calloc(1, size);
      ASSERT_TRUE(IsZero(at, size)) << size;
      std::memset(at, 0xFF, hz_usable_size(at));
      blocks.push_back({at, size, 0});
    }
    for (const Block& block : blocks) hz_free(block.at);
  }
  void* product = hz_calloc(300, 7);
  EXPECT_GE(hz_usable_size(product), 2100u);
  hz_free(product);
  ExpectAllHome();
}

// Sanitizers make the heap reserve its range, which is none too long. Lines with wide tables plan 1 TiB.
std::size_t MostAligned() {
  const bool wide = ExpectedLine() == "hz3" || ExpectedLine() == "hz3-fast";
  return std::size_t{1} << (kUnderTool ? 30 : wide ? 36 : 38);
}

TEST_F(LineContract, EveryAlignment) {
  for (std::size_t alignment = 1; alignment <= MostAligned(); alignment *= 2) {
    std::vector<Block> blocks;
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{100},
                             std::size_t{4097}, std::size_t{65536}, std::size_t{70000}, std::size_t{2000000},
                             std::size_t{2500000}, std::size_t{4000000}, std::size_t{5000000}}) {
      if (alignment > 4 * hz::kMiB && size > 1000000 && size < 5000000)
        continue;  // addresses are not endless
      void* at = hz_aligned_alloc(alignment, size);
      ASSERT_NE(nullptr, at) << size << " at " << alignment;
      ASSERT_TRUE(IsAligned(at, alignment < 16 ? 16 : alignment)) << size << " at " << alignment;
      ASSERT_GE(hz_usable_size(at), size);
      EXPECT_TRUE(hz_owns(at));
      FillPattern(at, size, alignment);
      blocks.push_back({at, size, alignment});
    }
    for (const Block& block : blocks) Delete(block);
  }
  ExpectAllHome();
}

TEST_F(LineContract, ReallocKeepsTheContents) {
  const std::size_t sizes[] = {1, 16, 17, 100, 2048, 5000, 65536, 65537, 1000000, 4194304, 4194305, 20000000};
  for (std::size_t from : sizes) {
    for (std::size_t to : sizes) {
      const Block block = New(from, from + to);
      void* moved = hz_realloc(block.at, to);
      ASSERT_NE(nullptr, moved);
      ASSERT_GE(hz_usable_size(moved), to);
      ASSERT_TRUE(HasPattern(moved, std::min(from, to), from + to)) << from << " to " << to;
      std::memset(moved, 7, to);
      hz_free(moved);
    }
  }
  ExpectAllHome();
}

TEST_F(LineContract, AHugeBlockGrowsAndShrinksByManySteps) {
  if (HasSeals()) GTEST_SKIP() << "each step is a block of its own";
  Block block = New(5 * hz::kMiB, 1);
  const Block wall = New(5 * hz::kMiB, 2);
  std::mt19937 random(1);
  for (int step = 0; step < 60; ++step) {
    const std::size_t size = hz::kLargeMax + 1 + random() % (24 * hz::kMiB);
    void* moved = hz_realloc(block.at, size);
    ASSERT_NE(nullptr, moved);
    ASSERT_TRUE(HasPattern(moved, std::min(size, block.size), block.seed)) << step;
    block = {moved, size, random()};
    FillPattern(moved, size, block.seed);
  }
  Delete(block);
  Delete(wall);
  ExpectAllHome();
}

TEST_F(LineContract, OwnsSlotsAndNothingElse) {
  static int global = 0;
  int local = 0;
  void* theirs = std::malloc(100);
  for (void* at :
       {static_cast<void*>(&global), static_cast<void*>(&local), theirs, static_cast<void*>(nullptr),
        reinterpret_cast<void*>(16), reinterpret_cast<void*>(UINTPTR_MAX & ~std::uintptr_t{15})}) {
    EXPECT_FALSE(hz_owns(at)) << at;
  }
  std::free(theirs);
  for (std::size_t size : {std::size_t{64}, std::size_t{3000}, std::size_t{100000}, std::size_t{5000000}}) {
    char* at = static_cast<char*>(hz_malloc(size));
    EXPECT_TRUE(hz_owns(at));
    for (std::size_t inside : {std::size_t{1}, std::size_t{16}, size / 2})
      EXPECT_FALSE(hz_owns(at + inside)) << size << " + " << inside;
    hz_free(at);
  }
}

// Miss, valid, or invalid with the reason.
TEST_F(LineContract, SaysWhatAFreeWouldFind) {
  static int global = 0;
  void* theirs = std::malloc(100);
  for (void* at : {static_cast<void*>(&global), theirs, static_cast<void*>(nullptr),
                   reinterpret_cast<void*>(UINTPTR_MAX & ~std::uintptr_t{15})})
    EXPECT_EQ(hz::Fault::kForeign, Check(at)) << at;
  std::free(theirs);
  for (std::size_t size : {std::size_t{64}, std::size_t{3000}, std::size_t{100000}, std::size_t{5000000}}) {
    char* first = static_cast<char*>(hz_malloc(size));
    char* at = static_cast<char*>(hz_malloc(size));
    EXPECT_EQ(hz::Fault::kNone, Check(at)) << size;
    for (std::size_t inside : {std::size_t{1}, std::size_t{16}, size / 2})
      EXPECT_EQ(hz::Fault::kInterior, Check(at + inside)) << size << " + " << inside;
    hz_free(at);
    const hz::Fault fault = Check(at);
    if (size > hz::kLargeMax) {
      EXPECT_EQ(hz::Fault::kNotAllocated, fault) << "its pages are nobody's";
    } else if (!SeesSecondFreesLate()) {
      EXPECT_TRUE(fault == hz::Fault::kDoubleFree || fault == hz::Fault::kNotAllocated) << size;
    }
    EXPECT_EQ(hz::Fault::kNone, Check(first)) << size;
    hz_free(first);
  }
}

TEST_F(LineContract, LivingBlocksNeverOverlap) {
  std::mt19937 random(5);
  std::vector<Block> blocks;
  for (int step = 0; step < 30000; ++step) {
    const std::size_t size = MixedSize(random);
    if (blocks.size() < 1500 || random() % 2 == 0) {
      if (blocks.size() > 3000) continue;
      Block block = {
          random() % 8 == 0 ? hz_aligned_alloc(std::size_t{1} << random() % 13, size) : hz_malloc(size), size,
          random()};
      ASSERT_NE(nullptr, block.at);
      FillPattern(block.at, size, block.seed);
      blocks.push_back(block);
      continue;
    }
    Block& block = blocks[random() % blocks.size()];
    ASSERT_TRUE(Intact(block)) << step;
    if (random() % 4 == 0) {
      block = {hz_realloc(block.at, size), size, random()};
      FillPattern(block.at, size, block.seed);
    } else {
      hz_free(block.at);
      block = blocks.back();
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) Delete(block);
  ExpectAllHome();
}

TEST_F(LineContract, BlocksAreFreedByOtherThreads) {
  constexpr unsigned kThreads = 4;
  constexpr int kRounds = 30;
  constexpr int kBlocks = 500;
  std::vector<Block> handed[kThreads];
  Barrier sync(kThreads);
  std::atomic<std::uint64_t> most_held{0};
  RunThreads(kThreads, [&](unsigned id) {
    std::mt19937 random(id);
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < kBlocks; ++i) handed[id].push_back(New(1 + random() % 2000, random()));
      sync.Wait();
      auto& mine = handed[(id + 1) % kThreads];
      for (const Block& block : mine) Delete(block);
      mine.clear();
      sync.Wait();
      if (id == 0) most_held = std::max<std::uint64_t>(most_held, Stats().bytes_held);
    }
  });
  EXPECT_LT(most_held.load(), 64 * hz::kMiB) << "slots wander and never come back";
  ExpectAllHome();
}

// Whoever gets a slot of a span finds it known, also of one that another thread is about to get its first
// ones of.
TEST_F(LineContract, AFreeKnowsASpanThatIsNew) {
  constexpr unsigned kThreads = 6, kRounds = 2000, kBlocks = 60;
  std::atomic<unsigned> unknown{0};
  Barrier sync(kThreads);
  RunThreads(kThreads, [&](unsigned) {
    std::vector<void*> blocks(kBlocks);
    for (unsigned round = 0; round < kRounds; ++round) {
      const std::size_t size = 100 + round * 7919 % 8000;
      sync.Wait();
      for (void*& block : blocks) {
        block = hz_malloc(size);
        if (Check(block) != hz::Fault::kNone) ++unknown;
      }
      for (void* block : blocks) hz_free(block);
    }
  });
  EXPECT_EQ(0u, unknown);
  ExpectAllHome();
}

TEST_F(LineContract, NothingIsLostWhenThreadsEndWithFreesInFlight) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<Block> of_the_dead;
    std::thread([&] {
      for (int i = 0; i < 300; ++i) of_the_dead.push_back(New(1 + random() % 5000, random()));
    }).join();
    std::vector<Block> ours;
    for (int i = 0; i < 300; ++i) ours.push_back(New(1 + random() % 5000, random()));
    // Ends right after, with an outbox full of our slots and of those of a dead thread.
    std::thread([&] {
      for (int i = 0; i < 300; ++i) {
        Delete(ours[i]);
        if (i % 2 == 0) Delete(of_the_dead[i]);
      }
    }).join();
    for (int i = 1; i < 300; i += 2) Delete(of_the_dead[i]);
  }
  ExpectAllHome();
}

TEST_F(LineContract, LargeBlocksAreNotMappedForEveryOperation) {
  if (HasSeals()) GTEST_SKIP() << "they are";
  std::thread([] {  // with a cache that others have not filled
    const auto from_the_system = [] {
      const hz_stats_t s = Stats();
      return !IsTiny() ? s.spans_acquired : s.bytes_purged;
    };
    std::uint64_t warm = 0;
    const std::vector<std::size_t> all = {64, 65, 100, 128, 200, 256, 1000, 2000};
    const auto settles = [&](const std::vector<std::size_t>& sizes) {
      for (int round = 0; round < 200; ++round) {
        if (round == 20) warm = from_the_system();
        for (std::size_t kib : sizes) hz_free(hz_malloc(kib * hz::kKiB));
      }
      EXPECT_EQ(warm, from_the_system());
    };
    // A line without caches gives back what lies behind a block at once, which sizes in turn make it do
    // again.
    if (!IsTiny()) return settles(all);
    for (const std::size_t kib : all) settles({kib});
  })
      .join();
}

// More than owners share a number where a line has few, more than its tables begin with where it has many.
TEST_F(LineContract, MoreThreadsThanOwners) {
  constexpr unsigned kThreads = 200;
  std::vector<Block> handed[kThreads];
  Barrier sync(kThreads);
  std::atomic<std::uint64_t> threads_seen{0};
  const std::uint64_t threads_before = Stats().threads;
  RunThreads(kThreads, [&](unsigned id) {
    std::mt19937 random(id);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 50; ++i) handed[id].push_back(New(1 + random() % 1000, random()));
      sync.Wait();
      if (id == 0) threads_seen = Stats().threads;
      auto& mine = handed[(id * 7 + 13) % kThreads];  // a permutation: 7 and 200 have no common factor
      for (const Block& block : mine) Delete(block);
      mine.clear();
      sync.Wait();
    }
  });
  EXPECT_EQ(threads_before + (!IsTiny() ? kThreads : 0), threads_seen.load());
  EXPECT_EQ(threads_before, Stats().threads);
  ExpectAllHome();
}

// Destructors of other thread-specific data run before and after the heap's own, and arm themselves again.
TEST_F(LineContract, ThreadExitDestructorsMayAllocateAndFree) {
  constexpr int kKeys = 8;
  // As many as the C library makes at least; ThreadSanitizer ends its own life in the last one.
  constexpr int kRounds = hz::kThreadSanitizer ? 3 : 4;
  constexpr int kThreads = 50;
  struct Record {
    int key;
    int round;
    char filling[100];
  };
  static pthread_key_t keys[kKeys];
  static std::atomic<int> calls{0};
  calls = 0;
  const auto arm = [](int key, int round) {
    auto* record = static_cast<Record*>(hz_malloc(sizeof(Record)));
    *record = {key, round, {}};
    pthread_setspecific(keys[key], record);
  };
  static const auto arm_again = arm;
  for (pthread_key_t& key : keys) {
    pthread_key_create(&key, [](void* block) {
      const Record record = *static_cast<Record*>(block);
      hz_free(block);
      if (record.round < kRounds) arm_again(record.key, record.round + 1);
      ++calls;
    });
  }
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&] {
      for (int key = 0; key < kKeys; ++key) arm(key, 1);
    }).join();
  }
  EXPECT_EQ(kThreads * kKeys * kRounds, calls.load());
  for (pthread_key_t key : keys) pthread_key_delete(key);
  ExpectAllHome();
}

TEST_F(LineContract, ManyShortThreadsLeaveNothingBehind) {
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      std::thread([&] {
        for (std::size_t size : {std::size_t{24}, std::size_t{200}, std::size_t{3000}, std::size_t{40000}}) {
          void* at = hz_malloc(size);
          std::memset(at, 1, size);
          hz_free(at);
        }
      }).join();
    }
  };
  // What stores of magazines keep depends on the processors that threads happened to run on; a trim asks it
  // back.
  const auto metadata = [&] {
    hz_trim(0);
    return Stats().bytes_metadata;
  };
  run(200);
  const std::size_t metadata_before = metadata();
  run(200);
  const hz_stats_t before = Stats();
  const std::size_t rss = RssBytes();
  run(2000);
  const hz_stats_t after = Stats();
  EXPECT_LE(after.bytes_metadata, before.bytes_metadata + std::thread::hardware_concurrency() * hz::kGranule);
  // Spans that lie at random come to new addresses, which have rows in tables.
  EXPECT_LE(metadata(), metadata_before + (HasSeals() ? 4 * hz::kGranule : 0));
  EXPECT_EQ(before.threads, after.threads);
  EXPECT_LE(after.bytes_held, before.bytes_held + hz::kMiB);
  if (!kUnderTool) {
    EXPECT_LE(RssBytes(), rss + hz::kMiB);
  }
  ExpectAllHome();
}

TEST_F(LineContract, MemoryComesBack) {
  constexpr std::size_t kBytes = 256 * hz::kMiB;
  std::vector<void*> blocks;
  blocks.reserve(1 << 20);
  std::mt19937 random(1);
  for (int round = 0; round < 2; ++round) {
    hz_trim(0);
    const std::size_t before = RssBytes();
    for (std::size_t bytes = 0; bytes < kBytes;) {
      const std::size_t size = MixedSize(random);
      void* at = hz_malloc(size);
      std::memset(at, 1, size);
      blocks.push_back(at);
      bytes += size;
    }
    EXPECT_GE(Stats().bytes_held, kBytes);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (void* at : blocks) hz_free(at);
    blocks.clear();
    const std::uint64_t purged = Stats().bytes_purged;
    const bool told = hz_trim(0);
    if (told) {
      EXPECT_GT(Stats().bytes_purged, purged);
    } else {
      EXPECT_EQ(0u, Stats().bytes_dirty) << "false only if the purger was quicker";
    }
    if (!kUnderTool) {
      EXPECT_LE(RssBytes(), before + 8 * hz::kMiB) << "round " << round;
    }
    EXPECT_FALSE(hz_trim(0)) << "and then there is not";
    ExpectAllHome();
  }
}

TEST_F(LineContract, ATrimKeepsThePad) {
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(hz_malloc(60000));
  for (void* at : blocks) std::memset(at, 1, 60000);
  hz_trim(0);
  for (int i = 0; i < 500; ++i) hz_free(blocks[i]);
  const std::size_t pad = hz::kMiB;
  hz_trim(pad);
  EXPECT_LE(Stats().bytes_dirty, pad);
  for (int i = 500; i < 1000; ++i) {
    EXPECT_TRUE(IsFilledWith(blocks[i], 60000, 1));
    hz_free(blocks[i]);
  }
  ExpectAllHome();
}

TEST_F(LineContract, AChildHasAWholeHeap) {
  if (!kForks) GTEST_SKIP() << "there are no forks";
  std::atomic<bool> done{false};
  std::thread churn([&] {
    std::mt19937 random(3);
    while (!done.load()) {
      std::vector<Block> blocks;
      for (int i = 0; i < 200; ++i) blocks.push_back(New(MixedSize(random) % 10000, i));
      for (const Block& block : blocks) Delete(block);
    }
  });
  const Block block = New(5000, 1);
  for (int round = 0; round < 30; ++round) {
    ASSERT_EQ(7, InAFork([&] {
                const bool intact = Intact(block);
                hz_free(block.at);
                std::vector<void*> own;
                for (std::size_t size = 16; size < 100000; size += 333) own.push_back(hz_malloc(size));
                for (void* at : own) hz_free(at);
                hz_trim(0);
                const bool alone = Stats().threads == (!IsTiny() ? 1 : 0);
                return intact && alone ? 7 : intact ? 8 : 9;
              }));
  }
  done = true;
  churn.join();
  Delete(block);
  ExpectAllHome();
}

TEST_F(LineContract, MetadataIsASmallPart) {
  hz_free(hz_malloc(1));
  const hz_stats_t empty = Stats();
  std::vector<void*> blocks;
  for (int i = 0; i < 100000; ++i) blocks.push_back(hz_malloc(500));
  // Where every slot's state is kept out of line, a little more.
  const unsigned part = ProvesEveryFree() ? 40 : 50;
  EXPECT_LE(Stats().bytes_metadata - empty.bytes_metadata, 100000u * 512 / part);
  for (void* at : blocks) hz_free(at);
  ExpectAllHome();
}

}  // namespace
}  // namespace hz_test
