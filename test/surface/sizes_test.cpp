// SPDX-License-Identifier: Apache-2.0
//
// Sizes that cannot be had, the size zero, and the alignment of every size.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

#include "support/address_space.hpp"
#include "support/capture.hpp"
#include "support/gnu_malloc.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::IsAligned;
using hz_test::Opaque;

constexpr std::size_t kTooBig[] = {std::size_t{PTRDIFF_MAX} + 1,
                                   std::size_t{PTRDIFF_MAX} + 17,
                                   SIZE_MAX - 65536,
                                   SIZE_MAX - 4096,
                                   SIZE_MAX - 15,
                                   SIZE_MAX};

// `call` must give NULL and set ENOMEM.
#define EXPECT_NO_MEMORY(call)         \
  do {                                 \
    errno = 0;                         \
    EXPECT_EQ(nullptr, Opaque(call));  \
    EXPECT_EQ(ENOMEM, errno) << #call; \
  } while (false)

TEST(Sizes, AbovePtrdiffMax) {
  for (const std::size_t big : kTooBig) {
    const std::size_t size = Opaque(big);
    SCOPED_TRACE(size);
    EXPECT_NO_MEMORY(std::malloc(size));
    EXPECT_NO_MEMORY(std::calloc(1, size));
    EXPECT_NO_MEMORY(std::calloc(size, 1));
    EXPECT_NO_MEMORY(std::realloc(nullptr, size));
    EXPECT_NO_MEMORY(reallocarray(nullptr, 1, size));
    EXPECT_NO_MEMORY(aligned_alloc(64, size));
    EXPECT_NO_MEMORY(memalign(64, size));
    EXPECT_NO_MEMORY(memalign(std::size_t{1} << 30, size));
    EXPECT_NO_MEMORY(valloc(size));
    EXPECT_NO_MEMORY(pvalloc(size));
    void* out = &out;
    EXPECT_EQ(ENOMEM, posix_memalign(&out, 64, size));
    EXPECT_EQ(&out, out);
  }
}

// Refused without giving up what is cached, which would not help: else each of these, and the block after it,
// costs some system calls, and glibc's test of them takes a minute.
TEST(Sizes, WhatIsMoreThanThereAreAddressesCostsNothing) {
  if (hz_test::OnLibc()) GTEST_SKIP() << "this is about ours";
  if (hz_test::HasSeals()) GTEST_SKIP() << "such a block has a run of its own each time";
  const auto acquired = [] {
    hz_test::Capture said;
    malloc_stats();
    const std::string text = said.Text();
    return text.substr(text.find(" spans_acquired="),
                       text.find(" spans_retired=") - text.find(" spans_acquired="));
  };
  constexpr std::size_t kRare = 20'000;  // of a class that nobody else has blocks of
  std::free(std::malloc(kRare));
  const std::string before = acquired();
  for (int i = 0; i < 200; ++i) {
    std::free(std::malloc(kRare));
    const std::size_t size = (std::size_t{1} << 62) - (std::size_t{1} << (i % 60));
    EXPECT_NO_MEMORY(std::malloc(Opaque(size)));
    EXPECT_NO_MEMORY(aligned_alloc(4096, Opaque(size)));
    EXPECT_NO_MEMORY(aligned_alloc(std::size_t{1} << 55, Opaque(std::size_t{1000})));
  }
  EXPECT_EQ(before, acquired());
}

TEST(Sizes, PtrdiffMaxItselfIsMoreThanAnyMachineHas) {
  EXPECT_NO_MEMORY(std::malloc(Opaque(std::size_t{PTRDIFF_MAX})));
  EXPECT_NO_MEMORY(std::calloc(1, Opaque(std::size_t{PTRDIFF_MAX})));
  EXPECT_NO_MEMORY(memalign(64, Opaque(std::size_t{PTRDIFF_MAX})));
}

TEST(Sizes, AfterRefusalsTheHeapWorks) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(nullptr, Opaque(std::malloc(Opaque(SIZE_MAX))));
    void* block = std::malloc(100);
    ASSERT_NE(nullptr, block);
    std::free(block);
  }
}

