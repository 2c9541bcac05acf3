// SPDX-License-Identifier: Apache-2.0
//
// The promises of a heap, for every line, beside the C library's malloc. The names of the C world are tested
// in test/surface, reports in test/death.
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

#include "contract/lines.hpp"
#include "support/barrier.hpp"
#include "support/fork.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"
#include "support/rss.hpp"
#include "support/sanitizers.hpp"
#include "support/tsan_options.hpp"

namespace hz_test {
namespace {

struct Block {
  void* at;
  std::size_t size;
  std::uint64_t seed;
};

template <class Line>
class LineContract : public ::testing::Test {
 protected:
  using Heap = hz::Heap<Line>;

  static hz_stats_t Stats() { return hz::Library<Line>::stats(); }

  static Block New(std::size_t size, std::uint64_t seed) {
    Block block = {Heap::malloc(size), size, seed};
    FillPattern(block.at, size, seed);
    return block;
  }
  static bool Intact(const Block& block) { return HasPattern(block.at, block.size, block.seed); }
  static void Delete(const Block& block) {
    EXPECT_TRUE(Intact(block)) << block.size << " bytes";
    Heap::free(block.at);
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
    Heap::trim(0);
    const hz_stats_t stats = Stats();
    EXPECT_EQ(0u, stats.bytes_held) << "slots were lost";
    EXPECT_EQ(0u, stats.bytes_cached);
    EXPECT_EQ(0u, stats.bytes_dirty);
    EXPECT_EQ(0u, stats.remote_waiting);
    EXPECT_EQ(stats.spans_acquired, stats.spans_retired);
  }
};
TYPED_TEST_SUITE(LineContract, Lines);

// What threads cache.
template <class Line>
class CacheContract : public LineContract<Line> {};
TYPED_TEST_SUITE(CacheContract, LinesOfBoxes);

TYPED_TEST(LineContract, EverySizeFitsAndIsAligned) {
  using Heap = typename TestFixture::Heap;
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    if (hz::is_spare(bin)) continue;
    for (std::size_t size : {hz::bin_size(bin - 1) + 1, hz::bin_size(bin) - 1, hz::bin_size(bin)}) {
      const Block block = this->New(size, size);
      ASSERT_NE(nullptr, block.at);
      EXPECT_TRUE(IsAligned(block.at, 16)) << size;
      // The longest class is none where a region of that length begins with notes.
      if (kOfBoxes<TypeParam> || bin != hz::kLastBin) {
        EXPECT_EQ(kSealed<TypeParam> ? size : hz::bin_size(bin), Heap::usable_size(block.at)) << size;
      }
      EXPECT_TRUE(Heap::owns(block.at));
      std::memset(block.at, 1, Heap::usable_size(block.at));
      Heap::free(block.at);
    }
  }
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, SizeZeroIsABlock) {
  using Heap = typename TestFixture::Heap;
  void* a = Heap::malloc(Opaque(std::size_t{0}));
  void* b = Heap::malloc(Opaque(std::size_t{0}));
  EXPECT_NE(nullptr, a);
  EXPECT_NE(a, b);
  EXPECT_EQ(Heap::usable_size(a) == 0, kSealed<TypeParam>);
  Heap::free(a);
  Heap::free(b);
  Heap::free(nullptr);
}

TYPED_TEST(LineContract, HugeBlocks) {
  using Heap = typename TestFixture::Heap;
  for (std::size_t size : {hz::kLargeMax + 1, 5 * hz::kMiB + 123, 64 * hz::kMiB, 100 * hz::kMiB - 1}) {
    const Block block = this->New(size, size);
    ASSERT_NE(nullptr, block.at);
    EXPECT_GE(Heap::usable_size(block.at), size);
    EXPECT_LT(Heap::usable_size(block.at), size + hz::kGranule);
    EXPECT_TRUE(Heap::owns(block.at));
    this->Delete(block);
  }
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, WhatCannotBeIsRefused) {
  using Heap = typename TestFixture::Heap;
  for (std::size_t size : {SIZE_MAX, SIZE_MAX - 15, std::size_t{PTRDIFF_MAX} + 1, std::size_t{PTRDIFF_MAX}}) {
    EXPECT_EQ(nullptr, Heap::malloc(Opaque(size))) << size;
    EXPECT_EQ(nullptr, Heap::calloc(1, Opaque(size))) << size;
    EXPECT_EQ(nullptr, Heap::aligned(4096, Opaque(size))) << size;
    for (std::size_t old_size : {100u, 100000u, 10000000u}) {
      const Block block = this->New(old_size, 3);
      EXPECT_EQ(nullptr, Heap::realloc(block.at, Opaque(size))) << old_size << " to " << size;
      this->Delete(block);
    }
  }
  EXPECT_EQ(nullptr, Heap::calloc(Opaque(std::size_t{1} << 32), std::size_t{1} << 32));
  EXPECT_EQ(nullptr, Heap::calloc(Opaque(SIZE_MAX), 2));
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, CallocIsZeroAlsoInUsedMemory) {
  using Heap = typename TestFixture::Heap;
  std::mt19937 random(1);
  for (int round = 0; round < 3; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 1000; ++i) {
      const std::size_t size = this->MixedSize(random);
      void* at = Heap::calloc(1, size);
      ASSERT_TRUE(IsZero(at, size)) << size;
      std::memset(at, 0xFF, Heap::usable_size(at));
      blocks.push_back({at, size, 0});
    }
    for (const Block& block : blocks) Heap::free(block.at);
  }
  void* product = Heap::calloc(300, 7);
  EXPECT_GE(Heap::usable_size(product), 2100u);
  Heap::free(product);
  this->ExpectAllHome();
}

