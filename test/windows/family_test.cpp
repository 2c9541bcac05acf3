// SPDX-License-Identifier: Apache-2.0
//
// The malloc family of each C runtime, by the names that the runtime exports: served by the line, by the
// rules that Microsoft has for it.
#include <gtest/gtest.h>
#include <windows.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <cwchar>
#include <string>

#include "hakozuna/hakozuna.h"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::FillPattern;
using hz_test::HasPattern;
using hz_test::IsAligned;
using hz_test::Opaque;

// As far as the line tells.
bool IsFree(const void* p) { return hz_test::SeesSecondFreesLate() || hz_check(p) != 0; }

constexpr std::size_t kTooMuch = std::size_t{1} << 62;
constexpr std::size_t kSizes[] = {0, 1, 16, 100, 3000, 70'000, 500'000, 10'000'000};

// Every test of one runtime.
class Family : public ::testing::TestWithParam<const char*> {
 protected:
  template <class Function>
  Function* Find(const char* name) const {
    const HMODULE module = GetModuleHandleA(GetParam());
    return reinterpret_cast<Function*>(reinterpret_cast<void*>(GetProcAddress(module, name)));
  }
  int& Error() const { return *Find<int*()>("_errno")(); }
  bool IsUcrt() const { return std::string(GetParam()) == "ucrtbase.dll"; }

  void* (*malloc_)(std::size_t) = Find<void*(std::size_t)>("malloc");
  void (*free_)(void*) = Find<void(void*)>("free");
  void* (*calloc_)(std::size_t, std::size_t) = Find<void*(std::size_t, std::size_t)>("calloc");
  void* (*realloc_)(void*, std::size_t) = Find<void*(void*, std::size_t)>("realloc");
  std::size_t (*msize_)(void*) = Find<std::size_t(void*)>("_msize");
};

TEST_P(Family, MallocIsOurs) {
  for (const std::size_t size : kSizes) {
    void* p = malloc_(size);
    ASSERT_EQ(1, hz_owns(p)) << size;
    EXPECT_TRUE(IsAligned(p, 16)) << size;
    EXPECT_LE(size, msize_(p));
    EXPECT_EQ(hz_usable_size(p), msize_(p));
    FillPattern(p, size, size);
    EXPECT_TRUE(HasPattern(p, size, size));
    free_(p);
    EXPECT_TRUE(IsFree(p)) << size << " is not free";
  }
  free_(nullptr);
}

TEST_P(Family, ExhaustionIsToldInTheRuntimesOwnErrno) {
  for (int way = 0; way < 4; ++way) {
    Error() = 0;
    void* p = way == 0   ? malloc_(Opaque(kTooMuch))
              : way == 1 ? calloc_(Opaque(kTooMuch), 16)
              : way == 2 ? realloc_(nullptr, Opaque(kTooMuch))
                         : calloc_(1, Opaque(kTooMuch));
    EXPECT_EQ(nullptr, p) << way;
    EXPECT_EQ(ENOMEM, Error()) << way;
  }
  void* p = malloc_(100);
  FillPattern(p, 100, 3);
  Error() = 0;
  EXPECT_EQ(nullptr, realloc_(p, Opaque(kTooMuch)));
  EXPECT_EQ(ENOMEM, Error());
  EXPECT_TRUE(HasPattern(p, 100, 3)) << "the old block is no more as it was";
  free_(p);
}

TEST_P(Family, FreeKeepsErrnoAndLastError) {
  void* p = malloc_(10'000'000);
  Error() = 77;
  SetLastError(88);
  free_(p);
  EXPECT_EQ(77, Error());
  EXPECT_EQ(88u, GetLastError());
}

TEST_P(Family, CallocClearsAllThatTheBlockCanHold) {
  for (const std::size_t size : kSizes) {
    void* dirty = malloc_(size);
    std::memset(dirty, 0xAB, msize_(dirty));
    free_(dirty);
    auto* p = static_cast<unsigned char*>(calloc_(size, 1));
    ASSERT_EQ(1, hz_owns(p));
    for (std::size_t i = 0; i < msize_(p); ++i) ASSERT_EQ(0, p[i]) << size << " at " << i;
    free_(p);
  }
}