TEST(Sizes, ProductsThatOverflow) {
  const std::size_t pairs[][2] = {{SIZE_MAX, 2},
                                  {2, SIZE_MAX},
                                  {SIZE_MAX, SIZE_MAX},
                                  {SIZE_MAX / 2 + 1, 2},
                                  {SIZE_MAX / 3 + 1, 3},
                                  {std::size_t{1} << 32, std::size_t{1} << 32},          // wraps to 0
                                  {(std::size_t{1} << 32) + 1, (std::size_t{1} << 32)},  // wraps to 2^32
                                  {(std::size_t{1} << 63) + 8, 2},                       // wraps to 16
                                  {std::size_t{1} << 62, 2}};                            // above PTRDIFF_MAX
  for (const auto& pair : pairs) {
    const std::size_t count = Opaque(pair[0]);
    const std::size_t size = Opaque(pair[1]);
    SCOPED_TRACE(testing::Message() << count << " * " << size);
    EXPECT_NO_MEMORY(std::calloc(count, size));
    EXPECT_NO_MEMORY(reallocarray(nullptr, count, size));
    void* block = std::malloc(100);
    hz_test::FillPattern(block, 100, 5);
    EXPECT_NO_MEMORY(reallocarray(Opaque(block), count, size));
    EXPECT_TRUE(hz_test::HasPattern(block, 100, 5)) << "a failed reallocarray leaves the block";
    std::free(block);
  }
}

TEST(Sizes, ZeroIsAUniqueAlignedBlock) {
  std::vector<void*> blocks;
  std::set<void*> distinct;
  for (int i = 0; i < 1000; ++i) {
    for (void* block : {std::malloc(0), std::calloc(0, 8), std::calloc(8, 0), std::realloc(nullptr, 0),
                        memalign(64, 0), aligned_alloc(32, 0)}) {
      ASSERT_NE(nullptr, block);
      EXPECT_TRUE(hz_test::Owned(block));
      EXPECT_TRUE(IsAligned(block, 16));
      blocks.push_back(block);
      distinct.insert(block);
    }
  }
  EXPECT_EQ(blocks.size(), distinct.size());
  for (void* block : blocks) std::free(block);
}

TEST(Sizes, EverySizeIsAlignedTo16) {
  std::vector<void*> kept;
  for (std::size_t size = 1; size <= 70'000; size += size < 4200 ? 1 : 61) {
    for (void* block : {std::malloc(size), std::calloc(1, size), std::realloc(nullptr, size)}) {
      ASSERT_NE(nullptr, block) << size;
      EXPECT_TRUE(IsAligned(block, 16)) << size;
      kept.push_back(block);
    }
  }
  for (const std::size_t size :
       {100'000u, 131'072u, 131'073u, 1'000'000u, 4'194'304u, 4'194'305u, 50'000'000u}) {
    kept.push_back(std::malloc(size));
    EXPECT_TRUE(IsAligned(kept.back(), 16)) << size;
  }
  for (void* block : kept) std::free(block);
}

// Memory that cannot be had: NULL and ENOMEM from every call, and all is well when there is room again.
TEST(Sizes, Exhaustion) {
  if (!hz_test::StartedUnderLimit()) return hz_test::RunThisTestUnderLimit();
  constexpr std::size_t kBig = std::size_t{512} << 20;
  void* live = std::malloc(100'000);
  hz_test::FillPattern(live, 100'000, 4);
  hz_test::ForbidMoreAddressSpace();
  EXPECT_NO_MEMORY(std::malloc(kBig));
  EXPECT_NO_MEMORY(std::calloc(2, kBig));
  EXPECT_NO_MEMORY(std::realloc(nullptr, kBig));
  EXPECT_NO_MEMORY(reallocarray(nullptr, 2, kBig));
  EXPECT_NO_MEMORY(aligned_alloc(64, kBig));
  EXPECT_NO_MEMORY(memalign(std::size_t{1} << 20, kBig));
  EXPECT_NO_MEMORY(valloc(kBig));
  EXPECT_NO_MEMORY(pvalloc(kBig));
  void* out = &out;
  EXPECT_EQ(ENOMEM, posix_memalign(&out, 64, kBig));
  EXPECT_EQ(&out, out);
  hz_test::AllowMoreAddressSpace();
  EXPECT_TRUE(hz_test::HasPattern(live, 100'000, 4));
  void* block = std::malloc(kBig);
  EXPECT_NE(nullptr, block);
  std::free(block);
  std::free(live);
}

// Live blocks of all sizes at once: none may touch another.
TEST(Sizes, LiveBlocksDoNotOverlap) {
  std::vector<std::pair<void*, std::size_t>> live;
  for (std::size_t size = 1; size < 9000; size += 7) live.emplace_back(std::malloc(size), size);
  for (std::size_t size = 9000; size < 1'000'000; size += 13'331) live.emplace_back(std::malloc(size), size);
  for (std::size_t i = 0; i < live.size(); ++i) hz_test::FillPattern(live[i].first, live[i].second, i);
  for (std::size_t i = 0; i < live.size(); ++i) {
    EXPECT_TRUE(hz_test::HasPattern(live[i].first, live[i].second, i)) << live[i].second;
    std::free(live[i].first);
  }
}

}  // namespace
