// SPDX-License-Identifier: Apache-2.0
//
// The aligned calls: every power of two up to 2^30, and what is no power of two.
#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "support/gnu_malloc.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::FillPattern;
using hz_test::HasPattern;
using hz_test::IsAligned;
using hz_test::Opaque;

constexpr std::size_t kSizes[] = {0,    1,      17,     64,     100,     1000,     2048,
                                  4097, 20'000, 65'536, 65'537, 300'000, 5'000'000};

void ExpectAligned(void* block, std::size_t alignment, std::size_t size) {
  ASSERT_NE(nullptr, block) << "alignment " << alignment << " size " << size;
  EXPECT_TRUE(IsAligned(block, alignment)) << "alignment " << alignment << " size " << size;
  EXPECT_TRUE(hz_test::Owned(block)) << "alignment " << alignment << " size " << size;
  EXPECT_GE(malloc_usable_size(block), size);
  FillPattern(block, size, alignment);
  EXPECT_TRUE(HasPattern(block, size, alignment));
}

TEST(Aligned, EveryPowerOfTwoUpTo2To30) {
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 30; alignment *= 2) {
    for (const std::size_t size : kSizes) {
      void* block = memalign(alignment, size);
      ExpectAligned(block, alignment, size);
      std::free(block);
      block = aligned_alloc(alignment, size);
      ExpectAligned(block, alignment, size);
      std::free(block);
      if (alignment < sizeof(void*)) continue;
      ASSERT_EQ(0, posix_memalign(&block, alignment, size));
      ExpectAligned(block, alignment, size);
      std::free(block);
    }
  }
}

// Many at once, so that a lucky first address proves nothing.
TEST(Aligned, ManyLiveBlocks) {
  for (std::size_t alignment = 16; alignment <= std::size_t{1} << 17; alignment *= 2) {
    for (const std::size_t size : {1u, 100u, 3000u, 70'000u}) {
      std::vector<void*> live;
      for (int i = 0; i < 40; ++i) {
        live.push_back(memalign(alignment, size));
        ASSERT_NE(nullptr, live.back());
        EXPECT_TRUE(IsAligned(live.back(), alignment)) << alignment << " " << size;
        FillPattern(live.back(), size, static_cast<std::size_t>(i));
      }
      for (std::size_t i = 0; i < live.size(); ++i) {
        EXPECT_TRUE(HasPattern(live[i], size, i)) << alignment << " " << size;
        std::free(live[i]);
      }
    }
  }
}

TEST(Aligned, SeveralHugeAlignmentsAtOnce) {
  void* blocks[4];
  for (void*& block : blocks) {
    block = memalign(std::size_t{1} << 30, 10'000);
    ASSERT_NE(nullptr, block);
    EXPECT_TRUE(IsAligned(block, std::size_t{1} << 30));
  }
  for (void* block : blocks) std::free(block);
}

// Mapped as far as it is used: what lies between costs nothing, and the heap goes on in it.
TEST(Aligned, AsLongAsThereIsRoom) {
  for (unsigned shift = 31; shift <= 36; ++shift) {
    const std::size_t alignment = std::size_t{1} << shift;
    void* blocks[4];
    std::size_t size = 100;
    for (void*& block : blocks) {
      block = memalign(alignment, size);
      if (hz_test::OnLibc() && block == nullptr) continue;  // which may be refused what it does not need
      ExpectAligned(block, alignment, size);
      size *= 100;
    }
    size = 100;
    for (void* block : blocks) {
      void* small = std::malloc(1000);
      EXPECT_TRUE(block == nullptr || HasPattern(block, size, alignment));
      std::free(block);
      std::free(small);
      size *= 100;
    }
  }
  for (unsigned shift = 50; shift < 64; ++shift) {
    void* out = &out;
    EXPECT_EQ(ENOMEM, posix_memalign(&out, Opaque(std::size_t{1} << shift), 100)) << shift;
  }
}

TEST(Aligned, AlignedAllocTakesSizesThatAreNoMultiple) {
  for (const std::size_t alignment : {64u, 4096u, 1u << 20, 4u << 20, 8u << 20}) {
    void* block = aligned_alloc(Opaque(alignment), alignment + 3);
    ExpectAligned(block, alignment, alignment + 3);
    std::free(block);
    block = aligned_alloc(Opaque(alignment), 1);
    ExpectAligned(block, alignment, 1);
    std::free(block);
  }
}

TEST(Aligned, PosixMemalignRefusesBadAlignmentsAndLeavesOut) {
  for (const std::size_t bad :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{3}, std::size_t{12},
        std::size_t{24}, std::size_t{48}, std::size_t{100}, std::size_t{4097}, SIZE_MAX, SIZE_MAX / 2}) {
    void* out = &out;
    errno = 42;
    EXPECT_EQ(EINVAL, posix_memalign(&out, Opaque(bad), 100)) << bad;
    EXPECT_EQ(&out, out) << bad;
    EXPECT_EQ(42, errno) << "nothing was asked of the heap";
  }
}

TEST(Aligned, PosixMemalignReportsExhaustionAndLeavesOut) {
  void* out = &out;
  errno = 42;
  EXPECT_EQ(ENOMEM, posix_memalign(&out, 64, Opaque(std::size_t{PTRDIFF_MAX})));
  EXPECT_EQ(&out, out);
  EXPECT_EQ(ENOMEM, errno) << "POSIX leaves it open, and glibc and musl say so twice";
}

// As glibc does; from 2.38 on it refuses them in aligned_alloc.
TEST(Aligned, AnAlignmentThatIsNoPowerOfTwoIsRoundedUp) {
  if (hz_test::OnLibc()) GTEST_SKIP();
  for (const std::size_t odd : {std::size_t{0}, std::size_t{3}, std::size_t{6}, std::size_t{24},
                                std::size_t{100}, std::size_t{4097}}) {
    const std::size_t rounded = odd == 0 ? 1 : std::bit_ceil(odd);
    for (void* block : {aligned_alloc(Opaque(odd), 100), memalign(Opaque(odd), 100)}) {
      ExpectAligned(block, rounded, 100);
      std::free(block);
    }
  }
}

TEST(Aligned, AnAlignmentThatCannotBeRoundedIsEinval) {
  if (hz_test::OnLibc()) GTEST_SKIP();
  errno = 0;
  EXPECT_EQ(nullptr, Opaque(aligned_alloc(Opaque(SIZE_MAX), 100)));
  EXPECT_EQ(EINVAL, errno);
  errno = 0;
  EXPECT_EQ(nullptr, Opaque(memalign(Opaque(SIZE_MAX), 100)));
  EXPECT_EQ(EINVAL, errno);
}

TEST(Aligned, VallocAndPvallocGiveWholePages) {
  for (const std::size_t size : {1u, 100u, 4096u, 5000u, 100'000u}) {
    void* block = valloc(size);
    ExpectAligned(block, 4096, size);
    std::free(block);
    block = pvalloc(size);
    ExpectAligned(block, 4096, (size + 4095) / 4096 * 4096);
    std::free(block);
  }
}

}  // namespace
