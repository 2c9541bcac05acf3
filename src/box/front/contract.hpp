// SPDX-License-Identifier: Apache-2.0
//
// Role: where are this thread's free slots? `pop`, `admit` and `put` are the hot path and touch this thread's state
// alone. An empty bin gives nothing and a full one admits nothing; then the boundary fills or empties it in one batch.
#pragma once

#include <concepts>

#include "base/free_list.hpp"
#include "base/size_classes.hpp"

namespace hz {

template <class F>
concept FrontContract = requires(typename F::PerThread& thread, const typename F::PerThread& seen, Bin bin, void* slot,
                                 const Chain& chain, unsigned n) {
  { F::pop(thread, bin) } -> std::same_as<void*>;   // hot; nullptr when the bin is empty
  { F::admit(thread, bin) } -> std::same_as<bool>;  // hot; true: a put must follow, false: a turn_away
  { F::turn_away(thread, bin) } -> std::same_as<void>;
  { F::put(thread, bin, slot) } -> std::same_as<void>;    // hot; after admit
  { F::fill(thread, bin, chain) } -> std::same_as<void>;  // add a batch, however long
  { F::drain(thread, bin, n) } -> std::same_as<Chain>;    // remove at most n
  { F::count(seen, bin) } -> std::same_as<unsigned>;      // any thread; a recent value
  { F::capacity(seen, bin) } -> std::same_as<unsigned>;
  { F::recount(thread) } -> std::same_as<void>;               // after a fork cut a hot path in two
  { F::check(seen, bin) } -> std::same_as<void>;              // traps in debug builds unless the invariants hold
  { F::set_capacity(thread, bin, n) } -> std::same_as<void>;  // may be less than what is in the bin
};

}  // namespace hz
