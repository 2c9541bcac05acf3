// SPDX-License-Identifier: Apache-2.0
//
// What a size really gets is what malloc then gives: of every size up to a MiB, around every class border
// above, and of sizes that no block can have. For the drop-in libraries by macOS's name, for the direct API
// by ours.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "support/heap_api.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"
#include "support/sanitizers.hpp"

namespace {

using hz_test::Opaque;
namespace api = hz_test::api;

std::size_t GoodSize(std::size_t n) {
#ifdef HZ_TEST_DIRECT
  return hz_good_size(Opaque(n));
#else
  static auto* const good = hz_test::FindFunction<std::size_t(std::size_t)>("malloc_good_size");
  return good == nullptr ? 0 : good(Opaque(n));
#endif
}

// What a block of that size has.
std::size_t Given(std::size_t n) {
  void* block = api::Malloc(n);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  return usable;
}

class GoodSizes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (hz_test::OnLibc()) GTEST_SKIP() << "the C library does not tell";
  }
};

TEST_F(GoodSizes, OfEverySizeUpToAMebibyte) {
  const std::size_t step = hz_test::kUnderTool ? 13 : 1;
  std::size_t wrong = 0;
  for (std::size_t size = 0; size <= (1u << 20) + 1; size += step) {
    const std::size_t good = GoodSize(size);
    if (good == Given(size) && good >= size) continue;
    if (++wrong < 10) ADD_FAILURE() << size << ": " << good << " was said, " << Given(size) << " given";
  }
  EXPECT_EQ(0u, wrong);
}

TEST_F(GoodSizes, AroundBordersAbove) {
  for (std::size_t size = 1u << 20; size < (64u << 20);) {
    const std::size_t good = GoodSize(size);
    ASSERT_GE(good, size);
    for (const std::size_t one : {good - 1, good, good + 1}) EXPECT_EQ(GoodSize(one), Given(one)) << one;
    EXPECT_EQ(good, GoodSize(good)) << "what is good stays good";
    EXPECT_GT(GoodSize(good + 1), good);
    size = good + good / 8 + 1;
  }
}

// malloc(malloc_good_size(n)) must not be a small block.
TEST_F(GoodSizes, OfWhatNoBlockCanHaveIsThatSize) {
  const std::size_t most = PTRDIFF_MAX;
  for (const std::size_t size : {most - 100, most, most + 1, most + (most / 2), SIZE_MAX - 1, SIZE_MAX}) {
    EXPECT_EQ(size, GoodSize(size));
    errno = 0;
    EXPECT_EQ(nullptr, api::Malloc(GoodSize(size)));
    EXPECT_EQ(ENOMEM, errno);
  }
}

}  // namespace
