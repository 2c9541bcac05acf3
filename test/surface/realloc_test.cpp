// SPDX-License-Identifier: Apache-2.0
//
// realloc: content up to the smaller size, growth without a second copy in memory, and failure without loss.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "support/address_space.hpp"
#include "support/gnu_malloc.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"
#include "support/rss.hpp"
#include "support/sanitizers.hpp"

namespace {

using hz_test::FillPattern;
using hz_test::HasPattern;
using hz_test::IsAligned;
using hz_test::kMiB;
using hz_test::Opaque;
using hz_test::Owned;

constexpr std::size_t kSizes[] = {
    1,         15,      16,      17,      64,      100,     1000,          1024,
    2048,      2049,    3000,    4096,    10'000,  30'000,  65'536,        65'537,
    100'000,   131'072, 262'144, 500'000, 1 << 20, 4 << 20, (4 << 20) + 1, 9'000'000,
    40'000'000};

std::size_t Smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

TEST(Realloc, KeepsContentForEveryPairOfSizes) {
  for (const std::size_t from : kSizes) {
    for (const std::size_t to : kSizes) {
      void* block = std::malloc(from);
      ASSERT_NE(nullptr, block);
      FillPattern(block, from, from);
      block = std::realloc(block, to);
      ASSERT_NE(nullptr, block) << from << " -> " << to;
      EXPECT_TRUE(Owned(block)) << from << " -> " << to;
      EXPECT_TRUE(IsAligned(block, 16)) << from << " -> " << to;
      EXPECT_GE(malloc_usable_size(block), to);
      EXPECT_TRUE(HasPattern(block, Smaller(from, to), from)) << from << " -> " << to;
      FillPattern(block, to, to);  // all of the new size is writable
      std::free(block);
    }
  }
}

TEST(Realloc, KeepsContentOfAlignedBlocks) {
  for (const std::size_t alignment : {32u, 64u, 256u, 4096u, 8192u, 65'536u, 1u << 20}) {
    for (const std::size_t from : {1u, 100u, 2048u, 5000u, 65'536u, 200'000u, 5'000'000u}) {
      for (const std::size_t to : {1u, 120u, 3000u, 66'000u, 300'000u, 9'000'000u}) {
        void* block = memalign(alignment, from);
        ASSERT_TRUE(block != nullptr && IsAligned(block, alignment));
        FillPattern(block, from, alignment + from);
        block = std::realloc(block, to);
        ASSERT_NE(nullptr, block);
        EXPECT_TRUE(Owned(block));
        EXPECT_TRUE(HasPattern(block, Smaller(from, to), alignment + from))
            << "alignment " << alignment << ": " << from << " -> " << to;
        EXPECT_GE(malloc_usable_size(block), to);
        std::free(block);
      }
    }
  }
}

TEST(Realloc, GrowsStepByStepToTensOfMegabytes) {
  std::size_t size = 10;
  void* block = std::malloc(size);
  FillPattern(block, size, 3);
  while (size < 48 * kMiB) {
    const std::size_t next = size + size / 2 + 1;
    block = std::realloc(block, next);
    ASSERT_NE(nullptr, block);
    ASSERT_TRUE(HasPattern(block, size, 3)) << size << " -> " << next;
    FillPattern(block, next, 3);
    size = next;
  }
  while (size > 10) {
    size /= 3;
    block = std::realloc(block, size);
    ASSERT_NE(nullptr, block);
    ASSERT_TRUE(HasPattern(block, size, 3)) << size;
  }
  std::free(block);
}

TEST(Realloc, NeighboursStayIntact) {
  void* blocks[300];
  for (std::size_t i = 0; i < 300; ++i) FillPattern(blocks[i] = std::malloc(50 + i), 50 + i, i);
  for (std::size_t i = 0; i < 300; i += 3) {
    blocks[i] = std::realloc(blocks[i], 5000 + i);
    EXPECT_TRUE(HasPattern(blocks[i], 50 + i, i));
    FillPattern(blocks[i], 5000 + i, i);
  }
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_TRUE(HasPattern(blocks[i], i % 3 == 0 ? 5000 + i : 50 + i, i));
    std::free(blocks[i]);
  }
}

TEST(Realloc, OfNullAllocates) {
  void* block = std::realloc(nullptr, 77);
  ASSERT_NE(nullptr, block);
  EXPECT_GE(malloc_usable_size(block), 77u);
  std::free(block);
}

TEST(Realloc, ToZeroFreesAndReturnsNull) {
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) {
    void* block = std::malloc(10'000);
    ASSERT_NE(nullptr, block);
    EXPECT_EQ(nullptr, Opaque(std::realloc(block, Opaque(std::size_t{0}))));
  }
  EXPECT_LT(mallinfo2().uordblks, before + 5'000'000) << "the blocks were not freed";
}

TEST(Realloc, FailureLeavesTheBlock) {
  for (const std::size_t size : kSizes) {
    for (const std::size_t impossible : {std::size_t{PTRDIFF_MAX}, SIZE_MAX, std::size_t{1} << 60}) {
      void* block = std::malloc(size);
      FillPattern(block, size, size);
      errno = 0;
      EXPECT_EQ(nullptr, Opaque(std::realloc(Opaque(block), Opaque(impossible))));
      EXPECT_EQ(ENOMEM, errno);
      EXPECT_TRUE(Owned(block));
      EXPECT_GE(malloc_usable_size(block), size);
      EXPECT_TRUE(HasPattern(block, size, size)) << size;
      std::free(block);
    }
  }
}

// A huge block moves by mremap: at no time are there two copies.
TEST(Realloc, HugeGrowthDoesNotDoubleMemory) {
  if (hz_test::IsTiny() || hz_test::HasSeals()) GTEST_SKIP() << "it moves no pages";
  if (!hz_test::ResetPeakRss()) GTEST_SKIP() << "the peak cannot be reset here";
  constexpr std::size_t kFrom = 96 * kMiB;
  void* block = std::malloc(kFrom);
  ASSERT_NE(nullptr, block);
  // In the way of growth in place.
  void* in_the_way = std::malloc(8 * kMiB);
  FillPattern(block, kFrom, 1);
  ASSERT_TRUE(hz_test::ResetPeakRss());
  const std::size_t before = hz_test::PeakRssBytes();
  ASSERT_GE(before, kFrom);
  for (std::size_t size = kFrom + kMiB; size <= 3 * kFrom; size += 32 * kMiB) {
    block = std::realloc(block, size);
    ASSERT_NE(nullptr, block);
  }
  if (!hz_test::kUnderTool) {
    EXPECT_LT(hz_test::PeakRssBytes(), before + 8 * kMiB);
  }
  EXPECT_TRUE(HasPattern(block, kFrom, 1));
  std::free(block);
  std::free(in_the_way);
}

TEST(Realloc, ShrinkingAHugeBlockGivesMemoryBack) {
  const std::size_t size = 64 * kMiB;
  void* block = std::malloc(size);
  FillPattern(block, size, 2);
  const std::size_t before = hz_test::RssBytes();
  block = std::realloc(block, 8 * kMiB);
  ASSERT_NE(nullptr, block);
  EXPECT_LT(hz_test::RssBytes() + 48 * kMiB, before);
  EXPECT_TRUE(HasPattern(block, 8 * kMiB, 2));
  std::free(block);
}

// From here on mremap fails in this process with EPERM. Each test is a process of its own under CTest.
bool ForbidMremap() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {4, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(ReallocLast, WithoutMremapContentIsKept) {
  void* block = std::malloc(16 * kMiB);
  FillPattern(block, 16 * kMiB, 9);
  if (!ForbidMremap()) GTEST_SKIP() << "no seccomp here";
  void* moved = std::realloc(block, 40 * kMiB);
  ASSERT_NE(nullptr, moved);
  EXPECT_TRUE(HasPattern(moved, 16 * kMiB, 9));
  moved = std::realloc(moved, 6 * kMiB);
  ASSERT_NE(nullptr, moved);
  EXPECT_TRUE(HasPattern(moved, 6 * kMiB, 9));
  std::free(moved);
}

TEST(ReallocLast, ExhaustionLeavesTheBlock) {
  if (!hz_test::StartedUnderLimit()) return hz_test::RunThisTestUnderLimit();
  const std::size_t size = 64 * kMiB;
  void* block = std::malloc(size);
  FillPattern(block, size, 8);
  hz_test::ForbidMoreAddressSpace();
  errno = 0;
  void* const grown = Opaque(std::realloc(Opaque(block), 512 * kMiB));
  const int error = errno;
  hz_test::AllowMoreAddressSpace();
  ASSERT_EQ(nullptr, grown);
  EXPECT_EQ(ENOMEM, error);
  EXPECT_TRUE(HasPattern(block, size, 8));
  block = std::realloc(block, 128 * kMiB);
  ASSERT_NE(nullptr, block) << "works again when there is room";
  EXPECT_TRUE(HasPattern(block, size, 8));
  std::free(block);
}

}  // namespace