// Sanitizers make the heap reserve its range, which is none too long.
constexpr std::size_t kMostAligned = std::size_t{1} << (kUnderTool ? 30 : 38);

TYPED_TEST(LineContract, EveryAlignment) {
  using Heap = typename TestFixture::Heap;
  for (std::size_t alignment = 1; alignment <= kMostAligned; alignment *= 2) {
    std::vector<Block> blocks;
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{100},
                             std::size_t{4097}, std::size_t{65536}, std::size_t{70000}, std::size_t{2000000},
                             std::size_t{2500000}, std::size_t{4000000}, std::size_t{5000000}}) {
      if (alignment > 4 * hz::kMiB && size > 1000000 && size < 5000000)
        continue;  // addresses are not endless
      void* at = Heap::aligned(alignment, size);
      ASSERT_NE(nullptr, at) << size << " at " << alignment;
      ASSERT_TRUE(IsAligned(at, alignment < 16 ? 16 : alignment)) << size << " at " << alignment;
      ASSERT_GE(Heap::usable_size(at), size);
      EXPECT_TRUE(Heap::owns(at));
      FillPattern(at, size, alignment);
      blocks.push_back({at, size, alignment});
    }
    for (const Block& block : blocks) this->Delete(block);
  }
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, ReallocKeepsTheContents) {
  using Heap = typename TestFixture::Heap;
  const std::size_t sizes[] = {1, 16, 17, 100, 2048, 5000, 65536, 65537, 1000000, 4194304, 4194305, 20000000};
  for (std::size_t from : sizes) {
    for (std::size_t to : sizes) {
      const Block block = this->New(from, from + to);
      void* moved = Heap::realloc(block.at, to);
      ASSERT_NE(nullptr, moved);
      ASSERT_GE(Heap::usable_size(moved), to);
      ASSERT_TRUE(HasPattern(moved, std::min(from, to), from + to)) << from << " to " << to;
      std::memset(moved, 7, to);
      Heap::free(moved);
    }
  }
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, AHugeBlockGrowsAndShrinksByManySteps) {
  using Heap = typename TestFixture::Heap;
  if (kSealed<TypeParam>) GTEST_SKIP() << "each step is a block of its own";
  Block block = this->New(5 * hz::kMiB, 1);
  const Block wall = this->New(5 * hz::kMiB, 2);
  std::mt19937 random(1);
  for (int step = 0; step < 60; ++step) {
    const std::size_t size = hz::kLargeMax + 1 + random() % (24 * hz::kMiB);
    void* moved = Heap::realloc(block.at, size);
    ASSERT_NE(nullptr, moved);
    ASSERT_TRUE(HasPattern(moved, std::min(size, block.size), block.seed)) << step;
    block = {moved, size, random()};
    FillPattern(moved, size, block.seed);
  }
  this->Delete(block);
  this->Delete(wall);
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, OwnsSlotsAndNothingElse) {
  using Heap = typename TestFixture::Heap;
  static int global = 0;
  int local = 0;
  void* theirs = std::malloc(100);
  for (void* at :
       {static_cast<void*>(&global), static_cast<void*>(&local), theirs, static_cast<void*>(nullptr),
        reinterpret_cast<void*>(16), reinterpret_cast<void*>(UINTPTR_MAX & ~std::uintptr_t{15})}) {
    EXPECT_FALSE(Heap::owns(at)) << at;
  }
  std::free(theirs);
  for (std::size_t size : {std::size_t{64}, std::size_t{3000}, std::size_t{100000}, std::size_t{5000000}}) {
    char* at = static_cast<char*>(Heap::malloc(size));
    EXPECT_TRUE(Heap::owns(at));
    for (std::size_t inside : {std::size_t{1}, std::size_t{16}, size / 2})
      EXPECT_FALSE(Heap::owns(at + inside)) << size << " + " << inside;
    Heap::free(at);
  }
}

