// SPDX-License-Identifier: Apache-2.0
//
// First-class heaps, for a line of boxes: what a block of one is, what it ends with, and what is said of
// a wrong one. Bugs that end a program are in test/death, names of the C world in test/surface.
#include "heap/heaps/heaps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "contract/heap/line.hpp"
#include "support/capture.hpp"
#include "support/fork.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"
#include "support/raw_fork.hpp"
#include "support/sanitizers.hpp"

namespace hz_test {
namespace {

template <class Line>
class HeapsContract : public ::testing::Test {
 protected:
  using Heap = hz::Heap<Line>;
  using Heaps = hz::Heaps<Line>;
  using Ways = hz::HeapWays<Line>;
  using S = hz::State<Line>;

  struct Block {
    void* at;
    std::size_t size;
    std::uint64_t seed;
  };

  // What the first use of a heap costs is not what a case looks at.
  void SetUp() override {
    Heaps::destroy(Heaps::begin());
    Heap::free(Heap::malloc(1));
    held_ = Held();
  }
  void TearDown() override { EXPECT_EQ(held_, Held()) << "something outlived its heap"; }

  // With what threads cache.
  static std::size_t Held() {
    Heap::trim(0);
    return hz::Library<Line>::stats().bytes_held;
  }

  static Block New(hz::HeapHandle heap, std::size_t size, std::uint64_t seed) {
    Block block = {Heaps::malloc(heap, size), size, seed};
    EXPECT_NE(nullptr, block.at);
    if (block.at != nullptr) FillPattern(block.at, size, seed);
    return block;
  }
  static bool Intact(const Block& block) { return HasPattern(block.at, block.size, block.seed); }

  // As a program has them.
  static std::size_t MixedSize(std::mt19937& random) {
    const unsigned kind = random() % 1000;
    if (kind == 0) return random() % (6 * hz::kMiB);
    if (kind < 20) return random() % (128 * hz::kKiB);
    return random() % (kind < 200 ? 8 * hz::kKiB : 512);
  }

  // The words of the report that `wrong` brings about.
  template <class Wrong>
  static std::string Said(Wrong wrong) {
    Capture capture;
    hz::FaultReport::on_invalid = hz::FaultReport::OnInvalid::kReport;
    wrong();
    hz::FaultReport::on_invalid = hz::FaultReport::OnInvalid::kAbort;
    return capture.Text();
  }
  static bool Names(const std::string& said, const char* code, const void* at) {
    char text[64];
    std::snprintf(text, sizeof text, "hz: error: %s ptr=0x%zx ", code, reinterpret_cast<std::size_t>(at));
    return said.find(text) == 0 && said.find('\n') == said.size() - 1;
  }

