// SPDX-License-Identifier: Apache-2.0
//
// The generators: known values, ranges, and the flaw of the LCG that explains published rows.
#include "support/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace hz::bench {
namespace {

TEST(Lcg32, KnownValues) {
  Lcg32 random(0);
  for (const std::uint32_t expected : {0x3C6EF35FU, 0x47502932U, 0xD1CCF6E9U, 0xAAF95334U}) {
    EXPECT_EQ(random.next(), expected);
  }
}

TEST(Xorshift64Star, KnownValue) { EXPECT_EQ(Xorshift64Star(1).next(), 5180492295206395165U); }

TEST(Xorshift64Star, ZeroSeedStillRuns) {
  Xorshift64Star random(0);
  EXPECT_NE(random.next(), 0U);
}

TEST(Splitmix64, KnownValue) { EXPECT_EQ(splitmix64(0), 0xE220A8397B1DCDAFU); }

template <class Random>
std::set<std::uint32_t> distinct(Random random, std::uint32_t bound, std::uint32_t draws) {
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < draws; ++i) seen.insert(random.below(bound));
  return seen;
}

// The trap: modulo a power of two, as many draws as there are slots visit every slot exactly once.
TEST(Lcg32, ModuloPowerOfTwoVisitsEverySlotInTurn) {
  for (const std::uint32_t bound : {16U, 512U, 4096U}) {
    for (const std::uint32_t seed : {0U, 0x12345678U, 0xFFFFFFFFU}) {
      EXPECT_EQ(distinct(Lcg32(seed), bound, bound).size(), bound) << "seed " << seed;
    }
  }
}

TEST(Lcg32, LowBitsRepeat) {
  Lcg32 random(0x12345678);
  std::vector<std::uint32_t> first;
  for (int i = 0; i < 16; ++i) first.push_back(random.below(16));
  for (int i = 0; i < 160; ++i) EXPECT_EQ(random.below(16), first[static_cast<std::size_t>(i) % 16]);
}

// What the trap does to a working set whose slots change state when drawn: the smallest and the largest
// number of full slots, after some rounds.
template <class Random>
std::pair<int, int> live_range(Random random, std::uint32_t slots) {
  std::vector<bool> full(slots);
  int live = 0;
  std::pair<int, int> range{static_cast<int>(slots), 0};
  for (std::uint32_t i = 0; i < 20 * slots; ++i) {
    const std::uint32_t slot = random.below(slots);
    live += full[slot] ? -1 : 1;
    full[slot] = !full[slot];
    if (i >= 10 * slots) range = {std::min(range.first, live), std::max(range.second, live)};
  }
  return range;
}

TEST(Lcg32, FillsAndDrainsAWorkingSetInsteadOfMixing) {
  EXPECT_EQ(live_range(Lcg32(0x12345678), 4096), (std::pair{0, 4096}));
}

TEST(Xorshift64Star, KeepsAWorkingSetHalfFull) {
  const auto [least, most] = live_range(Xorshift64Star(splitmix64(2)), 4096);
  EXPECT_GT(least, 2048 - 5 * 32);  // the number of full slots has a deviation of 32
  EXPECT_LT(most, 2048 + 5 * 32);
}

// Random draws leave about 1/e of the slots out.
TEST(Xorshift64Star, DoesNotVisitEverySlotInTurn) {
  const double share = static_cast<double>(distinct(Xorshift64Star(splitmix64(1)), 4096, 4096).size()) / 4096;
  EXPECT_GT(share, 0.60);
  EXPECT_LT(share, 0.66);
}

TEST(Xorshift64Star, BelowIsUniform) {
  constexpr std::uint32_t kBound = 400;
  constexpr int kDraws = 400'000;
  Xorshift64Star random(splitmix64(7));
  std::vector<int> count(kBound);
  for (int i = 0; i < kDraws; ++i) ++count.at(random.below(kBound));
  double chi_square = 0;
  for (const int n : count) chi_square += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_GT(chi_square, 250);  // 399 degrees of freedom: 399 +- 28, so both limits are five deviations away
  EXPECT_LT(chi_square, 550);
}

TEST(Xorshift64Star, BelowOneIsZero) {
  Xorshift64Star random(3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
}

}  // namespace
}  // namespace hz::bench