// Miss, valid, or invalid with the reason.
TYPED_TEST(LineContract, SaysWhatAFreeWouldFind) {
  using Heap = typename TestFixture::Heap;
  constexpr bool kSeesLate = [] {
    if constexpr (kOfBoxes<TypeParam>) return !TypeParam::Guard::kProves;
    return false;
  }();
  static int global = 0;
  void* theirs = std::malloc(100);
  for (void* at : {static_cast<void*>(&global), theirs, static_cast<void*>(nullptr),
                   reinterpret_cast<void*>(UINTPTR_MAX & ~std::uintptr_t{15})})
    EXPECT_EQ(hz::Fault::kForeign, Heap::check(at)) << at;
  std::free(theirs);
  for (std::size_t size : {std::size_t{64}, std::size_t{3000}, std::size_t{100000}, std::size_t{5000000}}) {
    char* first = static_cast<char*>(Heap::malloc(size));
    char* at = static_cast<char*>(Heap::malloc(size));
    EXPECT_EQ(hz::Fault::kNone, Heap::check(at)) << size;
    for (std::size_t inside : {std::size_t{1}, std::size_t{16}, size / 2})
      EXPECT_EQ(hz::Fault::kInterior, Heap::check(at + inside)) << size << " + " << inside;
    Heap::free(at);
    const hz::Fault fault = Heap::check(at);
    if (size > hz::kLargeMax) {
      EXPECT_EQ(hz::Fault::kNotAllocated, fault) << "its pages are nobody's";
    } else if (!kSeesLate) {
      EXPECT_TRUE(fault == hz::Fault::kDoubleFree || fault == hz::Fault::kNotAllocated) << size;
    }
    EXPECT_EQ(hz::Fault::kNone, Heap::check(first)) << size;
    Heap::free(first);
  }
}

