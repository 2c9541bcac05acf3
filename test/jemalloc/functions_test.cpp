// SPDX-License-Identifier: Apache-2.0
//
// mallocx and its family: sizes that were said are sizes that are given, flags do what the manual says, what
// is resized keeps its contents, and nothing that a caller passes crashes.
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "jemalloc/interface.hpp"
#include "support/capture.hpp"
#include "support/pattern.hpp"

namespace {

using namespace hz_test::jemalloc;
using hz_test::FillPattern;
using hz_test::HasPattern;
using hz_test::IsAligned;
using hz_test::IsZero;
using hz_test::Opaque;

constexpr std::size_t kSizes[] = {1, 15, 16, 100, 1000, 4096, 5000, 70'000, 300'000, 5'000'000};
constexpr unsigned kLogs[] = {0, 1, 3, 4, 5, 6, 12, 13, 16, 17, 21};

TEST(Functions, BlocksOfEverySizeAndAlignment) {
  for (const std::size_t size : kSizes) {
    for (const unsigned log : kLogs) {
      void* block = mallocx(size, LgAlign(log));
      ASSERT_NE(nullptr, block);
      EXPECT_TRUE(IsAligned(block, std::size_t{1} << log));
      EXPECT_EQ(nallocx(size, LgAlign(log)), sallocx(block, 0)) << size << ", " << log;
      EXPECT_GE(sallocx(block, 0), size);
      FillPattern(block, sallocx(block, 0), size);
      EXPECT_TRUE(HasPattern(block, sallocx(block, 0), size));
      dallocx(block, 0);
    }
  }
}

TEST(Functions, NallocxOfEverySizeUpToTwoPages) {
  for (std::size_t size = 1; size <= 8192; ++size) {
    void* block = mallocx(size, 0);
    ASSERT_EQ(nallocx(size, 0), sallocx(block, 0)) << size;
    sdallocx(block, size, 0);
  }
}

TEST(Functions, NallocxOfWhatCannotBeIsZero) {
  EXPECT_EQ(0u, nallocx(Opaque(SIZE_MAX), 0));
  EXPECT_EQ(0u, nallocx(Opaque(std::size_t{PTRDIFF_MAX} + 1), 0));
  EXPECT_EQ(0u, nallocx(Opaque(SIZE_MAX), LgAlign(12)));
  EXPECT_EQ(0u, nallocx(100, LgAlign(63)));
}

TEST(Functions, MallocxOfWhatCannotBeIsNull) {
  for (const std::size_t size : {std::size_t{PTRDIFF_MAX}, std::size_t{PTRDIFF_MAX} + 1, SIZE_MAX}) {
    for (const int flags : {0, kZero, LgAlign(12), LgAlign(21) | kZero})
      EXPECT_EQ(nullptr, mallocx(Opaque(size), flags)) << size << ", " << flags;
  }
  for (const int flags : {LgAlign(63), LgAlign(62), LgAlign(63) | kZero})
    EXPECT_EQ(nullptr, mallocx(100, flags)) << flags;
}

// All that the block has: rallocx zeroes behind that.
TEST(Functions, ZeroedBlocks) {
  for (const std::size_t size : kSizes) {
    for (const unsigned log : kLogs) {
      void* dirty = mallocx(size, LgAlign(log));
      std::memset(dirty, 0xA5, sallocx(dirty, 0));
      dallocx(dirty, 0);
      void* block = mallocx(size, LgAlign(log) | kZero);
      EXPECT_TRUE(IsAligned(block, std::size_t{1} << log));
      EXPECT_TRUE(IsZero(block, sallocx(block, 0))) << size << ", " << log;
      std::memset(block, 0xA5, sallocx(block, 0));
      dallocx(block, 0);
    }
  }
}

TEST(Functions, RallocxKeepsContentAndAlignment) {
  for (const unsigned log : {0u, 5u, 17u}) {
    for (const std::size_t from : kSizes) {
      for (const std::size_t to : kSizes) {
        void* block = mallocx(from, LgAlign(log));
        FillPattern(block, from, from);
        block = rallocx(block, to, LgAlign(log));
        ASSERT_NE(nullptr, block);
        EXPECT_TRUE(IsAligned(block, std::size_t{1} << log)) << from << " -> " << to;
        EXPECT_GE(sallocx(block, 0), to);
        EXPECT_TRUE(HasPattern(block, from < to ? from : to, from)) << from << " -> " << to;
        dallocx(block, LgAlign(log));
      }
    }
  }
}

// From the old real size on, and nothing before it.
TEST(Functions, RallocxZeroesWhatGrew) {
  for (const std::size_t from : kSizes) {
    for (const std::size_t to : kSizes) {
      if (to <= from) continue;
      void* dirty = mallocx(to, 0);
      std::memset(dirty, 0xA5, sallocx(dirty, 0));
      dallocx(dirty, 0);
      void* block = mallocx(from, 0);
      const std::size_t before = sallocx(block, 0);
      FillPattern(block, before, from);
      block = rallocx(block, to, kZero);
      const std::size_t after = sallocx(block, 0);
      EXPECT_TRUE(HasPattern(block, before < to ? before : to, from)) << from << " -> " << to;
      const std::size_t grown = after > before ? after - before : 0;
      EXPECT_TRUE(IsZero(static_cast<char*>(block) + before, grown)) << from << " -> " << to;
      std::memset(block, 0xA5, after);
      dallocx(block, 0);
    }
  }
}

TEST(Functions, RallocxFailsWithoutLoss) {
  for (const std::size_t size : kSizes) {
    void* block = mallocx(size, 0);
    FillPattern(block, size, size);
    EXPECT_EQ(nullptr, rallocx(block, Opaque(SIZE_MAX), 0));
    EXPECT_EQ(nullptr, rallocx(block, Opaque(std::size_t{PTRDIFF_MAX}), kZero));
    EXPECT_EQ(nullptr, rallocx(block, size, LgAlign(63)));
    EXPECT_TRUE(HasPattern(block, size, size));
    dallocx(block, 0);
  }
}

TEST(Functions, XallocxNeverMovesAndSaysTheRealSize) {
  for (const std::size_t size : kSizes) {
    for (const std::size_t to : kSizes) {
      for (const std::size_t extra : {std::size_t{0}, kMiB}) {
        void* block = mallocx(size, 0);
        const std::size_t kept = std::min(size, to);
        FillPattern(block, size, size);
        const std::size_t real = xallocx(block, to, extra, 0);
        EXPECT_EQ(real, sallocx(block, 0)) << size << " -> " << to << " + " << extra;
        EXPECT_TRUE(HasPattern(block, kept, size)) << size << " -> " << to << " + " << extra;
        if (real >= to) FillPattern(block, to, to);  // all of it is there
        dallocx(block, 0);
      }
    }
  }
}

// A block with room behind it: the next one was freed.
TEST(Functions, XallocxGrowsAndZeroes) {
  if (OnJemalloc()) GTEST_SKIP() << "where it has room is its own business";
  constexpr std::size_t kSize = 8 * kMiB;
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(mallocx(kSize, 0));
  for (void* block : blocks) std::memset(block, 0xA5, kSize);
  std::size_t grown = 0;
  for (std::size_t i = 0; i < blocks.size() && grown == 0; ++i) {
    for (void*& next : blocks) {
      if (next != static_cast<char*>(blocks[i]) + kSize) continue;
      EXPECT_EQ(kSize, xallocx(blocks[i], kSize + 1, 0, 0)) << "somebody has that";
      dallocx(std::exchange(next, mallocx(100, 0)), 0);
      // Too much behind is no reason to refuse.
      grown = xallocx(blocks[i], kSize + 1, SIZE_MAX, kZero);
      ASSERT_GT(grown, kSize);
      EXPECT_EQ(grown, sallocx(blocks[i], 0));
      EXPECT_TRUE(hz_test::IsFilledWith(blocks[i], kSize, 0xA5));
      EXPECT_TRUE(IsZero(static_cast<char*>(blocks[i]) + kSize, grown - kSize));
      std::memset(blocks[i], 0x5A, grown);
      const std::size_t more = xallocx(blocks[i], grown, 3 * kMiB, kZero);
      EXPECT_GE(more, grown + 3 * kMiB);
      EXPECT_TRUE(IsZero(static_cast<char*>(blocks[i]) + grown, more - grown));
      EXPECT_EQ(kSize, xallocx(blocks[i], kSize, 0, 0)) << "it shrinks in place";
      EXPECT_TRUE(hz_test::IsFilledWith(blocks[i], kSize, 0x5A));
      sdallocx(std::exchange(blocks[i], mallocx(100, 0)), kSize, 0);
      break;
    }
  }
  EXPECT_NE(0u, grown) << "no two blocks were neighbours";
  for (void* block : blocks) dallocx(block, 0);
}

// As Redis does: of 40,000 blocks one in ten lives on, and those move together.
TEST(Functions, BlocksThatAreHintedAtMoveTogether) {
  if (OnJemalloc()) GTEST_SKIP() << "Redis' own has it";
  constexpr std::size_t kSize = 200;
  std::vector<void*> blocks(40'000);
  for (void*& block : blocks) block = mallocx(kSize, 0);
  std::vector<void*> kept;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    i % 10 == 3 ? kept.push_back(blocks[i]) : dallocx(blocks[i], 0);
  for (std::size_t i = 0; i < kept.size(); ++i) FillPattern(kept[i], kSize, i);
  const auto spans = [&] {
    std::set<std::uintptr_t> all;
    for (void* block : kept) all.insert(reinterpret_cast<std::uintptr_t>(block) / 65536);
    return all.size();
  };
  const std::size_t before = spans();
  constexpr std::size_t kFew = 40;  // a thread that changes processors may be told of some for ever
  for (std::size_t moved = kFew + 1, passes = 0; moved > kFew; ++passes) {
    ASSERT_LT(passes, 20u);
    moved = 0;
    for (void*& block : kept) {
      if (je_get_defrag_hint(block) == 0) continue;
      void* const to = mallocx(kSize, Tcache(-1));
      std::memcpy(to, block, kSize);
      sdallocx(std::exchange(block, to), kSize, Tcache(-1));
      ++moved;
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_TRUE(HasPattern(kept[i], kSize, i));
  EXPECT_GE(before, 110u);
  EXPECT_LE(spans(), before / 5);
  EXPECT_EQ(0, je_get_defrag_hint(nullptr));
  for (void* block : kept) dallocx(block, 0);
}

TEST(Functions, XallocxOfAnotherAlignmentChangesNothing) {
  if (OnJemalloc()) GTEST_SKIP() << "where a block lies is its own business";
  void* block = mallocx(9 * kMiB, 0);
  unsigned log = 16;
  while (IsAligned(block, std::size_t{1} << log)) ++log;
  const std::size_t real = sallocx(block, 0);
  EXPECT_EQ(real, xallocx(block, 5 * kMiB, 0, LgAlign(log)));
  EXPECT_EQ(real, sallocx(block, 0));
  dallocx(block, 0);
}

// Caches and arenas are the heap's own business.
TEST(Functions, FlagsThatSayWhereAreIgnored) {
  const int cache = static_cast<int>(Value<unsigned>("tcache.create"));
  for (const int flags : {Tcache(-1), Tcache(cache), Arena(0), Arena(0) | Tcache(-1) | LgAlign(6) | kZero}) {
    void* block = mallocx(1000, flags);
    ASSERT_NE(nullptr, block);
    EXPECT_EQ(nallocx(1000, flags), sallocx(block, flags));
    block = rallocx(block, 100'000, flags);
    ASSERT_NE(nullptr, block);
    EXPECT_EQ(xallocx(block, 100'000, 0, flags), sallocx(block, flags));
    sdallocx(block, 100'000, flags);
  }
}

TEST(Functions, BothInterfacesShareTheirBlocks) {
  void* block = std::malloc(1000);
  EXPECT_EQ(sallocx(block, 0), nallocx(1000, 0));
  block = rallocx(block, 3000, 0);
  block = std::realloc(block, 9000);
  dallocx(block, 0);
  std::free(mallocx(1000, LgAlign(8)));
  sdallocx(std::calloc(10, 100), 1000, 0);
}

// jemalloc leaves these undefined.
TEST(Functions, NoSizeAndNoBlock) {
  if (OnJemalloc()) GTEST_SKIP() << "undefined";
  for (const int flags : {0, kZero, LgAlign(12), LgAlign(12) | kZero}) {
    void* block = mallocx(0, flags);
    ASSERT_NE(nullptr, block);
    EXPECT_EQ(nallocx(0, flags), sallocx(block, 0));
    EXPECT_EQ(sallocx(block, 0), xallocx(block, 0, 0, flags));
    block = rallocx(block, 0, flags);
    ASSERT_NE(nullptr, block) << "it resizes and never frees";
    sdallocx(block, 0, flags);
    block = rallocx(nullptr, 1000, flags);
    ASSERT_NE(nullptr, block);
    dallocx(block, flags);
  }
  EXPECT_EQ(0u, xallocx(nullptr, 100, 100, 0));
  EXPECT_EQ(0u, sallocx(nullptr, 0));
  dallocx(nullptr, 0);
  sdallocx(nullptr, 100, 0);
}

// From what was asked for to what was given, also after a block was resized: each size is true.
TEST(Functions, SdallocxBelievesWhatMayBe) {
  hz_test::Capture told;
  for (const std::size_t size : kSizes) {
    for (const unsigned log : kLogs) {
      const int flags = LgAlign(log);
      sdallocx(mallocx(size, flags), size, flags);
      sdallocx(mallocx(size, flags), nallocx(size, flags), flags);
      sdallocx(rallocx(mallocx(size, flags), 2 * size, flags), 2 * size, flags);
      sdallocx(rallocx(mallocx(2 * size, flags), size, flags), size, flags);
      void* block = mallocx(size, flags);
      sdallocx(block, std::max(xallocx(block, size, size, flags), size), flags);
    }
  }
  EXPECT_EQ("", told.Text());
}

TEST(Functions, SdallocxReportsWhatCannotBe) {
  if (OnJemalloc()) GTEST_SKIP() << "it would believe it";
  const std::pair<std::size_t, std::size_t> wrong[] = {
      {100, 200}, {5000, 100}, {300'000, 100}, {9'000'000, 100}};
  for (const auto& [size, said] : wrong) {
    hz_test::Capture told;
    sdallocx(mallocx(size, 0), said, 0);
    EXPECT_NE(std::string::npos, told.Text().find("E05 size-mismatch")) << size << ", " << said;
  }
}

}  // namespace
