// SPDX-License-Identifier: Apache-2.0
//
// Frozen rules: what their header says beyond the contract of a policy.
#include "box/policy/frozen.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace hz_test {
namespace {

struct SmallLine {
  static constexpr std::size_t kBinBytes = 2 * hz::kMiB;
  static constexpr unsigned kBinSlots = 256;
  static constexpr std::size_t kThreadCacheBytes = 4 * hz::kMiB, kThreadCacheMost = 4 * hz::kMiB;
};
using Rules = hz::Frozen<SmallLine>;

TEST(Frozen, StartsWithOnePageOfSlotsAtMostSixteen) {
  for (hz::Bin bin = hz::scan_bin(64); bin < hz::kBins; ++bin) {
    const std::size_t page = hz::kPage / hz::bin_size(bin);
    EXPECT_EQ(std::clamp<std::size_t>(page, 1, 16), Rules::first_capacity(bin)) << hz::bin_size(bin);
  }
}

// The first batch is sixteen lines.
TEST(Frozen, SlotsThatShareALineStartWithTwiceSixteenLines) {
  for (hz::Bin bin = 1; hz::bin_size(bin) < 64; ++bin) {
    EXPECT_EQ(2 * 16 * 64 / hz::bin_size(bin), Rules::first_capacity(bin)) << hz::bin_size(bin);
  }
}

TEST(Frozen, DoublesUpToTheBounds) {
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    const std::size_t by_bytes =
        std::max<std::size_t>(SmallLine::kBinBytes / hz::bin_size(bin), hz::is_large(bin) ? 1 : 4);
    const std::size_t bound = std::min<std::size_t>(by_bytes, SmallLine::kBinSlots);
    unsigned capacity = Rules::first_capacity(bin);
    for (int step = 0; step < 12; ++step) {
      const unsigned next = Rules::next_capacity(bin, capacity);
      ASSERT_EQ(std::min<std::size_t>(2 * capacity, bound), next) << hz::bin_size(bin);
      capacity = next;
    }
    EXPECT_EQ(bound, capacity) << hz::bin_size(bin);
  }
}

TEST(Frozen, HalfOfABinMovesAtATimeAndMoreWhileItGoesOn) {
  for (unsigned capacity = 2; capacity < SmallLine::kBinSlots; ++capacity) {
    EXPECT_EQ(capacity / 2, Rules::refill_batch(1, capacity, false));
    EXPECT_EQ(capacity - capacity / 4, Rules::refill_batch(1, capacity, true));
    EXPECT_EQ(capacity / 2, Rules::flush_batch(1, capacity, false));
    EXPECT_EQ(capacity - capacity / 4, Rules::flush_batch(1, capacity, true));
    EXPECT_EQ(capacity / 2, Rules::flush_batch(hz::kLastBin, capacity, true)) << "large slots";
  }
}

TEST(Frozen, AMagazineOfTwoMovesAtATime) {
  EXPECT_EQ(SmallLine::kBinSlots / 2, Rules::refill_batch(1, SmallLine::kBinSlots, true));
}

TEST(Frozen, TwoCrossingsInARowShowADirection) {
  Rules::PerThread t;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(Rules::goes_on(t, 1, true)) << "to and fro";
    EXPECT_FALSE(Rules::goes_on(t, 1, false));
  }
  EXPECT_TRUE(Rules::goes_on(t, 1, false));
}

}  // namespace
}  // namespace hz_test
