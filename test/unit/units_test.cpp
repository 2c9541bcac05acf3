// SPDX-License-Identifier: Apache-2.0
//
// Units and address arithmetic.
#include "base/units.hpp"

#include <gtest/gtest.h>

namespace hz_test {
namespace {

TEST(Units, OnePageSizeDividesTheNext) {
  EXPECT_EQ(0u, hz::kGranule % hz::kPage);
  EXPECT_EQ(16u, hz::kPagesPerGranule);
  EXPECT_EQ(std::size_t{1} << 30, hz::kGiB);
}

TEST(Units, AlignUpAgainstDivision) {
  for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (std::size_t n = 0; n < 3 * 4096; ++n)
      ASSERT_EQ((n + alignment - 1) / alignment * alignment, hz::align_up(n, alignment));
  }
}

TEST(Units, PowersOfTwo) {
  EXPECT_FALSE(hz::is_power_of_two(0));
  for (unsigned b = 0; b < 64; ++b) {
    const std::size_t n = std::size_t{1} << b;
    EXPECT_TRUE(hz::is_power_of_two(n)) << b;
    EXPECT_EQ(b, hz::log2_floor(n));
    if (b < 2) continue;
    EXPECT_FALSE(hz::is_power_of_two(n - 1)) << b;
    EXPECT_FALSE(hz::is_power_of_two(n + 1)) << b;
    EXPECT_EQ(b - 1, hz::log2_floor(n - 1));
    EXPECT_EQ(b, hz::log2_floor(n + 1));
  }
  EXPECT_EQ(63u, hz::log2_floor(SIZE_MAX));
}

TEST(Units, PointersAndBack) {
  int here = 0;
  EXPECT_EQ(&here, hz::pointer(hz::address(&here)));
}

}  // namespace
}  // namespace hz_test
