// SPDX-License-Identifier: Apache-2.0
//
// The direct API for callers who know what they will do with a block: growth in place, alignment together
// with zeroes or with a new size.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "hakozuna/hakozuna.h"
#include "support/capture.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::FillPattern;
using hz_test::HasPattern;
using hz_test::IsAligned;
using hz_test::IsZero;
using hz_test::Opaque;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kAlignments[] = {1, 16, 32, 256, 4096, 65'536, kMiB, 8 * kMiB};
constexpr std::size_t kSizes[] = {1, 60, 100, 2048, 3000, 5000, 65'536, 200'000, 5 * kMiB};

TEST(Expand, WithinWhatTheBlockHas) {
  for (const std::size_t size : kSizes) {
    void* block = hz_malloc(size);
    const std::size_t usable = hz_usable_size(block);
    FillPattern(block, size, size);
    EXPECT_EQ(block, hz_expand(block, usable)) << size;
    EXPECT_EQ(block, hz_expand(block, 1)) << size;
    EXPECT_EQ(block, hz_expand(block, 0)) << size;
    EXPECT_EQ(usable, hz_usable_size(block)) << "it never shrinks";
    EXPECT_TRUE(HasPattern(block, size, size));
    hz_free(block);
  }
}

TEST(Expand, OfASlotIsRefused) {
  if (hz_test::HasSeals()) GTEST_SKIP() << "it grows as far as its slot has room";
  for (const std::size_t size : {1u, 100u, 2048u, 5000u, 65'536u, 200'000u}) {
    void* block = hz_malloc(size);
    const std::size_t usable = hz_usable_size(block);
    FillPattern(block, usable, size);
    for (const std::size_t more : {usable + 1, 2 * usable, 40 * kMiB, std::size_t{PTRDIFF_MAX}, SIZE_MAX})
      EXPECT_EQ(nullptr, hz_expand(block, Opaque(more))) << size << " -> " << more;
    EXPECT_EQ(usable, hz_usable_size(block));
    EXPECT_TRUE(HasPattern(block, usable, size));
    hz_free(block);
  }
}

TEST(Expand, OfNullIsNull) { EXPECT_EQ(nullptr, hz_expand(Opaque<void*>(nullptr), 100)); }

// Of three neighbours the middle one makes room.
TEST(Expand, OfAHugeBlock) {
  constexpr std::size_t kSize = 8 * kMiB;
  unsigned grown = 0;
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(hz_malloc(kSize));
  for (void* block : blocks) {
    char* const behind = static_cast<char*>(block) + kSize;
    for (void*& other : blocks) {
      if (other != behind) continue;
      FillPattern(block, kSize, 7);
      EXPECT_EQ(nullptr, hz_expand(block, kSize + 1)) << "somebody has that";
      hz_free(std::exchange(other, hz_malloc(100)));
      hz_stats_t before, after;
      hz_stats(&before, sizeof before);
      if (hz_expand(block, kSize + kMiB) != block) break;
      hz_stats(&after, sizeof after);
      ++grown;
      EXPECT_GE(hz_usable_size(block), kSize + kMiB);
      EXPECT_EQ(before.bytes_live + hz_usable_size(block) - kSize, after.bytes_live);
      EXPECT_TRUE(HasPattern(block, kSize, 7));
      FillPattern(block, hz_usable_size(block), 8);
      EXPECT_EQ(nullptr, hz_expand(block, Opaque(SIZE_MAX)));
      break;
    }
    if (grown != 0) break;
  }
  EXPECT_EQ(hz_test::IsTiny() || hz_test::HasSeals() ? 0u : 1u, grown);
  for (void* block : blocks) hz_free(block);
}

TEST(AlignedCalloc, IsZeroWhereOthersWere) {
  for (const std::size_t alignment : kAlignments) {
    for (const std::size_t size : kSizes) {
      void* dirty = hz_aligned_alloc(alignment, size);
      std::memset(dirty, 0xA5, size);
      hz_free(dirty);
      void* block = hz_aligned_calloc(alignment, 1, size);
      ASSERT_NE(nullptr, block) << alignment << ", " << size;
      EXPECT_TRUE(IsAligned(block, alignment)) << alignment << ", " << size;
      EXPECT_TRUE(IsZero(block, size)) << alignment << ", " << size;
      hz_free_aligned_sized(block, alignment, size);
    }
  }
  void* many = hz_aligned_calloc(64, 10, 100);
  EXPECT_GE(hz_usable_size(many), 1000u);
  EXPECT_TRUE(IsZero(many, 1000));
  hz_free(many);
  void* none = hz_aligned_calloc(64, 0, 100);
  EXPECT_NE(nullptr, none);
  EXPECT_TRUE(IsAligned(none, 64));
  hz_free(none);
}

TEST(AlignedCalloc, RefusesWhatCannotBe) {
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{48}, SIZE_MAX}) {
    errno = 0;
    EXPECT_EQ(nullptr, hz_aligned_calloc(Opaque(alignment), 1, 100));
    EXPECT_EQ(EINVAL, errno) << alignment;
  }
  const std::pair<std::size_t, std::size_t> too_much[] = {
      {SIZE_MAX, 2}, {2, SIZE_MAX}, {std::size_t{1} << 32, std::size_t{1} << 32}, {1, PTRDIFF_MAX}};
  for (const auto& [count, size] : too_much) {
    errno = 0;
    EXPECT_EQ(nullptr, hz_aligned_calloc(64, Opaque(count), Opaque(size)));
    EXPECT_EQ(ENOMEM, errno) << count << " * " << size;
  }
  errno = 0;
  EXPECT_EQ(nullptr, hz_aligned_calloc(Opaque(std::size_t{1} << 63), 1, 100));
  EXPECT_EQ(ENOMEM, errno);
}

