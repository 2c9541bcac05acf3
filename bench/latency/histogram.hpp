// SPDX-License-Identifier: Apache-2.0
//
// How often which time was seen: exact below 64 ticks, above in buckets of a 32nd of their octave, so that a
// percentile is at most 3 % too high. Adding costs a shift and an increment. All zero is an empty one; lives
// in harness memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace hz::bench {

class Histogram {
 public:
  void add(std::uint64_t ticks) {
    ++counts_[bucket(ticks)];
    longest_ = std::max(longest_, ticks);
  }

  Histogram& operator+=(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    longest_ = std::max(longest_, other.longest_);
    return *this;
  }

  std::uint64_t count() const {
    std::uint64_t all = 0;
    for (const std::uint64_t one : counts_) all += one;
    return all;
  }
  std::uint64_t longest() const { return longest_; }

  // What `parts` of a million took at most; 0 of an empty histogram.
  std::uint64_t percentile(std::uint64_t parts_of_a_million) const {
    const std::uint64_t wanted = (count() * parts_of_a_million + 999'999) / 1'000'000;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen >= wanted && seen != 0) return std::min(most_in(i), longest_);
    }
    return 0;
  }

  static constexpr std::size_t bucket(std::uint64_t ticks) {
    const unsigned octave = ticks < kExact ? 0 : static_cast<unsigned>(std::bit_width(ticks)) - 6;
    return octave * kParts + static_cast<std::size_t>(ticks >> octave);
  }
  // The largest number of ticks that falls into the bucket.
  static constexpr std::uint64_t most_in(std::size_t index) {
    if (index < kExact) return index;
    const std::size_t octave = index / kParts - 1;
    return ((std::uint64_t{index} - octave * kParts + 1) << octave) - 1;
  }

 private:
  static constexpr std::size_t kParts = 32;
  static constexpr std::size_t kExact = 2 * kParts;
  static constexpr std::size_t kBuckets = 60 * kParts;

  std::array<std::uint64_t, kBuckets> counts_;
  std::uint64_t longest_;
};

}  // namespace hz::bench
