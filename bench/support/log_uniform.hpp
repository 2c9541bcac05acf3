// SPDX-License-Identifier: Apache-2.0
//
// Log-uniform sizes: of any two octaves in the range each is as likely as the other, and so it goes on within
// them, so small blocks are many and large ones few, as in programs. Exact and without the mathematical
// library, which the program `lane` would otherwise need: first the octave, then a uniform size in it, kept
// with a probability that falls with the size. About four random numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/rng.hpp"

namespace hz::bench {

class LogUniform {
 public:
  // Sizes in [min, max); max / min is a power of two.
  constexpr LogUniform(std::uint32_t min, std::uint32_t max) : min_(min) {
    while ((min << octaves_) < max) ++octaves_;
  }

  std::size_t draw(Xorshift64Star& random) const {
    const std::uint32_t base = min_ << random.below(octaves_);
    for (;;) {
      const std::uint32_t size = base + random.below(base);
      if (random.below(size) < base) return size;  // with the probability base / size
    }
  }

 private:
  std::uint32_t min_;
  std::uint32_t octaves_ = 0;
};

}  // namespace hz::bench
