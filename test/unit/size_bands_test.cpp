// SPDX-License-Identifier: Apache-2.0
//
// Bounds of bands: what their header says beyond the contract of a policy.
#include "box/policy/size_bands.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace hz_test {
namespace {

struct BandedLine {
  static constexpr std::size_t kBinBytes = 2 * hz::kMiB;
  static constexpr unsigned kBinSlots = 122;
};
using Rules = hz::SizeBands<BandedLine>;
using Free = hz::Frozen<BandedLine>;

unsigned Grown(hz::Bin bin) {
  unsigned capacity = Rules::first_capacity(bin);
  for (int step = 0; step < 16; ++step) capacity = Rules::next_capacity(bin, capacity);
  return capacity;
}

TEST(SizeBands, AreSmallSlotsRunsAndLargeOnes) {
  EXPECT_EQ(0u, Rules::band(1));
  EXPECT_EQ(0u, Rules::band(hz::scan_bin(3 * hz::kKiB)));
  EXPECT_EQ(1u, Rules::band(hz::scan_bin(3 * hz::kKiB + 1)));
  EXPECT_EQ(1u, Rules::band(hz::scan_bin(64 * hz::kKiB)));
  EXPECT_EQ(2u, Rules::band(hz::scan_bin(64 * hz::kKiB + 1)));
  EXPECT_EQ(2u, Rules::band(hz::kLastBin));
}

TEST(SizeBands, WithoutABoundTheyAreFrozen) {
  Rules::set({});
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) EXPECT_EQ(Free::max_capacity(bin), Grown(bin));
}

TEST(SizeBands, EachBandHasItsOwn) {
  Rules::set({.small = 4 * hz::kKiB, .run = 128 * hz::kKiB, .large = 512 * hz::kKiB});
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    const std::size_t bounds[] = {4 * hz::kKiB, 128 * hz::kKiB, 512 * hz::kKiB};
    const std::size_t size = hz::bin_size(bin), bound = bounds[Rules::band(bin)];
    EXPECT_LE(Rules::first_capacity(bin) * size, std::max(bound, size)) << size;
    EXPECT_LE(Grown(bin) * size, std::max(bound, size)) << size;
    EXPECT_GE(Grown(bin), 1u) << "a class without a cache would cross at each call";
  }
  EXPECT_EQ(64u, Grown(hz::scan_bin(64)));
  EXPECT_EQ(2u, Grown(hz::scan_bin(64 * hz::kKiB)));
  EXPECT_EQ(1u, Grown(hz::scan_bin(hz::kMiB)));
  Rules::set({});
}

}  // namespace
}  // namespace hz_test