// Threads that free what they allocated have nothing to do with each other, where owners are told apart: no
// span has slots of two of them.
TYPED_TEST(CacheContract, WhoFreesItsOwnBlocksSendsNone) {
  using Heap = typename TestFixture::Heap;
  constexpr unsigned kThreads = 2, kSteps = 200000;  // of more threads not all may have their own
  const std::uint64_t before = this->Stats().remote_sent + this->Stats().remote_refused;
  this->RunThreads(kThreads, [](unsigned id) {
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
  EXPECT_LE(this->Stats().remote_sent + this->Stats().remote_refused - before, kThreads * kSteps / 2 / 100);
}

TYPED_TEST(LineContract, LivingBlocksNeverOverlap) {
  using Heap = typename TestFixture::Heap;
  std::mt19937 random(5);
  std::vector<Block> blocks;
  for (int step = 0; step < 30000; ++step) {
    const std::size_t size = this->MixedSize(random);
    if (blocks.size() < 1500 || random() % 2 == 0) {
      if (blocks.size() > 3000) continue;
      Block block = {
          random() % 8 == 0 ? Heap::aligned(std::size_t{1} << random() % 13, size) : Heap::malloc(size), size,
          random()};
      ASSERT_NE(nullptr, block.at);
      FillPattern(block.at, size, block.seed);
      blocks.push_back(block);
      continue;
    }
    Block& block = blocks[random() % blocks.size()];
    ASSERT_TRUE(this->Intact(block)) << step;
    if (random() % 4 == 0) {
      block = {Heap::realloc(block.at, size), size, random()};
      FillPattern(block.at, size, block.seed);
    } else {
      Heap::free(block.at);
      block = blocks.back();
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) this->Delete(block);
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, BlocksAreFreedByOtherThreads) {
  constexpr unsigned kThreads = 4;
  constexpr int kRounds = 30;
  constexpr int kBlocks = 500;
  std::vector<Block> handed[kThreads];
  Barrier sync(kThreads);
  std::atomic<std::uint64_t> most_held{0};
  this->RunThreads(kThreads, [&](unsigned id) {
    std::mt19937 random(id);
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < kBlocks; ++i) handed[id].push_back(this->New(1 + random() % 2000, random()));
      sync.Wait();
      auto& mine = handed[(id + 1) % kThreads];
      for (const Block& block : mine) this->Delete(block);
      mine.clear();
      sync.Wait();
      if (id == 0) most_held = std::max<std::uint64_t>(most_held, this->Stats().bytes_held);
    }
  });
  EXPECT_LT(most_held.load(), 64 * hz::kMiB) << "slots wander and never come back";
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, NothingIsLostWhenThreadsEndWithFreesInFlight) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<Block> of_the_dead;
    std::thread([&] {
      for (int i = 0; i < 300; ++i) of_the_dead.push_back(this->New(1 + random() % 5000, random()));
    }).join();
    std::vector<Block> ours;
    for (int i = 0; i < 300; ++i) ours.push_back(this->New(1 + random() % 5000, random()));
    // Ends right after, with an outbox full of our slots and of those of a dead thread.
    std::thread([&] {
      for (int i = 0; i < 300; ++i) {
        this->Delete(ours[i]);
        if (i % 2 == 0) this->Delete(of_the_dead[i]);
      }
    }).join();
    for (int i = 1; i < 300; i += 2) this->Delete(of_the_dead[i]);
  }
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, LargeBlocksAreNotMappedForEveryOperation) {
  using Heap = typename TestFixture::Heap;
  if (kSealed<TypeParam>) GTEST_SKIP() << "they are";
  std::thread([] {  // with a cache that others have not filled
    const auto from_the_system = [] {
      const hz_stats_t s = TestFixture::Stats();
      return kOfBoxes<TypeParam> ? s.spans_acquired : s.bytes_purged;
    };
    std::uint64_t warm = 0;
    for (int round = 0; round < 200; ++round) {
      if (round == 20) warm = from_the_system();
      for (std::size_t kib : {64, 65, 100, 128, 200, 256, 1000, 2000})
        Heap::free(Heap::malloc(kib * hz::kKiB));
    }
    EXPECT_EQ(warm, from_the_system());
  })
      .join();
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
  if (hz::kThreadSanitizer || kEmulated) GTEST_SKIP() << "every crossing is slow";
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

// A thread that emptied itself before there was a purger caches again as soon as there is one: with its next
// free, for its bins may give what it allocates for ever.
TYPED_TEST(CacheContract, WhoHadEmptiedItselfCachesAgain) {
  using S = hz::State<TypeParam>;
  std::vector<void*> blocks(64 * hz::kMiB / 512);
  for (void*& block : blocks) block = TestFixture::Heap::malloc(512);
  if (S::tls().heap == &S::shared) GTEST_SKIP() << "nobody tells of this thread's end";
  std::size_t left = blocks.size();
  while (left > 8 && !S::tls().heap->hidden) TestFixture::Heap::free(blocks[--left]);
  ASSERT_TRUE(S::tls().heap->hidden);
  ASSERT_EQ(&S::empty, &S::fast());
  S::global.aided.store(true);
  TestFixture::Heap::free(blocks[--left]);
  S::global.aided.store(false);
  EXPECT_FALSE(S::tls().heap->hidden);
  EXPECT_EQ(S::tls().heap, &S::fast());
  while (left != 0) TestFixture::Heap::free(blocks[--left]);
}

// More than owners share a number where a line has few, more than its tables begin with where it has many.
TYPED_TEST(LineContract, MoreThreadsThanOwners) {
  constexpr unsigned kThreads = 200;
  std::vector<Block> handed[kThreads];
  Barrier sync(kThreads);
  std::atomic<std::uint64_t> threads_seen{0};
  const std::uint64_t threads_before = this->Stats().threads;
  this->RunThreads(kThreads, [&](unsigned id) {
    std::mt19937 random(id);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 50; ++i) handed[id].push_back(this->New(1 + random() % 1000, random()));
      sync.Wait();
      if (id == 0) threads_seen = this->Stats().threads;
      auto& mine = handed[(id * 7 + 13) % kThreads];  // a permutation: 7 and 200 have no common factor
      for (const Block& block : mine) this->Delete(block);
      mine.clear();
      sync.Wait();
    }
  });
  EXPECT_EQ(threads_before + (kOfBoxes<TypeParam> ? kThreads : 0), threads_seen.load());
  EXPECT_EQ(threads_before, this->Stats().threads);
  this->ExpectAllHome();
}

