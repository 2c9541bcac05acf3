// SPDX-License-Identifier: Apache-2.0
//
// Fixed rules: a bin starts with one page of slots, at most sixteen, and doubles each time that it runs empty or full,
// up to a bound in bytes and in slots; half of it moves at a time. (Slow start as in tcmalloc: a thread that hardly
// uses a class caches hardly anything of it.)
#pragma once

#include "box/policy/contract.hpp"

namespace hz {

template <class Line>
struct Frozen {
  static constexpr unsigned kFirstSlots = 16;

  static unsigned first_capacity(Bin bin) {
    const unsigned most = max_capacity(bin);
    return clamp(static_cast<unsigned>(kPage / bin_size(bin)), 1, most < kFirstSlots ? most : kFirstSlots);
  }
  static unsigned next_capacity(Bin bin, unsigned capacity) { return clamp(2 * capacity, 2, max_capacity(bin)); }
  static unsigned refill_batch(Bin, unsigned capacity) { return capacity < 2 ? 1 : capacity / 2; }
  static unsigned flush_batch(Bin, unsigned capacity) { return capacity < 2 ? 1 : capacity / 2; }

  static constexpr unsigned max_capacity(Bin bin) {
    return clamp(static_cast<unsigned>(Line::kBinBytes / bin_size(bin)), is_large(bin) ? 1 : 4, Line::kBinSlots);
  }

 private:
  static constexpr unsigned clamp(unsigned n, unsigned low, unsigned high) {
    return n < low ? (low < high ? low : high) : n > high ? high : n;
  }
};

}  // namespace hz
