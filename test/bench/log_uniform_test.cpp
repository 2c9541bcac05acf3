// SPDX-License-Identifier: Apache-2.0
//
// Log-uniform sizes: the same share in every octave and in both halves of each, halves on the logarithmic
// scale.
#include "support/log_uniform.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace hz::bench {
namespace {

TEST(LogUniform, EveryHalfOctaveIsAsLikelyAsAnother) {
  struct Range {
    std::uint32_t min, max;
    int octaves;
  };
  for (const Range range :
       {Range{8, 1'024, 7}, Range{131'072, 1'048'576, 3}, Range{1'048'576, 67'108'864, 6}}) {
    SCOPED_TRACE(range.min);
    const LogUniform sizes(range.min, range.max);
    Xorshift64Star random(splitmix64(1));
    std::vector<int> halves(static_cast<std::size_t>(range.octaves) * 2);
    const int draws = 20'000 * range.octaves;
    for (int i = 0; i < draws; ++i) {
      const std::size_t size = sizes.draw(random);
      ASSERT_GE(size, range.min);
      ASSERT_LT(size, range.max);
      ++halves.at(static_cast<std::size_t>(2 * std::log2(static_cast<double>(size) / range.min)));
    }
    for (std::size_t i = 0; i < halves.size(); ++i) {
      if (range.min == 8 && i < 4) continue;  // few whole numbers in a half; the octaves are looked at below
      EXPECT_NEAR(halves[i], 10'000, 550) << "half octave " << i;
    }
    for (std::size_t i = 0; i < halves.size(); i += 2) EXPECT_NEAR(halves[i] + halves[i + 1], 20'000, 750);
  }
}

TEST(LogUniform, WithinAnOctaveASizeIsAsLikelyAsItIsSmall) {
  const LogUniform sizes(8, 16);
  Xorshift64Star random(splitmix64(2));
  std::vector<int> count(16);
  for (int i = 0; i < 80'000; ++i) ++count.at(sizes.draw(random));
  double weights = 0;
  for (int size = 8; size < 16; ++size) weights += 1.0 / size;
  for (int size = 8; size < 16; ++size) {
    EXPECT_NEAR(count[static_cast<std::size_t>(size)], 80'000 / size / weights, 550) << size;
  }
}

}  // namespace
}  // namespace hz::bench