// Destructors of other thread-specific data run before and after the heap's own, and arm themselves again.
TYPED_TEST(LineContract, ThreadExitDestructorsMayAllocateAndFree) {
  using Heap = typename TestFixture::Heap;
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
    auto* record = static_cast<Record*>(Heap::malloc(sizeof(Record)));
    *record = {key, round, {}};
    pthread_setspecific(keys[key], record);
  };
  static const auto arm_again = arm;
  for (pthread_key_t& key : keys) {
    pthread_key_create(&key, [](void* block) {
      const Record record = *static_cast<Record*>(block);
      Heap::free(block);
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
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, ManyShortThreadsLeaveNothingBehind) {
  using Heap = typename TestFixture::Heap;
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      std::thread([&] {
        for (std::size_t size : {std::size_t{24}, std::size_t{200}, std::size_t{3000}, std::size_t{40000}}) {
          void* at = Heap::malloc(size);
          std::memset(at, 1, size);
          Heap::free(at);
        }
      }).join();
    }
  };
  // What stores of magazines keep depends on the processors that threads happened to run on; a trim asks it
  // back.
  const auto metadata = [&] {
    Heap::trim(0);
    return this->Stats().bytes_metadata;
  };
  run(200);
  const std::size_t metadata_before = metadata();
  run(200);
  const hz_stats_t before = this->Stats();
  const std::size_t rss = RssBytes();
  run(2000);
  const hz_stats_t after = this->Stats();
  EXPECT_LE(after.bytes_metadata, before.bytes_metadata + std::thread::hardware_concurrency() * hz::kGranule);
  EXPECT_EQ(metadata_before, metadata());
  EXPECT_EQ(before.threads, after.threads);
  EXPECT_LE(after.bytes_held, before.bytes_held + hz::kMiB);
  if (!kUnderTool) {
    EXPECT_LE(RssBytes(), rss + hz::kMiB);
  }
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, MemoryComesBack) {
  using Heap = typename TestFixture::Heap;
  constexpr std::size_t kBytes = 256 * hz::kMiB;
  std::vector<void*> blocks;
  blocks.reserve(1 << 20);
  std::mt19937 random(1);
  for (int round = 0; round < 2; ++round) {
    Heap::trim(0);
    const std::size_t before = RssBytes();
    for (std::size_t bytes = 0; bytes < kBytes;) {
      const std::size_t size = this->MixedSize(random);
      void* at = Heap::malloc(size);
      std::memset(at, 1, size);
      blocks.push_back(at);
      bytes += size;
    }
    EXPECT_GE(this->Stats().bytes_held, kBytes);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (void* at : blocks) Heap::free(at);
    blocks.clear();
    const std::uint64_t purged = this->Stats().bytes_purged;
    const bool told = Heap::trim(0);
    if (told) {
      EXPECT_GT(this->Stats().bytes_purged, purged);
    } else {
      EXPECT_EQ(0u, this->Stats().bytes_dirty) << "false only if the purger was quicker";
    }
    if (!kUnderTool) {
      EXPECT_LE(RssBytes(), before + 8 * hz::kMiB) << "round " << round;
    }
    EXPECT_FALSE(Heap::trim(0)) << "and then there is not";
    this->ExpectAllHome();
  }
}