TEST_P(Family, ReallocGrowsShrinksAndEnds) {
  void* p = realloc_(nullptr, 10);
  ASSERT_EQ(1, hz_owns(p));
  FillPattern(p, 10, 1);
  for (const std::size_t size : {100u, 5000u, 400'000u, 9'000'000u, 50u, 10u}) {
    p = realloc_(p, size);
    ASSERT_EQ(1, hz_owns(p));
    ASSERT_TRUE(HasPattern(p, 10, 1)) << size;
  }
  EXPECT_EQ(nullptr, realloc_(p, 0));
  EXPECT_TRUE(IsFree(p));
  void* empty = realloc_(nullptr, 0);
  EXPECT_EQ(1, hz_owns(empty)) << "realloc(NULL, 0) is malloc(0)";
  free_(empty);
}

TEST_P(Family, ExpandStaysWhereItIs) {
  auto* const expand = Find<void*(void*, std::size_t)>("_expand");
  void* p = malloc_(100);
  EXPECT_EQ(p, expand(p, 50));
  EXPECT_EQ(p, expand(p, msize_(p)));
  Error() = 0;
  EXPECT_EQ(nullptr, expand(p, msize_(p) + 1));
  EXPECT_EQ(ENOMEM, Error());
  EXPECT_EQ(0, hz_check(p)) << "it is still live";
  free_(p);
  EXPECT_EQ(nullptr, expand(nullptr, 1));
  EXPECT_EQ(EINVAL, Error());
  EXPECT_EQ(SIZE_MAX, msize_(nullptr));
}

TEST_P(Family, RecallocClearsWhatIsNew) {
  auto* const recalloc = Find<void*(void*, std::size_t, std::size_t)>("_recalloc");
  if (recalloc == nullptr) GTEST_SKIP() << "this runtime has none";
  auto* p = static_cast<unsigned char*>(recalloc(nullptr, 5, 2));
  ASSERT_EQ(1, hz_owns(p));
  std::memset(p, 0xCD, 10);
  for (const std::size_t count : {11u, 16u, 40u, 4000u, 300'000u, 3'000'000u}) {
    p = static_cast<unsigned char*>(recalloc(p, count, 1));
    ASSERT_EQ(1, hz_owns(p));
    for (std::size_t i = 0; i < 10; ++i) ASSERT_EQ(0xCD, p[i]) << count;
    for (std::size_t i = 10; i < count; ++i) ASSERT_EQ(0, p[i]) << count << " at " << i;
  }
  std::memset(p, 0xCD, 3'000'000);
  p = static_cast<unsigned char*>(recalloc(p, 7, 1));
  p = static_cast<unsigned char*>(recalloc(p, 100, 1));
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(i < 7 ? 0xCD : 0, p[i]) << i;
  Error() = 0;
  EXPECT_EQ(nullptr, recalloc(p, Opaque(kTooMuch), 16));
  EXPECT_EQ(ENOMEM, Error());
  EXPECT_EQ(nullptr, recalloc(p, 0, 1));
  EXPECT_TRUE(IsFree(p));
}

TEST_P(Family, AlignedBlocks) {
  auto* const allocate = Find<void*(std::size_t, std::size_t)>("_aligned_malloc");
  auto* const resize = Find<void*(void*, std::size_t, std::size_t)>("_aligned_realloc");
  auto* const release = Find<void(void*)>("_aligned_free");
  for (std::size_t alignment = 1; alignment <= 1 << 20; alignment *= 4) {
    void* p = allocate(1000, alignment);
    ASSERT_EQ(1, hz_owns(p)) << alignment;
    ASSERT_TRUE(IsAligned(p, alignment)) << alignment;
    FillPattern(p, 1000, alignment);
    void* to = resize(p, 300'000, alignment);
    ASSERT_EQ(1, hz_owns(to)) << alignment;
    ASSERT_TRUE(IsAligned(to, alignment)) << alignment;
    ASSERT_TRUE(HasPattern(to, 1000, alignment)) << alignment;
    release(to);
    EXPECT_TRUE(IsFree(to)) << alignment;
  }
  release(nullptr);
  Error() = 0;
  EXPECT_EQ(nullptr, allocate(100, 48));
  EXPECT_EQ(EINVAL, Error());
  Error() = 0;
  EXPECT_EQ(nullptr, allocate(Opaque(kTooMuch), 64));
  EXPECT_EQ(ENOMEM, Error());
  void* p = resize(nullptr, 100, 64);
  EXPECT_TRUE(IsAligned(p, 64));
  EXPECT_EQ(nullptr, resize(p, 0, 64));
  EXPECT_TRUE(IsFree(p));
}

TEST_P(Family, BlocksWhoseAlignedAddressIsInside) {
  auto* const allocate = Find<void*(std::size_t, std::size_t, std::size_t)>("_aligned_offset_malloc");
  auto* const resize = Find<void*(void*, std::size_t, std::size_t, std::size_t)>("_aligned_offset_realloc");
  auto* const release = Find<void(void*)>("_aligned_free");
  for (const std::size_t alignment : {2u, 8u, 64u, 4096u}) {
    for (const std::size_t offset : {1u, 8u, 50u, 64u, 99u}) {
      auto* p = static_cast<char*>(allocate(100, alignment, offset));
      ASSERT_NE(nullptr, p);
      ASSERT_TRUE(IsAligned(p + offset, alignment < 8 ? 8 : alignment)) << alignment << " " << offset;
      FillPattern(p, 100, offset);
      p = static_cast<char*>(resize(p, 5000, alignment, offset));
      ASSERT_TRUE(IsAligned(p + offset, alignment)) << alignment << " " << offset;
      ASSERT_TRUE(HasPattern(p, 100, offset)) << alignment << " " << offset;
      std::memset(p, 1, 5000);
      void* const base =
          *reinterpret_cast<void**>((reinterpret_cast<std::uintptr_t>(p) & ~std::uintptr_t{7}) - 8);
      const bool inside = hz_owns(p) == 0;
      EXPECT_TRUE(!inside || hz_owns(base) == 1) << "its base does not stand before it";
      release(p);
      EXPECT_TRUE(IsFree(inside ? base : p)) << alignment << " " << offset;
    }
  }
  EXPECT_EQ(nullptr, allocate(100, 16, 100)) << "the offset must lie in the block";
  EXPECT_EQ(EINVAL, Error());
}

TEST_P(Family, AlignedBlocksThatAreCleared) {
  auto* const recalloc =
      Find<void*(void*, std::size_t, std::size_t, std::size_t, std::size_t)>("_aligned_offset_recalloc");
  auto* const size_of = Find<std::size_t(void*, std::size_t, std::size_t)>("_aligned_msize");
  auto* const release = Find<void(void*)>("_aligned_free");
  if (recalloc == nullptr || size_of == nullptr) GTEST_SKIP() << "this runtime has none";
  for (const std::size_t offset : {0u, 24u}) {
    auto* p = static_cast<unsigned char*>(recalloc(nullptr, 50, 1, 256, offset));
    ASSERT_NE(nullptr, p);
    EXPECT_LE(50u, size_of(p, 256, offset));
    std::memset(p, 0xEF, 50);
    p = static_cast<unsigned char*>(recalloc(p, 2000, 2, 256, offset));
    ASSERT_TRUE(IsAligned(p + offset, 256));
    EXPECT_LE(4000u, size_of(p, 256, offset));
    for (std::size_t i = 0; i < 4000; ++i) ASSERT_EQ(i < 50 ? 0xEF : 0, p[i]) << i;
    release(p);
  }
}

// The runtime's own functions that allocate for the program.
TEST_P(Family, WhatTheRuntimeAllocatesIsOurs) {
  char* text = Find<char*(const char*)>("_strdup")("sixteen and more letters");
  EXPECT_EQ(1, hz_owns(text));
  EXPECT_STREQ("sixteen and more letters", text);
  free_(text);
  wchar_t* wide = Find<wchar_t*(const wchar_t*)>("_wcsdup")(L"wide");
  EXPECT_EQ(1, hz_owns(wide));
  EXPECT_STREQ(L"wide", wide);
  free_(wide);
  char* folder = Find<char*(char*, int)>("_getcwd")(nullptr, 0);
  EXPECT_EQ(1, hz_owns(folder));
  free_(folder);
}

TEST_P(Family, OtherNames) {
  if (!IsUcrt()) GTEST_SKIP() << "this runtime has none";
  for (const std::string prefix : {"", "_o_"}) {
    void* p = Find<void*(std::size_t)>((prefix + "_malloc_base").c_str())(100);
    EXPECT_EQ(1, hz_owns(p)) << prefix;
    p = Find<void*(void*, std::size_t)>((prefix + "_realloc_base").c_str())(p, 1000);
    EXPECT_EQ(1, hz_owns(p)) << prefix;
    Find<void(void*)>((prefix + "_free_base").c_str())(p);
    EXPECT_TRUE(IsFree(p)) << prefix;
    p = Find<void*(std::size_t, std::size_t)>((prefix + "_calloc_base").c_str())(10, 10);
    EXPECT_EQ(1, hz_owns(p)) << prefix;
    free_(p);
  }
}

int handled = 0;

TEST_P(Family, TheNewHandlerIsCalledIfTheProgramSaysSo) {
  using Handler = int(std::size_t);
  auto* const set_mode = Find<int(int)>("?_set_new_mode@@YAHH@Z");
  auto* const set_handler = Find<Handler*(Handler*)>("?_set_new_handler@@YAP6AH_K@ZP6AH0@Z@Z");
  if (set_mode == nullptr || set_handler == nullptr) GTEST_SKIP() << "this runtime's is no program's to set";
  handled = 0;
  Handler* const before = set_handler([](std::size_t) { return ++handled < 3 ? 1 : 0; });
  EXPECT_EQ(nullptr, malloc_(Opaque(PTRDIFF_MAX)));
  EXPECT_EQ(0, handled) << "malloc calls it only if it is told so";
  set_mode(1);
  EXPECT_EQ(nullptr, malloc_(Opaque(PTRDIFF_MAX)));
  EXPECT_EQ(3, handled);
  set_mode(0);
  set_handler(before);
}

INSTANTIATE_TEST_SUITE_P(Windows, Family, ::testing::Values("msvcrt.dll", "ucrtbase.dll"),
                         [](const auto& runtime) { return std::string(runtime.param, 4); });

}  // namespace
