// SPDX-License-Identifier: Apache-2.0
//
// Fixed rules, as in frozen.hpp, with a bound for one bin of each band of sizes: small slots, runs of up to a
// granule, and large ones. A preset of the line sets the bounds when the heap opens, so that one library
// serves programs which pass small objects, pages or buffers. Used by hz5. Asked at refill and flush; costs
// what frozen costs, and one load.
#pragma once

#include "base/plain_word.hpp"
#include "box/policy/frozen.hpp"

namespace hz {

template <class Line>
struct SizeBands : Frozen<Line> {
  static constexpr std::size_t kLastSmall = 3 * kKiB, kLastRun = kGranule;  // bytes: the bands' largest slots

  // Once, before any thread has a bin.
  static void set(const BandBytes& bytes) {
    bounds[0].set(bytes.small);
    bounds[1].set(bytes.run);
    bounds[2].set(bytes.large);
  }

  static unsigned first_capacity(Bin bin) { return within(bin, Frozen<Line>::first_capacity(bin)); }
  static unsigned next_capacity(Bin bin, unsigned capacity) {
    return within(bin, Frozen<Line>::next_capacity(bin, capacity));
  }

  static unsigned band(Bin bin) {
    return bin_size(bin) <= kLastSmall ? 0 : bin_size(bin) <= kLastRun ? 1 : 2;
  }

 private:
  static inline constinit OnceWord<std::size_t> bounds[3] = {
      OnceWord<std::size_t>(0), OnceWord<std::size_t>(0), OnceWord<std::size_t>(0)};

  // At least one slot: a class without a cache would cross at each call.
  static unsigned within(Bin bin, unsigned capacity) {
    const std::size_t bytes = bounds[band(bin)].get();
    if (bytes == 0 || capacity * bin_size(bin) <= bytes) return capacity;
    const std::size_t slots = bytes / bin_size(bin);
    return slots == 0 ? 1 : static_cast<unsigned>(slots);
  }
};

}  // namespace hz
