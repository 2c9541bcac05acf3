// SPDX-License-Identifier: Apache-2.0
//
// Every function of the surface exists and is ours: one that is missing would go to the C library's own heap.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/gnu_malloc.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::FindFunction;
using hz_test::IsAligned;
using hz_test::Opaque;
using hz_test::Owned;

class Name : public ::testing::TestWithParam<const char*> {};

// Names of the C library's own heap, which musl keeps to itself: nobody calls them there.
bool OfAnotherLibc(const char* name) { return !hz_test::kGlibc && std::string(name).starts_with("__"); }

TEST_P(Name, IsServedByUs) {
  if (OfAnotherLibc(GetParam())) GTEST_SKIP() << "a name of glibc's own";
  EXPECT_TRUE(hz_test::ServedByUs(GetParam())) << GetParam();
}

std::string Readable(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Malloc, Name,
                         ::testing::Values("malloc", "calloc", "realloc", "free", "reallocarray",
                                           "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
                                           "cfree", "malloc_usable_size", "malloc_trim", "mallopt",
                                           "mallinfo", "mallinfo2", "malloc_info", "malloc_stats",
                                           "free_sized", "free_aligned_sized", "reallocf",
                                           "malloc_good_size"),
                         Readable);

INSTANTIATE_TEST_SUITE_P(Libc, Name,
                         ::testing::Values("__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_free",
                                           "__libc_memalign", "__libc_valloc", "__libc_pvalloc",
                                           "__posix_memalign"),
                         Readable);

// The 8 operators new and the 12 operators delete.
INSTANTIATE_TEST_SUITE_P(
    Operator, Name,
    ::testing::Values("_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t",
                      "_ZnamSt11align_val_t", "_ZnwmSt11align_val_tRKSt9nothrow_t",
                      "_ZnamSt11align_val_tRKSt9nothrow_t", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm",
                      "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t", "_ZdlPvSt11align_val_t",
                      "_ZdaPvSt11align_val_t", "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t",
                      "_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t"),
    Readable);

// Blocks of each allocating function are ours, writable, and taken back by free.
void ExpectGoodBlock(void* block, std::size_t size, std::size_t alignment, const char* function) {
  ASSERT_NE(nullptr, block) << function;
  EXPECT_TRUE(Owned(block)) << function;
  EXPECT_TRUE(IsAligned(block, alignment)) << function;
  EXPECT_GE(malloc_usable_size(block), size) << function;
  hz_test::FillPattern(block, size, size);
  EXPECT_TRUE(hz_test::HasPattern(block, size, size)) << function;
  std::free(block);
}

constexpr std::size_t kSizes[] = {1, 24, 1000, 5000, 70'000, 300'000, 9'000'000};

TEST(Blocks, OfMallocLikeFunctions) {
  for (const char* name :
       {"malloc", "__libc_malloc", "valloc", "__libc_valloc", "pvalloc", "__libc_pvalloc"}) {
    if (OfAnotherLibc(name)) continue;
    auto* allocate = FindFunction<void*(std::size_t)>(name);
    ASSERT_NE(nullptr, allocate) << name;
    const bool of_pages = std::string(name).find("valloc") != std::string::npos;
    const bool whole_pages = std::string(name).find("pvalloc") != std::string::npos;
    for (std::size_t size : kSizes) {
      const std::size_t promised = whole_pages ? (size + 4095) / 4096 * 4096 : size;
      ExpectGoodBlock(allocate(size), promised, of_pages ? 4096 : 16, name);
    }
  }
}

TEST(Blocks, OfCallocLikeFunctions) {
  for (const char* name : {"calloc", "__libc_calloc"}) {
    if (OfAnotherLibc(name)) continue;
    auto* allocate = FindFunction<void*(std::size_t, std::size_t)>(name);
    ASSERT_NE(nullptr, allocate) << name;
    for (std::size_t size : kSizes) ExpectGoodBlock(allocate(size, 3), size * 3, 16, name);
  }
}