 private:
  std::size_t held_ = 0;
};
TYPED_TEST_SUITE(HeapsContract, ThisLine);

TYPED_TEST(HeapsContract, BlocksAreApartAndEndWithTheirHeap) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  std::mt19937 random(1);
  const hz::HeapHandle heap = Heaps::begin();
  std::vector<typename TestFixture::Block> blocks;
  for (unsigned i = 0; i < 3000; ++i) {
    blocks.push_back(this->New(heap, this->MixedSize(random), i));
    const auto& block = blocks.back();
    EXPECT_TRUE(IsAligned(block.at, 16));
    EXPECT_TRUE(Heap::owns(block.at));
    EXPECT_EQ(hz::Fault::kNone, Heap::check(block.at));
    const std::size_t usable = Heap::usable_size(block.at);
    EXPECT_GE(usable, block.size);
    EXPECT_LE(usable,
              block.size < hz::kChunkMost ? block.size + block.size / 4 + 16 : block.size + hz::kGranule);
    EXPECT_EQ(usable, Heap::bytes_at(block.at));
  }
  for (const auto& block : blocks) EXPECT_TRUE(this->Intact(block)) << block.size;
  Heaps::destroy(heap);
  for (const auto& block : blocks) EXPECT_NE(hz::Fault::kNone, Heap::check(block.at));
}

TYPED_TEST(HeapsContract, AlignedAndZeroed) {
  using Heaps = typename TestFixture::Heaps;
  for (int round = 0; round < 2; ++round) {  // in memory that was written to, the second time
    const hz::HeapHandle heap = Heaps::begin();
    for (std::size_t alignment = 1; alignment <= 4 * hz::kMiB; alignment *= 2) {
      for (const std::size_t size : {0UL, 24UL, 1000UL, 28'000UL, 40'000UL}) {
        auto* block = static_cast<unsigned char*>(Heaps::allocate(heap, alignment, size));
        ASSERT_NE(nullptr, block);
        EXPECT_TRUE(IsAligned(block, alignment));
        std::memset(block, 0xA5, size);
        block = static_cast<unsigned char*>(Heaps::zeroed(heap, alignment, size));
        ASSERT_NE(nullptr, block);
        EXPECT_TRUE(IsAligned(block, alignment));
        bool zero = true;
        for (std::size_t i = 0; i < size; ++i) zero = zero && block[i] == 0;
        EXPECT_TRUE(zero) << size << " at " << alignment;
        std::memset(block, 0xA5, size);
        TestFixture::Heap::free(block);
      }
    }
    Heaps::destroy(heap);
  }
}

TYPED_TEST(HeapsContract, WhatIsFreedIsUsedAgain) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  std::mt19937 random(2);
  const hz::HeapHandle heap = Heaps::begin();
  constexpr std::size_t kSlots = 300;
  std::vector<typename TestFixture::Block> slots;
  const auto turn = [&](unsigned rounds) {
    for (unsigned i = 0; i < rounds; ++i) {
      auto& slot = slots[random() % kSlots];
      EXPECT_TRUE(this->Intact(slot));
      Heap::free_sized(slot.at, slot.size, 1, Heap::kExact);
      // Aligned ones, too, find those that were freed before.
      slot.at = Heaps::allocate(heap, slot.seed % 2 == 0 ? 64 : 1, slot.size);
      ASSERT_NE(nullptr, slot.at);
      FillPattern(slot.at, slot.size, slot.seed);
    }
  };
  for (unsigned i = 0; i < kSlots; ++i) slots.push_back(this->New(heap, 1 + random() % 3000, i));
  turn(3000);
  const std::size_t held = hz::Library<TypeParam>::stats().bytes_held;
  turn(20'000);
  EXPECT_LE(hz::Library<TypeParam>::stats().bytes_held, held + held / 4 + hz::kGranule);
  for (const auto& slot : slots) EXPECT_TRUE(this->Intact(slot));
  Heaps::destroy(heap);
}

TYPED_TEST(HeapsContract, WhatIsResizedStaysInItsHeap) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  const hz::HeapHandle heap = Heaps::begin(), other = Heaps::begin();
  const std::uint32_t number = hz::HeapTable::number(heap);
  void* block = Heaps::realloc(heap, nullptr, 10);
  std::size_t size = 10;
  FillPattern(block, 10, 7);
  void* const in_the_way = Heaps::allocate(heap, 1, 9 * hz::kMiB);
  for (const std::size_t next :
       {100UL, 20'000UL, 40'000UL, 5UL << 20, 40UL << 20, 9UL << 20, 100'000UL, 64UL}) {
    block = next % 3 == 0 ? Heap::realloc(block, next) : Heaps::realloc(heap, block, next);
    ASSERT_NE(nullptr, block);
    EXPECT_TRUE(HasPattern(block, std::min<std::size_t>(size, 10), 7)) << next;
    EXPECT_EQ(number, TestFixture::Ways::holder_of(block)) << next;
    size = next;
    FillPattern(block, 10, 7);
  }
  EXPECT_TRUE(this->Names(this->Said([&] { EXPECT_EQ(nullptr, Heaps::realloc(other, block, 100)); }),
                          "E01 foreign-pointer", block));
  void* const of_nobody = Heap::malloc(10);
  EXPECT_TRUE(this->Names(this->Said([&] { EXPECT_EQ(nullptr, Heaps::realloc(other, of_nobody, 100)); }),
                          "E01 foreign-pointer", of_nobody));
  EXPECT_EQ(0U, TestFixture::Ways::holder_of(of_nobody));
  Heap::free(of_nobody);
  EXPECT_EQ(nullptr, Heaps::realloc(heap, block, 0)) << "frees it";
  Heap::free(in_the_way);
  Heaps::destroy(other);
  Heaps::destroy(heap);
}

TYPED_TEST(HeapsContract, BlocksOfADeletedHeapAreTheProcesss) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  const std::size_t before = this->Held();
  const hz::HeapHandle heap = Heaps::begin();
  std::vector<typename TestFixture::Block> blocks;
  for (unsigned i = 0; i < 200; ++i) blocks.push_back(this->New(heap, i * 20, i));
  blocks.push_back(this->New(heap, 5 * hz::kMiB, 1));
  Heap::free(std::exchange(blocks[3].at, Heap::malloc(blocks[3].size)));
  FillPattern(blocks[3].at, blocks[3].size, blocks[3].seed);
  Heaps::remove(heap);
  EXPECT_TRUE(this->Names(this->Said([&] { EXPECT_EQ(nullptr, Heaps::allocate(heap, 1, 8)); }), "E07 no-heap",
                          reinterpret_cast<void*>(heap)));
  for (auto& block : blocks) {
    EXPECT_TRUE(this->Intact(block));
    EXPECT_EQ(0U, TestFixture::Ways::holder_of(block.at));
    block.at = Heap::realloc(block.at, block.size * 2 + 1);
    EXPECT_TRUE(this->Intact(block));
  }
  for (const auto& block : blocks) Heap::free(block.at);
  EXPECT_EQ(before, this->Held());
}

