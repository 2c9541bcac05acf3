// SPDX-License-Identifier: Apache-2.0
//
// Sizes of which small ones are the more likely, as in programs: first an octave, every one as likely, then a size
// uniform within it, so a size twice as large is half as likely. Two random numbers. Used by alloc_test and xmalloc_test.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "lane/lane.hpp"
#include "support/rng.hpp"

namespace hz::bench {

class Octaves {
 public:
  // `min` is a power of two plus 1, `max` a power of two: octaves are (2^k, 2^(k+1)].
  constexpr Octaves(std::uint32_t min, std::uint32_t max)
      : lowest_(std::bit_width(min - 1) - 1), count_(static_cast<std::uint32_t>(std::bit_width(max) - 1 - lowest_)) {
    if (!std::has_single_bit(min - 1) || !std::has_single_bit(max) || min > max) fail("sizes are not whole octaves");
  }

  std::size_t draw(Xorshift64Star& random) const {
    const std::uint32_t base = 1U << (static_cast<std::uint32_t>(lowest_) + random.below(count_));
    return base + 1 + random.below(base);
  }

 private:
  int lowest_;
  std::uint32_t count_;
};

}  // namespace hz::bench