TYPED_TEST(LineContract, ATrimKeepsThePad) {
  using Heap = typename TestFixture::Heap;
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(Heap::malloc(60000));
  for (void* at : blocks) std::memset(at, 1, 60000);
  Heap::trim(0);
  for (int i = 0; i < 500; ++i) Heap::free(blocks[i]);
  const std::size_t pad = hz::kMiB;
  Heap::trim(pad);
  EXPECT_LE(this->Stats().bytes_dirty, pad);
  for (int i = 500; i < 1000; ++i) {
    EXPECT_TRUE(IsFilledWith(blocks[i], 60000, 1));
    Heap::free(blocks[i]);
  }
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, AChildHasAWholeHeap) {
  if (!kForks) GTEST_SKIP() << "there are no forks";
  using Heap = typename TestFixture::Heap;
  std::atomic<bool> done{false};
  std::thread churn([&] {
    std::mt19937 random(3);
    while (!done.load()) {
      std::vector<Block> blocks;
      for (int i = 0; i < 200; ++i) blocks.push_back(this->New(this->MixedSize(random) % 10000, i));
      for (const Block& block : blocks) this->Delete(block);
    }
  });
  const Block block = this->New(5000, 1);
  for (int round = 0; round < 30; ++round) {
    ASSERT_EQ(7, InAFork([&] {
                const bool intact = this->Intact(block);
                Heap::free(block.at);
                std::vector<void*> own;
                for (std::size_t size = 16; size < 100000; size += 333) own.push_back(Heap::malloc(size));
                for (void* at : own) Heap::free(at);
                Heap::trim(0);
                const bool alone = this->Stats().threads == (kOfBoxes<TypeParam> ? 1 : 0);
                return intact && alone ? 7 : intact ? 8 : 9;
              }));
  }
  done = true;
  churn.join();
  this->Delete(block);
  this->ExpectAllHome();
}

TYPED_TEST(LineContract, MetadataIsASmallPart) {
  using Heap = typename TestFixture::Heap;
  Heap::free(Heap::malloc(1));
  const hz_stats_t empty = this->Stats();
  std::vector<void*> blocks;
  for (int i = 0; i < 100000; ++i) blocks.push_back(Heap::malloc(500));
  // Where every slot's state is kept out of line, a little more.
  unsigned part = 50;
  if constexpr (kOfBoxes<TypeParam>) part = TypeParam::Exchange::kUntold ? 40 : 50;
  EXPECT_LE(this->Stats().bytes_metadata - empty.bytes_metadata, 100000u * 512 / part);
  for (void* at : blocks) Heap::free(at);
  this->ExpectAllHome();
}

}  // namespace
}  // namespace hz_test
