// SPDX-License-Identifier: Apache-2.0
//
// First-class heaps by their names in C, and hakozuna::heap; or, where a line has none, that it says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "hakozuna/hakozuna.hpp"
#include "support/capture.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::FillPattern;
using hz_test::HasPattern;
using hz_test::IsAligned;
using hz_test::Opaque;

class Heaps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (hz_test::IsTiny()) GTEST_SKIP() << "the line has none";
  }
};

TEST(HeapsOfNoLine, AreRefused) {
  if (!hz_test::IsTiny()) GTEST_SKIP() << "the line has some";
  errno = 0;
  EXPECT_EQ(nullptr, hz_heap_new());
  EXPECT_EQ(ENOSYS, errno);
  EXPECT_THROW(hakozuna::heap(), std::bad_alloc);
  hz_heap_destroy(nullptr);
  hz_heap_delete(nullptr);

  // Whatever is said to be one: told each time, and nothing is had.
  ASSERT_EQ(0, hz_ctl("on_invalid", "report", nullptr, 0));
  auto* const none = reinterpret_cast<hz_heap_t*>(Opaque(std::uintptr_t{4096}));
  void* const block = hz_malloc(10);
  hz_test::Capture said;
  for (void* const had : {hz_heap_malloc(none, 1), hz_heap_calloc(none, 1, 1),
                          hz_heap_realloc(none, block, 20), hz_heap_aligned_alloc(none, 64, 1)}) {
    EXPECT_EQ(nullptr, had);
    EXPECT_EQ(EINVAL, errno);
  }
  hz_heap_destroy(none);
  hz_heap_delete(none);
  const std::string lines = said.Text();
  EXPECT_EQ(6, std::count(lines.begin(), lines.end(), '\n')) << lines;
  EXPECT_EQ(0U, lines.find("hz: error: E07 no-heap ptr=0x1000 ")) << lines;
  EXPECT_EQ(0, hz_ctl("on_invalid", "abort", nullptr, 0));
  hz_free(block);
}

TEST_F(Heaps, WhatIsNoBlockIsNotResized) {
  ASSERT_EQ(0, hz_ctl("on_invalid", "report", nullptr, 0));
  hz_heap_t* const heap = hz_heap_new();
  static char foreign[64];
  hz_test::Capture said;
  EXPECT_EQ(nullptr, hz_heap_realloc(heap, Opaque(static_cast<void*>(foreign)), 100));
  EXPECT_EQ(0U, said.Text().find("hz: error: E01 foreign-pointer"));
  hz_heap_destroy(heap);
  EXPECT_EQ(0, hz_ctl("on_invalid", "abort", nullptr, 0));
}

