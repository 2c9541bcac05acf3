// SPDX-License-Identifier: Apache-2.0
//
// The direct API beside the C library's malloc in one process: two heaps that know their own blocks.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
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
using hz_test::Opaque;

TEST(Direct, IsTheExpectedLine) {
  EXPECT_EQ(hz_test::ExpectedLine(), hz_line());
  EXPECT_STREQ(HZ_VERSION, hz_version());
}

TEST(Direct, KnowsItsOwnBlocksOnly) {
  for (const std::size_t size : {1u, 100u, 3000u, 70'000u, 500'000u, 10'000'000u}) {
    void* ours = hz_malloc(size);
    void* theirs = std::malloc(size);
    EXPECT_EQ(1, hz_owns(ours)) << size;
    EXPECT_EQ(0, hz_owns(theirs)) << size;
    EXPECT_EQ(0, hz_owns(static_cast<char*>(ours) + 1)) << "not the start of a slot";
    hz_free(ours);
    std::free(theirs);
  }
  int on_stack = 0;
  EXPECT_EQ(0, hz_owns(&on_stack));
  EXPECT_EQ(0, hz_owns(nullptr));
  EXPECT_EQ(0, hz_owns(Opaque(reinterpret_cast<void*>(UINTPTR_MAX))));
}

TEST(Direct, BothHeapsAtOnce) {
  std::vector<std::pair<void*, void*>> pairs;
  for (std::size_t i = 0; i < 3000; ++i) {
    pairs.emplace_back(hz_malloc(10 + i), std::malloc(10 + i));
    FillPattern(pairs.back().first, 10 + i, i);
    FillPattern(pairs.back().second, 10 + i, i + 7);
  }
  std::thread([&] {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_TRUE(HasPattern(pairs[i].first, 10 + i, i));
      EXPECT_TRUE(HasPattern(pairs[i].second, 10 + i, i + 7));
      hz_free(pairs[i].first);
      std::free(pairs[i].second);
    }
  }).join();
}

TEST(Direct, Calloc) {
  void* dirty = hz_malloc(1000);
  std::memset(dirty, 0xA5, 1000);
  hz_free(dirty);
  void* block = hz_calloc(10, 100);
  EXPECT_TRUE(hz_test::IsZero(block, 1000));
  hz_free(block);
  errno = 0;
  EXPECT_EQ(nullptr, hz_calloc(Opaque(SIZE_MAX), 2));
  EXPECT_EQ(ENOMEM, errno);
}

TEST(Direct, Realloc) {
  void* block = hz_realloc(nullptr, 100);
  FillPattern(block, 100, 1);
  block = hz_realloc(block, 10'000'000);
  EXPECT_TRUE(HasPattern(block, 100, 1));
  errno = 0;
  EXPECT_EQ(nullptr, hz_realloc(block, Opaque(SIZE_MAX)));
  EXPECT_EQ(ENOMEM, errno);
  EXPECT_TRUE(HasPattern(block, 100, 1));
  block = hz_realloc(block, 50);
  EXPECT_TRUE(HasPattern(block, 50, 1));
  EXPECT_EQ(nullptr, hz_realloc(block, 0));
}

TEST(Direct, AlignedAlloc) {
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 31; alignment *= 2) {
    void* block = hz_aligned_alloc(alignment, 100);
    ASSERT_NE(nullptr, block) << alignment;
    EXPECT_TRUE(IsAligned(block, alignment));
    EXPECT_EQ(1, hz_owns(block));
    hz_free_aligned_sized(block, alignment, 100);
  }
  for (const std::size_t bad : {std::size_t{0}, std::size_t{3}, std::size_t{100}, SIZE_MAX}) {
    errno = 0;
    EXPECT_EQ(nullptr, hz_aligned_alloc(Opaque(bad), 100)) << bad;
    EXPECT_EQ(EINVAL, errno) << bad;
  }
}

TEST(Direct, SizesThatCannotBeHad) {
  for (const std::size_t size : {std::size_t{PTRDIFF_MAX}, std::size_t{PTRDIFF_MAX} + 1, SIZE_MAX}) {
    errno = 0;
    EXPECT_EQ(nullptr, hz_malloc(Opaque(size)));
    EXPECT_EQ(ENOMEM, errno);
    errno = 0;
    EXPECT_EQ(nullptr, hz_aligned_alloc(64, Opaque(size)));
    EXPECT_EQ(ENOMEM, errno);
  }
}

TEST(Direct, UsableSize) {
  EXPECT_EQ(0u, hz_usable_size(nullptr));
  void* block = hz_malloc(100);
  const std::size_t usable = hz_usable_size(block);
  EXPECT_GE(usable, 100u);
  FillPattern(block, usable, 1);
  EXPECT_TRUE(HasPattern(block, usable, 1));
  hz_free_sized(block, 100);
}

TEST(Direct, FreeKeepsErrnoAndTakesNull) {
  errno = 42;
  hz_free(nullptr);
  hz_free(hz_malloc(5'000'000));
  EXPECT_EQ(42, errno);
}

TEST(Direct, TrimIsTruthful) {
  std::vector<void*> blocks;
  for (int i = 0; i < 10'000; ++i) {
    blocks.push_back(hz_malloc(3000));
    FillPattern(blocks.back(), 3000, 1);
  }
  for (void* block : blocks) hz_free(block);
  hz_trim(0);
  EXPECT_EQ(0, hz_trim(0));
}

TEST(Direct, StatsSeeLiveBytes) {
  hz_stats_t before = {};
  hz_stats_t full = {};
  hz_stats(&before, sizeof before);
  void* block = hz_malloc(50'000'000);
  hz_stats(&full, sizeof full);
  EXPECT_GE(full.bytes_live, before.bytes_live + 50'000'000);
  EXPECT_EQ(full.bytes_held, full.bytes_live + full.bytes_cached);
  hz_free(block);
}

// A caller that was compiled against an older, shorter struct gets its prefix and nothing behind it.
TEST(Direct, StatsWriteNoMoreThanTheCallersSize) {
  unsigned char storage[sizeof(hz_stats_t)];
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{64}}) {
    std::memset(storage, 0xA5, sizeof storage);
    hz_stats(reinterpret_cast<hz_stats_t*>(storage), size);
    EXPECT_TRUE(hz_test::IsFilledWith(storage + size, sizeof storage - size, 0xA5)) << size;
  }
}

}  // namespace
