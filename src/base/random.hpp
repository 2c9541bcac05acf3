// SPDX-License-Identifier: Apache-2.0
//
// A small generator of numbers, five instructions each. A reader of some of them can compute the rest. It
// draws samples, and the order of one batch of slots, with a new seed for each batch (os::random_word()).
// (Source of the idea: Wang Yi, wyhash: the two halves of a product, folded.)
#pragma once

#include <cstdint>

#include "base/compiler.hpp"

namespace hz {

class Random {
 public:
  constexpr Random() = default;
  constexpr explicit Random(std::uint64_t seed) : state_(seed) {}

  bool is_seeded() const { return state_ != 0; }

  HZ_INLINE std::uint64_t next() {
    state_ += kStep;
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{state_} * (state_ ^ kOther);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  // A number below `n`, which is less than 2^32: without a division.
  HZ_INLINE unsigned below(unsigned n) { return static_cast<unsigned>((next() >> 32) * n >> 32); }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15, kOther = 0xD6E8FEB86659FD93;

  std::uint64_t state_ = 0;
};

}  // namespace hz