TYPED_TEST(HeapsContract, BlocksAreFreedWhileTheirHeapIsDeleted) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  constexpr unsigned kBlocks = 200, kRounds = kUnderTool ? 30 : 200;
  std::vector<void*> blocks(kBlocks);
  std::atomic<unsigned> freed{0}, round{0};
  std::thread other([&] {
    for (unsigned i = 1; i <= kRounds; ++i) {
      while (round.load(std::memory_order_acquire) != i) std::this_thread::yield();
      for (void* block : blocks) Heap::free(block);
      freed.store(i, std::memory_order_release);
    }
  });
  for (unsigned i = 1; i <= kRounds; ++i) {
    const hz::HeapHandle heap = Heaps::begin();
    for (void*& block : blocks) block = Heaps::allocate(heap, 1, 400);
    round.store(i, std::memory_order_release);
    if (i % 2 == 0) std::this_thread::yield();
    Heaps::remove(heap);
    while (freed.load(std::memory_order_acquire) != i) std::this_thread::yield();
  }
  other.join();
}

TYPED_TEST(HeapsContract, WrongPointersAreTold) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  const hz::HeapHandle heap = Heaps::begin();
  auto* const block = static_cast<char*>(Heaps::allocate(heap, 1, 100));
  auto* const next = static_cast<char*>(Heaps::allocate(heap, 1024, 100));  // a gap before it
  std::memset(block, 1, 100);
  const auto expect = [&](void* at, hz::Fault fault, const char* code) {
    EXPECT_EQ(fault, Heap::check(at)) << code;
    EXPECT_TRUE(this->Names(this->Said([&] { Heap::free(at); }), code, at)) << code;
    EXPECT_TRUE(this->Names(this->Said([&] { EXPECT_EQ(nullptr, Heap::realloc(at, 500)); }), code, at))
        << code;
  };
  for (const int offset : {1, 8, 16, 99})
    expect(block + offset, hz::Fault::kInterior, "E04 interior-pointer");
  expect(next + 4096, hz::Fault::kNotAllocated, "E02 not-allocated");
  const auto granule = reinterpret_cast<std::uintptr_t>(block) & ~(hz::kGranule - 1);
  for (const unsigned notes : {0, 16, 600})
    expect(reinterpret_cast<void*>(granule + notes), hz::Fault::kNotAllocated, "E02 not-allocated");
  expect(block + 112, hz::Fault::kDoubleFree, "E03 double-free");  // the gap
  Heap::free(block);
  expect(block, hz::Fault::kDoubleFree, "E03 double-free");
  EXPECT_TRUE(this->Names(this->Said([&] { Heap::free_sized(next, 5000, 1, Heap::kAfterRealloc); }),
                          "E05 size-mismatch", next));
  Heaps::destroy(heap);
  EXPECT_NE(hz::Fault::kNone, Heap::check(block));
}

