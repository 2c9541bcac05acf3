// SPDX-License-Identifier: Apache-2.0
//
// Fixed rules: a bin starts with one page of slots, at most sixteen, or 32 lines if slots share lines of the
// cache: each of sixteen threads may be given one. It doubles each time that it runs empty or full, up to a
// bound in bytes and in slots; half of it moves at a time. (Slow start as in tcmalloc: who hardly uses a
// class caches little of it.) The budget of them all is that of cache_budget.hpp.
#pragma once

#include "box/policy/cache_budget.hpp"

namespace hz {

template <class Line>
struct Frozen : CacheBudget<Line> {
  static constexpr std::size_t kFirstSlots = 16;
  static constexpr std::size_t kFirstLines = 32;  // of slots that share one; 0: they start as all others

  static unsigned first_capacity(Bin bin) {
    const std::size_t in_lines = bin_size(bin) < kCacheLine ? kFirstLines * kCacheLine / bin_size(bin) : 0;
    return clamp(kPage / bin_size(bin), 1, clamp(in_lines, kFirstSlots, max_capacity(bin)));
  }
  static unsigned next_capacity(Bin bin, unsigned capacity) {
    return clamp(2UL * capacity, 2, max_capacity(bin));
  }
  static unsigned refill_batch(Bin, unsigned capacity) { return capacity < 2 ? 1 : capacity / 2; }
  static unsigned flush_batch(Bin, unsigned capacity) { return capacity < 2 ? 1 : capacity / 2; }

  static constexpr unsigned max_capacity(Bin bin) {
    return clamp(Line::kBinBytes / bin_size(bin), is_large(bin) ? 1 : 4, Line::kBinSlots);
  }

 private:
  static constexpr unsigned clamp(std::size_t n, std::size_t low, std::size_t high) {
    return static_cast<unsigned>(n < low ? (low < high ? low : high) : n > high ? high : n);
  }
};

}  // namespace hz