TEST(AlignedRealloc, KeepsContentAndAlignment) {
  hz_test::Capture told;
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{32}, std::size_t{65'536}, 8 * kMiB}) {
    for (const std::size_t from : kSizes) {
      for (const std::size_t to : kSizes) {
        const std::size_t kept = from < to ? from : to;
        void* block = hz_aligned_realloc(nullptr, alignment, from);
        ASSERT_TRUE(IsAligned(block, alignment));
        FillPattern(block, from, from);
        block = hz_aligned_realloc(block, alignment, to);
        ASSERT_NE(nullptr, block) << alignment << ": " << from << " -> " << to;
        EXPECT_TRUE(IsAligned(block, alignment)) << alignment << ": " << from << " -> " << to;
        EXPECT_GE(hz_usable_size(block), to);
        EXPECT_TRUE(HasPattern(block, kept, from)) << alignment << ": " << from << " -> " << to;
        FillPattern(block, to, to);
        hz_free_aligned_sized(block, alignment, to);
      }
    }
  }
  EXPECT_EQ("", told.Text()) << "a sized free believes what was asked for";
}

// A block that lies wrong moves, also where it is large enough.
TEST(AlignedRealloc, BringsABlockToItsPlace) {
  for (const std::size_t alignment : {32u, 4096u, 65'536u}) {
    unsigned wrong = 0;
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(hz_malloc(100));
    for (void*& block : blocks) {
      FillPattern(block, 100, 3);
      wrong += IsAligned(block, alignment) ? 0 : 1;
      block = hz_aligned_realloc(block, alignment, 100);
      EXPECT_TRUE(IsAligned(block, alignment));
      EXPECT_TRUE(HasPattern(block, 100, 3));
    }
    EXPECT_NE(0u, wrong) << "nothing had to move";
    for (void* block : blocks) hz_free(block);
  }
}

TEST(AlignedRealloc, StaysWhereItFits) {
  void* block = hz_aligned_alloc(256, 1000);
  void* const before = Opaque(block);
  block = hz_aligned_realloc(block, 256, hz_usable_size(block));
  EXPECT_EQ(before, block);
  block = hz_aligned_realloc(block, 64, hz_usable_size(block) / 2);
  EXPECT_EQ(before, block);
  EXPECT_EQ(nullptr, hz_aligned_realloc(block, 64, 0)) << "size 0 frees, as realloc does";
}

// A block that happens to lie right stays, although its class keeps no such alignment: the sized free of what
// was asked for last is right.
TEST(AlignedRealloc, MayBeFreedBySizeWhereItLiesRightByChance) {
  struct Way {
    std::size_t size, alignment, last;
  };
  hz_test::Capture told;
  for (const auto& [size, alignment, last] :
       {Way{80, 64, 50}, {300'000, 131'072, 300'000}, {1100, 256, 700}}) {
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 64; ++i) blocks.push_back(hz_malloc(size));
    for (void*& block : blocks) {
      block = hz_aligned_realloc(block, alignment, last);
      EXPECT_TRUE(IsAligned(block, alignment));
      hz_free_aligned_sized(block, alignment, last);
    }
  }
  EXPECT_EQ("", told.Text());
}

TEST(AlignedRealloc, FailsWithoutLoss) {
  for (const std::size_t size : {100u, 5000u, 300'000u, 9'000'000u}) {
    void* block = hz_aligned_alloc(64, size);
    FillPattern(block, size, size);
    errno = 0;
    EXPECT_EQ(nullptr, hz_aligned_realloc(block, Opaque(std::size_t{24}), size));
    EXPECT_EQ(EINVAL, errno);
    for (const std::size_t more : {std::size_t{PTRDIFF_MAX}, SIZE_MAX}) {
      errno = 0;
      EXPECT_EQ(nullptr, hz_aligned_realloc(block, 64, Opaque(more)));
      EXPECT_EQ(ENOMEM, errno) << size << " -> " << more;
    }
    EXPECT_TRUE(HasPattern(block, size, size));
    hz_free(block);
  }
}

}  // namespace
