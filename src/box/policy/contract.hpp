// SPDX-License-Identifier: Apache-2.0
//
// Role: which capacities and batch sizes do the slow paths use, and which size deserves a class of its own?
// Asked and told at refill and flush, never by the hot path. A box is Learned around one of the rules
// (frozen.hpp, size_bands.hpp) for the former.
#pragma once

#include <concepts>

#include "box/policy/size_watch.hpp"

namespace hz {

// Bytes that one bin may hold, by its band of sizes: see size_bands.hpp; 0: as the line says. A policy that
// takes bounds has `set(const BandBytes&)`, which is called once, before any thread has a bin.
struct BandBytes {
  std::size_t small = 0, run = 0, large = 0;
};

// What a policy may do with what it sees: nothing, note it for a profile, or act on it.
enum class Learning : std::uint8_t { kFrozen, kObserve, kLearn };

template <class P>
concept PolicyContract = requires(Bin bin, unsigned capacity, std::size_t size, Learning learning) {
  { P::first_capacity(bin) } -> std::same_as<unsigned>;           // of a bin when it is first used
  { P::max_capacity(bin) } -> std::same_as<unsigned>;             // never more
  { P::next_capacity(bin, capacity) } -> std::same_as<unsigned>;  // after it ran empty or full
  { P::refill_batch(bin, capacity) } -> std::same_as<unsigned>;   // at least 1
  { P::flush_batch(bin, capacity) } -> std::same_as<unsigned>;
  // What happens at the boundary is told, by any thread, while the policy watches.
  { P::set_learning(learning) } -> std::same_as<void>;  // once, when the heap opens
  { P::watches() } -> std::same_as<bool>;
  { P::refilled(size, capacity) } -> std::same_as<void>;  // so many slots, when one for that size was missing
  { P::span_acquired(bin) } -> std::same_as<void>;        // with no lock of the pool's or the source's held
  { P::span_retired(bin) } -> std::same_as<void>;         // likewise
  { P::watched() } -> std::same_as<const SizeWatch&>;     // for a profile
};

}  // namespace hz
