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

// What a policy may do with what it sees: nothing, note it for a profile, or act on it.
enum class Learning : std::uint8_t { kFrozen, kObserve, kLearn };

template <class P>
concept PolicyContract = requires(Bin bin, unsigned capacity) {
  { P::first_capacity(bin) } -> std::same_as<unsigned>;           // of a bin when it is first used
  { P::max_capacity(bin) } -> std::same_as<unsigned>;             // never more
  { P::next_capacity(bin, capacity) } -> std::same_as<unsigned>;  // after it ran empty or full
  { P::refill_batch(bin, capacity) } -> std::same_as<unsigned>;   // at least 1
  { P::flush_batch(bin, capacity) } -> std::same_as<unsigned>;
};

// A policy that may want to be told what happens at the boundary, by any thread; asked first whether it does.
template <class P>
concept WatchingPolicy = PolicyContract<P> && requires(Bin bin, std::size_t size, unsigned slots) {
  { P::watches() } -> std::same_as<bool>;
  { P::refilled(size, slots) } -> std::same_as<void>;  // so many, when one for that size was missing
  { P::span_acquired(bin) } -> std::same_as<void>;     // with no lock of the pool's or the source's held
  { P::span_retired(bin) } -> std::same_as<void>;      // likewise
};

}  // namespace hz
