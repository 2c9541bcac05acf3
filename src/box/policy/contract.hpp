// SPDX-License-Identifier: Apache-2.0
//
// Role: which capacities and batch sizes do the slow paths use? Asked at refill and flush, never by the hot
// path.
#pragma once

#include <concepts>

#include "base/size_classes.hpp"

namespace hz {

// Bytes that one bin may hold, by its band of sizes: see size_bands.hpp; 0: as the line says. A policy that
// takes bounds has `set(const BandBytes&)`, which is called once, before any thread has a bin.
struct BandBytes {
  std::size_t small = 0, run = 0, large = 0;
};

template <class P>
concept PolicyContract = requires(Bin bin, unsigned capacity) {
  { P::first_capacity(bin) } -> std::same_as<unsigned>;           // of a bin when it is first used
  { P::max_capacity(bin) } -> std::same_as<unsigned>;             // never more
  { P::next_capacity(bin, capacity) } -> std::same_as<unsigned>;  // after it ran empty or full
  { P::refill_batch(bin, capacity) } -> std::same_as<unsigned>;   // at least 1
  { P::flush_batch(bin, capacity) } -> std::same_as<unsigned>;
};

}  // namespace hz
