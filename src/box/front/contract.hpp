// SPDX-License-Identifier: Apache-2.0
//
// Role: where are this thread's free slots? `pop`, `admit` and `put` are the hot path and touch this thread's state
// alone. An empty bin gives nothing and a full one admits nothing; then the boundary fills or empties it in one batch.
//
// The last functions take an idle thread's slots away (heap/revoke.hpp). Their caller makes sure that the owner is
// inside of at most one hot operation, starts no other, and will reconcile before it goes on.
#pragma once

#include <concepts>

#include "base/free_list.hpp"
#include "base/size_classes.hpp"

namespace hz {

template <class F>
concept FrontContract = requires(typename F::PerThread& thread, const typename F::PerThread& seen, Bin bin, void* slot,
                                 const Chain& chain, unsigned n, FreeSlot* list) {
  { F::pop(thread, bin) } -> std::same_as<void*>;   // hot; nullptr when the bin is empty
  { F::admit(thread, bin) } -> std::same_as<bool>;  // hot; true: a put must follow, false: a turn_away
  { F::turn_away(thread, bin) } -> std::same_as<void>;
  { F::put(thread, bin, slot) } -> std::same_as<void>;    // hot; after admit
  { F::fill(thread, bin, chain) } -> std::same_as<void>;  // add a batch, however long
  { F::drain(thread, bin, n) } -> std::same_as<Chain>;    // remove at most n
  { F::count(seen, bin) } -> std::same_as<unsigned>;      // any thread; a recent value
  { F::capacity(seen, bin) } -> std::same_as<unsigned>;
  { F::check(seen, bin) } -> std::same_as<void>;              // traps in debug builds unless the invariants hold
  { F::set_capacity(thread, bin, n) } -> std::same_as<void>;  // may be less than what is in the bin

  { F::signature(seen) } -> std::same_as<std::uint64_t>;    // any thread; another one if the owner was here meanwhile
  { F::seize(thread, bin) } -> std::same_as<FreeSlot*>;     // a list; after a barrier, exactly one of these holds:
  { F::accounts_for(seen, bin, n) } -> std::same_as<bool>;  // the owner will not touch that list of n slots, or
  { F::dispute(thread, bin, list) } -> std::same_as<bool>;  // it may have: keep it for later; false: no room
  { F::reconcile(thread) } -> std::same_as<void>;  // by the owner, or when a fork cut it off: all counts true again
};

}  // namespace hz