TEST_F(Heaps, AllocateAndEnd) {
  hz_heap_t* const heap = hz_heap_new();
  ASSERT_NE(nullptr, heap);
  void* const block = hz_heap_malloc(heap, 1000);
  ASSERT_NE(nullptr, block);
  FillPattern(block, 1000, 1);
  EXPECT_TRUE(hz_owns(block));
  EXPECT_EQ(0, hz_check(block));
  EXPECT_GE(hz_usable_size(block), 1000U);
  const auto* const zeroed = static_cast<const char*>(hz_heap_calloc(heap, 100, 7));
  ASSERT_NE(nullptr, zeroed);
  EXPECT_EQ(std::string(700, '\0'), std::string(zeroed, 700));
  EXPECT_TRUE(IsAligned(hz_heap_aligned_alloc(heap, 4096, 10), 4096));
  EXPECT_TRUE(IsAligned(hz_heap_aligned_alloc(heap, 1 << 20, 10), 1 << 20));
  void* moved = hz_heap_realloc(heap, block, 100'000);
  EXPECT_TRUE(HasPattern(moved, 1000, 1));
  moved = hz_realloc(moved, 500);
  EXPECT_TRUE(HasPattern(moved, 500, 1));
  moved = hz_aligned_realloc(moved, 256, 3000);
  EXPECT_TRUE(IsAligned(moved, 256) && HasPattern(moved, 500, 1));
  EXPECT_EQ(moved, hz_expand(moved, 3000));
  hz_free_aligned_sized(moved, 256, 3000);
  hz_heap_destroy(heap);
  EXPECT_NE(0, hz_check(zeroed));
  hz_heap_destroy(nullptr);
}

TEST_F(Heaps, WhatCannotBeIsRefused) {
  hz_heap_t* const heap = hz_heap_new();
  const auto refused = [](int error, const void* block) {
    EXPECT_EQ(nullptr, block);
    EXPECT_EQ(error, errno);
    errno = 0;
  };
  refused(ENOMEM, hz_heap_malloc(heap, Opaque(SIZE_MAX)));
  refused(ENOMEM, hz_heap_malloc(heap, Opaque(std::size_t{PTRDIFF_MAX} + 1)));
  refused(ENOMEM, hz_heap_calloc(heap, Opaque(SIZE_MAX / 2), 3));
  refused(EINVAL, hz_heap_aligned_alloc(heap, 24, 10));
  refused(EINVAL, hz_heap_aligned_alloc(heap, 0, 10));
  void* const block = hz_heap_malloc(heap, 10);
  refused(ENOMEM, hz_heap_realloc(heap, block, Opaque(SIZE_MAX)));
  EXPECT_EQ(0, hz_check(block)) << "it is intact";
  hz_heap_destroy(heap);
}

TEST_F(Heaps, BlocksOutliveADeletedHeap) {
  hz_heap_t* const heap = hz_heap_new();
  void* const block = hz_heap_malloc(heap, 100);
  FillPattern(block, 100, 2);
  hz_heap_delete(heap);
  EXPECT_TRUE(HasPattern(block, 100, 2));
  hz_free(block);
  EXPECT_NE(0, hz_check(block));
}

TEST_F(Heaps, StatisticsCountThem) {
  const auto live = [] {
    hz_stats_t stats;
    hz_stats(&stats, sizeof stats);
    return stats.bytes_live;
  };
  const std::uint64_t before = live();
  hz_heap_t* const heap = hz_heap_new();
  for (int i = 0; i < 1000; ++i) hz_heap_malloc(heap, 1000);
  hz_heap_malloc(heap, 10'000'000);
  EXPECT_GE(live(), before + 11'000'000);
  EXPECT_LE(live(), before + 12'000'000);
  hz_heap_destroy(heap);
  EXPECT_LE(live(), before);
}

struct alignas(64) Line {
  char bytes[64];
};

TEST_F(Heaps, ServeContainers) {
  hakozuna::heap heap;
  {
    std::pmr::unordered_map<int, std::pmr::string> words(&heap);
    std::pmr::vector<Line> lines(&heap);
    for (int i = 0; i < 1000; ++i) {
      words[i] = std::string(static_cast<std::size_t>(i % 100), 'x');
      lines.emplace_back();
      EXPECT_TRUE(IsAligned(&lines.back(), 64));
    }
    for (int i = 0; i < 1000; i += 2) words.erase(i);
    EXPECT_EQ(500U, words.size());
    EXPECT_EQ(std::string(99, 'x'), std::string_view(words[199]));
    EXPECT_EQ(&heap, words.begin()->second.get_allocator().resource());
  }
  hakozuna::heap other;
  const std::pmr::memory_resource& same = heap;
  EXPECT_TRUE(heap == same);
  EXPECT_FALSE(heap == other);
  EXPECT_THROW(static_cast<void>(heap.allocate(Opaque(SIZE_MAX / 2), 8)), std::bad_alloc);
}

// A container in the heap that holds its memory ends with it, and nobody destroys it.
TEST_F(Heaps, EndWithWhatIsInThem) {
  void* inside = nullptr;
  {
    hakozuna::heap heap;
    using Words = std::pmr::vector<std::pmr::string>;
    auto* const words = new (heap.allocate(sizeof(Words), alignof(Words))) Words(&heap);
    std::thread([&] {
      for (int i = 0; i < 1000; ++i) words->emplace_back(std::string(100, 'y'));
    }).join();
    inside = words->back().data();
    EXPECT_EQ(0, hz_check(inside));
    heap.clear();
    EXPECT_NE(0, hz_check(inside));
    inside = heap.allocate(100, 16);
    void* const shrunk = hz_heap_realloc(heap.handle(), inside, 99);
    if (!hz_test::HasSeals()) {
      EXPECT_EQ(inside, shrunk);
    }
    inside = shrunk;
  }
  EXPECT_NE(0, hz_check(inside));
}

}  // namespace
