// SPDX-License-Identifier: Apache-2.0
//
// The 20 replaceable operators: blocks are ours and aligned, and every delete takes them back.
#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "support/capture.hpp"
#include "support/gnu_malloc.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::Opaque;
using std::align_val_t;
using std::nothrow;

constexpr std::size_t kSizes[] = {0, 1, 16, 100, 1024, 2049, 10'000, 65'536, 200'000, 5'000'000};
constexpr std::size_t kAlignments[] = {16, 32, 64, 128, 4096, 65'536};

// Allocates and frees, checks each block; whatever `release` does not take back shows in mallinfo2.
template <class Allocate, class Release>
void ExpectPairWorks(std::size_t alignment, Allocate allocate, Release release) {
  for (const std::size_t size : kSizes) {
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < 100; ++i) {
      void* block = Opaque(allocate(size));
      ASSERT_NE(nullptr, block);
      EXPECT_TRUE(hz_test::Owned(block)) << size;
      EXPECT_TRUE(hz_test::IsAligned(block, alignment)) << size;
      EXPECT_GE(malloc_usable_size(block), size);
      hz_test::FillPattern(block, size < 4096 ? size : 4096, size);
      release(block, size);
    }
    EXPECT_LT(mallinfo2().uordblks + mallinfo2().hblkhd, before + 50 * size + 100'000)
        << size << " is not taken back";
  }
}

TEST(Operators, NewAndDelete) {
  hz_test::Capture capture;
  const auto plain = [](std::size_t n) { return ::operator new(n); };
  ExpectPairWorks(16, plain, [](void* p, std::size_t) { ::operator delete(p); });
  ExpectPairWorks(16, plain, [](void* p, std::size_t n) { ::operator delete(p, n); });
  ExpectPairWorks(16, plain, [](void* p, std::size_t) { ::operator delete(p, nothrow); });
  ExpectPairWorks(
      16, [](std::size_t n) { return ::operator new(n, nothrow); },
      [](void* p, std::size_t) { ::operator delete(p, nothrow); });
  EXPECT_EQ("", capture.Text()) << "right sizes are silent";
}

TEST(Operators, ArrayNewAndDelete) {
  hz_test::Capture capture;
  const auto array = [](std::size_t n) { return ::operator new[](n); };
  ExpectPairWorks(16, array, [](void* p, std::size_t) { ::operator delete[](p); });
  ExpectPairWorks(16, array, [](void* p, std::size_t n) { ::operator delete[](p, n); });
  ExpectPairWorks(16, array, [](void* p, std::size_t) { ::operator delete[](p, nothrow); });
  ExpectPairWorks(
      16, [](std::size_t n) { return ::operator new[](n, nothrow); },
      [](void* p, std::size_t) { ::operator delete[](p, nothrow); });
  EXPECT_EQ("", capture.Text()) << "right sizes are silent";
}

TEST(Operators, AlignedNewAndDelete) {
  hz_test::Capture capture;
  for (const std::size_t bytes : kAlignments) {
    const auto a = static_cast<align_val_t>(bytes);
    const auto plain = [a](std::size_t n) { return ::operator new(n, a); };
    ExpectPairWorks(bytes, plain, [a](void* p, std::size_t) { ::operator delete(p, a); });
    ExpectPairWorks(bytes, plain, [a](void* p, std::size_t n) { ::operator delete(p, n, a); });
    ExpectPairWorks(
        bytes, [a](std::size_t n) { return ::operator new(n, a, nothrow); },
        [a](void* p, std::size_t) { ::operator delete(p, a, nothrow); });
  }
  EXPECT_EQ("", capture.Text()) << "right sizes are silent";
}

TEST(Operators, AlignedArrayNewAndDelete) {
  hz_test::Capture capture;
  for (const std::size_t bytes : kAlignments) {
    const auto a = static_cast<align_val_t>(bytes);
    const auto array = [a](std::size_t n) { return ::operator new[](n, a); };
    ExpectPairWorks(bytes, array, [a](void* p, std::size_t) { ::operator delete[](p, a); });
    ExpectPairWorks(bytes, array, [a](void* p, std::size_t n) { ::operator delete[](p, n, a); });
    ExpectPairWorks(
        bytes, [a](std::size_t n) { return ::operator new[](n, a, nothrow); },
        [a](void* p, std::size_t) { ::operator delete[](p, a, nothrow); });
  }
  EXPECT_EQ("", capture.Text()) << "right sizes are silent";
}

TEST(Operators, DeleteOfNullDoesNothing) {
  const auto none = [] { return Opaque<void*>(nullptr); };
  const auto a = static_cast<align_val_t>(64);
  ::operator delete(none());
  ::operator delete[](none());
  ::operator delete(none(), 8);
  ::operator delete[](none(), 8);
  ::operator delete(none(), a);
  ::operator delete[](none(), a);
  ::operator delete(none(), 8, a);
  ::operator delete[](none(), 8, a);
  ::operator delete(none(), nothrow);
  ::operator delete[](none(), nothrow);
  ::operator delete(none(), a, nothrow);
  ::operator delete[](none(), a, nothrow);
}

TEST(Operators, NewExpressionsOfRealTypes) {
  struct alignas(256) Wide {
    char bytes[300];
  };
  auto* wide = Opaque(new Wide[3]);
  EXPECT_TRUE(hz_test::IsAligned(wide, 256));
  EXPECT_TRUE(hz_test::Owned(wide));
  delete[] wide;
  auto* text = Opaque(new std::string[10]);
  for (int i = 0; i < 10; ++i) text[i].assign(100, static_cast<char>('a' + i));
  EXPECT_TRUE(hz_test::Owned(text[3].data()));
  delete[] text;
}

// Reported, and not fatal: the line on stderr, the block is freed, the program goes on.
TEST(Operators, SizedDeleteWithAWrongSizeIsReported) {
  if (hz_test::OnLibc()) GTEST_SKIP();
  if (hz_test::HasSeals()) GTEST_SKIP() << "it ends the process: test/hostile";
  hz_test::Capture capture;
  ::operator delete(Opaque(::operator new(64)), Opaque(std::size_t{40'000}));
  ::operator delete[](Opaque(::operator new[](64)), Opaque(std::size_t{40'000}));
  const auto a = static_cast<align_val_t>(64);
  ::operator delete(Opaque(::operator new(64, a)), Opaque(std::size_t{40'000}), a);
  ::operator delete[](Opaque(::operator new[](64, a)), Opaque(std::size_t{40'000}), a);
  const std::string text = capture.Text();
  std::size_t reports = 0;
  for (std::size_t at = 0; (at = text.find("hz: error: E05 size-mismatch ptr=0x", at)) != std::string::npos;
       ++at) {
    ++reports;
  }
  EXPECT_EQ(4u, reports) << text;
}

}  // namespace
