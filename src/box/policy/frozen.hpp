// SPDX-License-Identifier: Apache-2.0
//
// Fixed rules: a bin starts with one page of slots, at most sixteen, or 32 lines if slots share lines of the
// cache: each of sixteen threads may be given one. It doubles each time that it runs empty or full, up to a
// bound in bytes and in slots. (Slow start as in tcmalloc: a thread that hardly uses a class caches little of
// it.) Half of it moves at a time, so that a thread which allocates and frees at random crosses seldom; three
// quarters while the only thread fills or drains the bin. The budget of all bins is that of cache_budget.hpp.
#pragma once

#include "box/policy/cache_budget.hpp"

namespace hz {

template <class Line>
struct Frozen : CacheBudget<Line> {
  static constexpr std::size_t kFirstSlots = 16;
  static constexpr std::size_t kFirstLines = 32;  // of slots that share one; 0: they start as all others

  struct PerThread : CacheBudget<Line>::PerThread {
    std::uint64_t refilled[(kBins + 63) / 64] = {};  // a bit a class: its last crossing was no flush
  };

  static unsigned first_capacity(Bin bin) {
    const std::size_t in_lines = bin_size(bin) < kCacheLine ? kFirstLines * kCacheLine / bin_size(bin) : 0;
    return clamp(kPage / bin_size(bin), 1, clamp(in_lines, kFirstSlots, max_capacity(bin)));
  }
  static unsigned next_capacity(Bin bin, unsigned capacity) {
    return clamp(2UL * capacity, 2, max_capacity(bin));
  }
  static bool goes_on(PerThread& t, Bin bin, bool comes) {
    std::uint64_t& word = t.refilled[bin / 64];
    const std::uint64_t bit = std::uint64_t{1} << bin % 64;
    const bool came = (word & bit) != 0;
    word = comes ? word | bit : word & ~bit;
    return came == comes;
  }
  static unsigned refill_batch(Bin bin, unsigned capacity, bool goes_on) {
    return batch(bin, capacity, goes_on);
  }
  static unsigned flush_batch(Bin bin, unsigned capacity, bool goes_on) {
    return batch(bin, capacity, goes_on);
  }

  static constexpr unsigned max_capacity(Bin bin) {
    return clamp(Line::kBinBytes / bin_size(bin), is_large(bin) ? 1 : 4, Line::kBinSlots);
  }

 private:
  // A bin of the most slots has two magazines, and parts with one. Few large slots are many bytes: a thread
  // that frees them is to cross often enough to see when it has freed the last ones.
  static unsigned batch(Bin bin, unsigned capacity, bool goes_on) {
    if (capacity < 2) return 1;
    const bool is_most = goes_on && !is_large(bin) && capacity < Line::kBinSlots;
    return is_most ? capacity - capacity / 4 : capacity / 2;
  }
  static constexpr unsigned clamp(std::size_t n, std::size_t low, std::size_t high) {
    return static_cast<unsigned>(n < low ? (low < high ? low : high) : n > high ? high : n);
  }
};

}  // namespace hz