TYPED_TEST(HeapsContract, AWrittenLinkIsNotFollowed) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  const hz::HeapHandle heap = Heaps::begin();
  void* const a = Heaps::allocate(heap, 1, 48);
  void* const b = Heaps::allocate(heap, 1, 48);
  void* const larger = Heaps::allocate(heap, 1, 64);
  for (void* const target : {Opaque(static_cast<void*>(nullptr)), larger, static_cast<void*>(this)}) {
    Heap::free(a);
    Heap::free(b);
    if (target != nullptr) std::memcpy(Opaque(b), &target, sizeof target);
    EXPECT_EQ(b, Heaps::allocate(heap, 1, 48));
    void* second = nullptr;
    const std::string said = this->Said([&] { second = Heaps::allocate(heap, 1, 48); });
    if (target == nullptr) {
      EXPECT_EQ("", said);
      EXPECT_EQ(a, second);
      continue;
    }
    EXPECT_TRUE(this->Names(said, "E06 write-after-free", target)) << said;
    EXPECT_NE(a, second) << "it is lost until the heap ends";
    EXPECT_NE(nullptr, second);
    break;
  }
  Heaps::destroy(heap);
}

TYPED_TEST(HeapsContract, AHandleIsOfOneHeap) {
  using Heaps = typename TestFixture::Heaps;
  const hz::HeapHandle first = Heaps::begin();
  Heaps::destroy(first);
  const hz::HeapHandle second = Heaps::begin();
  EXPECT_EQ(hz::HeapTable::number(first), hz::HeapTable::number(second)) << "the row is used again";
  EXPECT_NE(first, second);
  for (const hz::HeapHandle wrong :
       {first, hz::HeapHandle{0}, hz::HeapHandle{1}, second + 1, hz::HeapHandle{123'456}}) {
    auto* const at = reinterpret_cast<void*>(wrong);
    errno = 0;
    EXPECT_TRUE(this->Names(this->Said([&] { EXPECT_EQ(nullptr, Heaps::allocate(wrong, 1, 8)); }),
                            "E07 no-heap", at));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_TRUE(this->Names(this->Said([&] { Heaps::destroy(wrong); }), "E07 no-heap", at));
    EXPECT_TRUE(this->Names(this->Said([&] { Heaps::remove(wrong); }), "E07 no-heap", at));
  }
  EXPECT_NE(nullptr, Heaps::allocate(second, 1, 8));
  Heaps::destroy(second);
}

TYPED_TEST(HeapsContract, ManyAtATime) {
  using Heaps = typename TestFixture::Heaps;
  std::vector<hz::HeapHandle> heaps;
  std::vector<typename TestFixture::Block> blocks;
  for (unsigned i = 0; i < 300; ++i) {
    heaps.push_back(Heaps::begin());
    blocks.push_back(this->New(heaps[i], i, i));
  }
  for (unsigned i = 0; i < 300; ++i) {
    EXPECT_TRUE(this->Intact(blocks[i]));
    EXPECT_EQ(hz::HeapTable::number(heaps[i]), TestFixture::Ways::holder_of(blocks[i].at));
    Heaps::destroy(heaps[i]);
  }
}

TYPED_TEST(HeapsContract, AnyThreadMayUseAHeap) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  const hz::HeapHandle heap = Heaps::begin();
  constexpr unsigned kThreads = 4, kPlaces = 64;
  std::atomic<void*> places[kPlaces] = {};
  std::atomic<unsigned> broken{0};
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      std::mt19937 random(id);
      for (unsigned i = 0; i < (kUnderTool ? 1000U : 5000U); ++i) {
        const std::size_t size = 8 + (random() % 50 == 0 ? random() % 60'000 : random() % 300);
        void* block = Heaps::malloc(heap, size);
        std::memcpy(block, &size, sizeof size);
        FillPattern(static_cast<char*>(block) + 8, size - 8, size);
        // Acquire and release: the block changes hands.
        block = places[random() % kPlaces].exchange(block, std::memory_order_acq_rel);
        if (block == nullptr) continue;
        std::size_t other = 0;
        std::memcpy(&other, block, sizeof other);
        if (!HasPattern(static_cast<char*>(block) + 8, other - 8, other)) ++broken;
        if (i % 4 != 0) Heap::free(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0U, broken);
  Heaps::destroy(heap);
}

// The thread that began a heap is in the middle of a call, wherever that is, when another one comes.
TYPED_TEST(HeapsContract, ABiasIsRevokedAtAnyMoment) {
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  constexpr unsigned kRounds = 40;
  std::atomic<hz::HeapHandle> open{0};
  std::atomic<unsigned> broken{0};
  const auto churn = [&](hz::HeapHandle heap, std::uint64_t seed, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
      void* block = Heaps::malloc(heap, 40);
      FillPattern(block, 40, seed + i);
      void* other = Heaps::malloc(heap, 40 + i % 2 * 100);
      FillPattern(other, 40, i);
      if (!HasPattern(block, 40, seed + i)) ++broken;
      Heap::free(block);
      if (!HasPattern(other, 40, i)) ++broken;
      Heap::free(other);
    }
  };
  std::atomic<unsigned> done{0};
  std::thread other([&] {
    for (unsigned i = 1; i <= kRounds; ++i) {
      hz::HeapHandle heap = 0;
      // Acquire and release: heaps change hands.
      while ((heap = open.exchange(0, std::memory_order_acq_rel)) == 0) std::this_thread::yield();
      churn(heap, 1000, 50);
      done.store(i, std::memory_order_release);
    }
  });
  for (unsigned i = 1; i <= kRounds; ++i) {
    const hz::HeapHandle heap = Heaps::begin();
    open.store(heap, std::memory_order_release);
    while (done.load(std::memory_order_acquire) != i) churn(heap, 2000, 1);
    Heaps::destroy(heap);
  }
  other.join();
  EXPECT_EQ(0U, broken);
}

TYPED_TEST(HeapsContract, ForksWhileOthersAllocate) {
  if (!kForks || kThreadSanitizer) GTEST_SKIP() << "no forks of threads";
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  const hz::HeapHandle shared = Heaps::begin();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      const hz::HeapHandle own = Heaps::begin();
      for (unsigned i = 0; i < 100; ++i) {
        Heaps::malloc(own, i * 10);
        Heap::free(Heaps::allocate(shared, 1, i * 300));
      }
      Heaps::destroy(own);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const int answer = InAFork([&] {
      for (unsigned n = 0; n < 500; ++n) {
        void* block = Heaps::allocate(shared, 1, n);
        if (block == nullptr) return 1;
        FillPattern(block, n, n);
        if (n % 3 == 0) Heap::free(block);
      }
      const hz::HeapHandle own = Heaps::begin();
      if (Heaps::allocate(own, 1, 100'000) == nullptr) return 2;
      Heaps::destroy(own);
      Heaps::destroy(shared);
      return 0;
    });
    EXPECT_EQ(0, answer);
  }
  stop = true;
  busy.join();
  Heaps::destroy(shared);
}

#if defined(__x86_64__) && defined(__linux__)
// Of all lines the same: what it costs is a process for each instruction.
TYPED_TEST(HeapsContract, AChildThatIsCutOffHasItsBlocks) {
  if (kUnderTool || std::string_view(TypeParam::kName) != "hakozuna") GTEST_SKIP() << "too slow";
  using Heap = typename TestFixture::Heap;
  using Heaps = typename TestFixture::Heaps;
  for (const bool biased : {true, false}) {
    hz::HeapHandle heap = Heaps::begin();
    if (!biased) std::thread([&] { Heaps::allocate(heap, 1, 1); }).join();
    std::vector<typename TestFixture::Block> blocks;
    for (unsigned i = 0; i < 40; ++i) blocks.push_back(this->New(heap, 48, i));
    void* freed = this->New(heap, 48, 1).at;
    Heap::free(this->New(heap, 48, 2).at);
    void* taken = nullptr;
    unsigned steps = 0;
    const std::function<int()> in_child = [&] {
      for (const auto& block : blocks) {
        if (!HasPattern(block.at, block.size, block.seed)) return 1;
      }
      std::vector<typename TestFixture::Block> more;
      for (unsigned i = 0; i < 100; ++i) {
        void* block = Heaps::allocate(heap, 1, 48);
        if (block == nullptr) return 2;
        FillPattern(block, 48, 100 + i);
        more.push_back({block, 48, 100 + i});
      }
      for (const auto& block : blocks) {
        if (!HasPattern(block.at, block.size, block.seed)) return 3;
        Heap::free(block.at);
      }
      for (const auto& block : more) {
        if (!HasPattern(block.at, block.size, block.seed)) return 4;
      }
      Heaps::destroy(heap);
      return 0;
    };
    EXPECT_EQ(0U, ForkAfterEachInstruction(
                      [&] {
                        Heap::free(freed);                     // goes to its list
                        taken = Heaps::allocate(heap, 1, 48);  // from there
                        taken = Heaps::malloc(heap, 80);       // is cut
                      },
                      in_child, steps))
        << "biased: " << biased;
    EXPECT_GT(steps, 100U);
    Heaps::destroy(heap);
  }
}
#endif

TYPED_TEST(HeapsContract, MemoryRunsOut) {
  using Heaps = typename TestFixture::Heaps;
  using S = typename TestFixture::S;
  using Source = typename TypeParam::Source;
  for (const std::size_t size : {std::size_t{100}, 5 * hz::kMiB}) {
    const hz::HeapHandle heap = Heaps::begin();
    const auto first = this->New(heap, 1000, 1);
    TestFixture::Heap::trim(0);  // what is dirty and free counts as held, and is used again
    Source::limit(S::global.source, {},
                  {.bytes = Source::held_bytes(S::global.source) + 16 * hz::kMiB, .given = true});
    errno = 0;
    std::size_t blocks = 0;
    while (Heaps::allocate(heap, 1, size) != nullptr) ++blocks;
    EXPECT_EQ(ENOMEM, errno);
    EXPECT_GT(blocks * size, 8 * hz::kMiB);
    EXPECT_LE(blocks * size, 17 * hz::kMiB);
    EXPECT_TRUE(this->Intact(first));
    const hz::HeapHandle empty = Heaps::begin();
    while (Heaps::allocate(heap, 1, 64) != nullptr) {
    }
    EXPECT_EQ(nullptr, Heaps::allocate(empty, 1, 1));
    EXPECT_EQ(nullptr, Heaps::allocate(heap, 1, SIZE_MAX));
    Heaps::destroy(heap);
    EXPECT_NE(nullptr, Heaps::allocate(empty, 1, 1)) << "its memory can be had again";
    Heaps::destroy(empty);
    Source::limit(S::global.source, {}, {});
  }
}

}  // namespace
}  // namespace hz_test
