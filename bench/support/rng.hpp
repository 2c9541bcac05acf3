// SPDX-License-Identifier: Apache-2.0
//
// The random numbers of the workloads. Used by every lane: a few instructions per number and no shared state,
// so that the generator stays small beside the allocator that is measured.
#pragma once

#include <cstdint>

namespace hz::bench {

// Makes well-mixed seeds out of neighbouring numbers (thread indices).
constexpr std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// The generator of `fair` runs.
class Xorshift64Star {
 public:
  // Zero is the one state that xorshift never leaves, so it is replaced.
  explicit constexpr Xorshift64Star(std::uint64_t state) : state_(state != 0 ? state : 0x9E3779B97F4A7C15U) {}

  constexpr std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DU;
  }

  // Uniform in [0, bound) from the high bits, by multiplication: a division would cost as much as a small
  // malloc.
  constexpr std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

// The generator of `upstream` runs, taken modulo directly. Its low k bits repeat every 2^k numbers: modulo a
// power of two it visits every slot in turn instead of at random. Kept because the published numbers were
// made with it.
class Lcg32 {
 public:
  explicit constexpr Lcg32(std::uint32_t state) : state_(state) {}

  constexpr std::uint32_t next() {
    state_ = state_ * 1664525U + 1013904223U;
    return state_;
  }

  constexpr std::uint32_t below(std::uint32_t bound) { return next() % bound; }

 private:
  std::uint32_t state_;
};

}  // namespace hz::bench