TEST(Blocks, OfReallocLikeFunctions) {
  // The C library has no reallocf.
  std::vector<const char*> names = {"realloc", "__libc_realloc"};
  if (!hz_test::OnLibc()) names.push_back("reallocf");
  for (const char* name : names) {
    if (OfAnotherLibc(name)) continue;
    auto* resize = FindFunction<void*(void*, std::size_t)>(name);
    ASSERT_NE(nullptr, resize) << name;
    for (std::size_t size : kSizes) {
      ExpectGoodBlock(resize(nullptr, size), size, 16, name);
      ExpectGoodBlock(resize(std::malloc(size), 2 * size), 2 * size, 16, name);
    }
  }
  for (std::size_t size : kSizes) {
    ExpectGoodBlock(reallocarray(nullptr, size, 3), size * 3, 16, "reallocarray");
    ExpectGoodBlock(reallocarray(std::malloc(size), size, 3), size * 3, 16, "reallocarray");
  }
}

TEST(Blocks, OfAlignedFunctions) {
  for (const char* name : {"memalign", "aligned_alloc", "__libc_memalign"}) {
    if (OfAnotherLibc(name)) continue;
    auto* allocate = FindFunction<void*(std::size_t, std::size_t)>(name);
    ASSERT_NE(nullptr, allocate) << name;
    for (std::size_t size : kSizes) ExpectGoodBlock(allocate(256, size), size, 256, name);
  }
  for (const char* name : {"posix_memalign", "__posix_memalign"}) {
    if (OfAnotherLibc(name)) continue;
    auto* allocate = FindFunction<int(void**, std::size_t, std::size_t)>(name);
    ASSERT_NE(nullptr, allocate) << name;
    for (std::size_t size : kSizes) {
      void* block = nullptr;
      ASSERT_EQ(0, allocate(&block, 256, size)) << name;
      ExpectGoodBlock(block, size, 256, name);
    }
  }
}

// Each freeing function takes the block back: it can be had again, and memory does not grow.
TEST(Blocks, OfEachFreeingFunction) {
  for (const char* name : {"free", "__libc_free", "cfree"}) {
    if (OfAnotherLibc(name)) continue;
    auto* release = FindFunction<void(void*)>(name);
    if (release == nullptr && hz_test::OnLibc()) continue;
    ASSERT_NE(nullptr, release) << name;
    const std::size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 1000; ++i) release(std::malloc(5000));
    EXPECT_LT(mallinfo2().uordblks, before + 1000 * 5000 / 2) << name;
    release(nullptr);
  }
}

TEST(Blocks, OfSizedFrees) {
  if (hz_test::OnLibc()) GTEST_SKIP() << "the C library has them from 2.43 on";
  auto* sized = FindFunction<void(void*, std::size_t)>("free_sized");
  auto* aligned = FindFunction<void(void*, std::size_t, std::size_t)>("free_aligned_sized");
  ASSERT_NE(nullptr, sized);
  ASSERT_NE(nullptr, aligned);
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) {
    sized(std::malloc(5000), 5000);
    aligned(aligned_alloc(512, 5120), 512, 5120);
  }
  EXPECT_LT(mallinfo2().uordblks, before + 1000 * 5000 / 2);
  sized(nullptr, 7);
  aligned(nullptr, 64, 7);
}

TEST(Blocks, ReallocfFreesWhenItFails) {
  if (hz_test::OnLibc()) GTEST_SKIP() << "the C library has no reallocf";
  auto* reallocf = FindFunction<void*(void*, std::size_t)>("reallocf");
  ASSERT_NE(nullptr, reallocf);
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) {
    errno = 0;
    EXPECT_EQ(nullptr, reallocf(std::malloc(5000), Opaque(SIZE_MAX)));
    EXPECT_EQ(ENOMEM, errno);
  }
  EXPECT_LT(mallinfo2().uordblks, before + 1000 * 5000 / 2);
}

}  // namespace
