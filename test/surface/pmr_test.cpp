// SPDX-License-Identifier: Apache-2.0
//
// hakozuna.hpp: the polymorphic memory resource and the standard allocator.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "hakozuna/hakozuna.hpp"
#include "support/capture.hpp"
#include "support/opaque.hpp"
#include "support/pattern.hpp"

namespace {

using hz_test::IsAligned;
using hz_test::Opaque;

struct alignas(64) Line {
  char bytes[64];
};
struct alignas(4096) Page {
  char bytes[4096];
};

TEST(Resource, AllocatesFromOurHeap) {
  hz_test::Capture capture;
  for (const std::size_t bytes : {0u, 1u, 100u, 5000u, 200'000u, 6'000'000u}) {
    for (const std::size_t alignment : {1u, 8u, 16u, 64u, 4096u, 1u << 20}) {
      void* block = hakozuna::resource()->allocate(bytes, alignment);
      ASSERT_NE(nullptr, block);
      EXPECT_EQ(1, hz_owns(block));
      EXPECT_TRUE(IsAligned(block, alignment));
      hz_test::FillPattern(block, bytes, 1);
      hakozuna::resource()->deallocate(block, bytes, alignment);
    }
  }
  EXPECT_EQ("", capture.Text()) << "right sizes are silent";
}

TEST(Resource, ServesPmrContainers) {
  std::pmr::vector<int> numbers(hakozuna::resource());
  for (int i = 0; i < 100'000; ++i) numbers.push_back(i);
  EXPECT_EQ(1, hz_owns(numbers.data()));
  EXPECT_EQ(99'999, numbers.back());
  std::pmr::map<int, std::pmr::string> map(hakozuna::resource());
  for (int i = 0; i < 1000; ++i) map.emplace(i, std::string(100, static_cast<char>('a' + i % 26)));
  EXPECT_EQ(1, hz_owns(map.at(500).data())) << "the resource reaches the inner strings";
  std::pmr::unordered_map<int, int> hashed(hakozuna::resource());
  for (int i = 0; i < 1000; ++i) hashed[i] = -i;
  EXPECT_EQ(-77, hashed.at(77));
  std::pmr::vector<Page> pages(3, hakozuna::resource());
  EXPECT_TRUE(IsAligned(pages.data(), 4096));
}

TEST(Resource, IsAnUpstream) {
  std::pmr::monotonic_buffer_resource buffer(hakozuna::resource());
  std::pmr::unsynchronized_pool_resource pool(hakozuna::resource());
  std::pmr::vector<int> a(10'000, 1, &buffer);
  std::pmr::vector<int> b(10'000, 2, &pool);
  EXPECT_EQ(1, a[9999]);
  EXPECT_EQ(2, b[9999]);
}

TEST(Resource, ThrowsBadAlloc) {
  for (const std::size_t alignment : {8u, 64u}) {
    EXPECT_THROW(Opaque(hakozuna::resource()->allocate(Opaque(SIZE_MAX), alignment)), std::bad_alloc);
    EXPECT_THROW(Opaque(hakozuna::resource()->allocate(Opaque(std::size_t{PTRDIFF_MAX}), alignment)),
                 std::bad_alloc);
  }
}

TEST(Resource, IsEqualToItselfAlone) {
  EXPECT_EQ(hakozuna::resource(), hakozuna::resource());
  EXPECT_TRUE(hakozuna::resource()->is_equal(*hakozuna::resource()));
  EXPECT_FALSE(hakozuna::resource()->is_equal(*std::pmr::new_delete_resource()));
  EXPECT_TRUE(*hakozuna::resource() == *hakozuna::memory_resource::instance());
}

TEST(Resource, FreesInAnotherThread) {
  std::pmr::vector<std::pmr::string> made(hakozuna::resource());
  std::thread([&] { made.assign(1000, std::pmr::string(200, 'x')); }).join();
  EXPECT_EQ(200u, made.back().size());
}

TEST(Allocator, AllocatesFromOurHeap) {
  std::vector<int, hakozuna::allocator<int>> numbers;
  for (int i = 0; i < 100'000; ++i) numbers.push_back(i);
  EXPECT_EQ(1, hz_owns(numbers.data()));
  std::list<std::string, hakozuna::allocator<std::string>> list(100, "text");
  EXPECT_EQ("text", list.back());
  std::map<int, int, std::less<>, hakozuna::allocator<std::pair<const int, int>>> map;
  for (int i = 0; i < 1000; ++i) map[i] = i;
  const auto shared = std::allocate_shared<Line>(hakozuna::allocator<char>());
  EXPECT_TRUE(IsAligned(shared.get(), alignof(Line)));
}

TEST(Allocator, KeepsOverAlignment) {
  std::vector<Line, hakozuna::allocator<Line>> lines(7);
  EXPECT_TRUE(IsAligned(lines.data(), alignof(Line)));
  std::vector<Page, hakozuna::allocator<Page>> pages(5);
  EXPECT_TRUE(IsAligned(pages.data(), alignof(Page)));
  EXPECT_EQ(1, hz_owns(pages.data()));
}

TEST(Allocator, ThrowsOnSizesThatCannotBeHad) {
  hakozuna::allocator<std::uint64_t> of_words;
  EXPECT_THROW(Opaque(of_words.allocate(Opaque(std::size_t{PTRDIFF_MAX} / 8))), std::bad_alloc);
  EXPECT_THROW(Opaque(of_words.allocate(Opaque(SIZE_MAX / 8 + 1))), std::bad_array_new_length);
  EXPECT_THROW(Opaque(of_words.allocate(Opaque(SIZE_MAX))), std::bad_array_new_length);
  hakozuna::allocator<Page> of_pages;
  EXPECT_THROW(Opaque(of_pages.allocate(Opaque(SIZE_MAX / 4096))), std::bad_alloc);
}

TEST(Allocator, IsStatelessAndAlwaysEqual) {
  using Traits = std::allocator_traits<hakozuna::allocator<int>>;
  static_assert(Traits::is_always_equal::value);
  static_assert(std::is_same_v<Traits::rebind_alloc<char>, hakozuna::allocator<char>>);
  EXPECT_TRUE(hakozuna::allocator<int>() == hakozuna::allocator<int>());
  EXPECT_TRUE(hakozuna::allocator<int>() == hakozuna::allocator<int>(hakozuna::allocator<char>()));
  hakozuna::allocator<int> one;
  hakozuna::allocator<int> other;
  other.deallocate(one.allocate(10), 10);
}

}  // namespace
