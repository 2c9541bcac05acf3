// SPDX-License-Identifier: Apache-2.0
//
// Role: where are this thread's free slots? `pop`, `admit` and `put` are the hot path and touch this thread's
// state alone. An empty bin gives nothing and a full one admits nothing; then the boundary fills or empties
// it in one batch.
//
// The last functions take an idle thread's slots away (heap/process/revoke.hpp). Their caller makes sure that
// the owner is inside of at most one hot operation, starts no other, and will reconcile before it goes on.
#pragma once

#include <concepts>

#include "base/size_classes.hpp"

namespace hz {

template <class F>
concept FrontContract = requires(typename F::PerThread& thread, const typename F::PerThread& seen, Bin bin,
                                 void* slot, const typename F::Bundle& bundle, unsigned n, bool flag,
                                 typename F::List list, typename F::Store& store) {
  { F::kInBand } -> std::convertible_to<bool>;  // it writes into free slots
  {
    F::kAnyBin
    } -> std::convertible_to<bool>;  // bin 0, kHugeBin, kHeapBin may be asked, too, and admit nothing
  { F::most(bin) } -> std::same_as<unsigned>;             // that a bin can hold at all
  { F::join(thread, store) } -> std::same_as<void>;       // once; before it, everything is refused
  { F::pop(thread, bin) } -> std::same_as<void*>;         // hot; nullptr when the bin is empty
  { F::admit(thread, bin, slot) } -> std::same_as<bool>;  // hot; true: a put must follow, false: a turn_away
  { F::turn_away(thread, bin) } -> std::same_as<void>;
  { F::put(thread, bin, slot) } -> std::same_as<void>;      // hot; after admit
  { F::is_latest(seen, bin, slot) } -> std::same_as<bool>;  // it was the last that came
  // To an empty bin; to one that is in-band, at any time.
  // Nothing yet, with room for n <= its capacity
  { F::space(thread, bin, n) } -> std::same_as<typename F::Bundle>;
  { F::fill(thread, bin, bundle) } -> std::same_as<void>;  // what has been put there is the bin's
  // At most n leave; none only if there are none. An array still lies in the bin, until the caller has copied
  // it:
  { F::drain(thread, bin, n) } -> std::same_as<typename F::Bundle>;
  { F::drained(thread, bin, n) } -> std::same_as<void>;  // so many did
  { F::count(seen, bin) } -> std::same_as<unsigned>;     // any thread; a recent value
  { F::capacity(seen, bin) } -> std::same_as<unsigned>;
  // Traps in debug builds unless the invariants hold. `flag`: a fork may have cut off the owner, see cut_off
  { F::check(seen, bin, flag) } -> std::same_as<void>;
  { F::admissible(n) } -> std::same_as<unsigned>;  // of n slots, as many as a capacity can be
  // May be less than what is in the bin; may become less than n.
  { F::set_capacity(thread, bin, n) } -> std::same_as<void>;
  // It has no slots: all capacities are 0, its memory goes back
  { F::leave(thread) } -> std::same_as<void>;
  // Hardly ever the same when something came or went
  { F::fingerprint(seen, bin) } -> std::same_as<std::uint16_t>;

  // Any thread; another one if the owner was here meanwhile
  { F::signature(seen) } -> std::same_as<std::uint64_t>;
  // Null: none; after a barrier, exactly one holds:
  { F::detach(thread, bin) } -> std::same_as<typename F::List>;
  // The owner will not touch that list of n slots, or
  { F::accounts_for(seen, bin, n) } -> std::same_as<bool>;
  // It may have: keep it for later; false: no room
  { F::keep_unresolved(thread, bin, list) } -> std::same_as<bool>;
  // In the child of a fork that a signal handler of the owner may have made, between two steps of a pop or a
  // put: a bin has no more room than it says, even if the second step never comes. If it comes, the bin may
  // lose one place of its room.
  { F::cut_off(thread) } -> std::same_as<void>;
  // By the owner, or when a fork cut it off: all counts true again
  { F::reconcile(thread) } -> std::same_as<void>;
};

// What a front answers, too, whose bins are magazines that change hands whole.
template <class F>
concept FrontOfMagazines = requires(typename F::PerThread& thread, const typename F::PerThread& seen, Bin bin,
                                    typename F::Magazine* magazine) {
  // An empty one for the full one beside it, or the other way round
  { F::swap(thread, bin) } -> std::same_as<bool>;
  // It is at its full capacity, and one of them empty or full
  { F::exchanges(seen, bin) } -> std::same_as<bool>;
  // Comes in place of the one at hand, which stays beside it; the one that was there leaves, or none.
  { F::exchange(thread, bin, magazine) } -> std::same_as<typename F::Magazine*>;
  { F::take_spare(thread, bin) } -> std::same_as<typename F::Magazine*>;  // ... alone
};

// What a front answers, too, that lets slots wait before it makes them a bin's.
template <class F>
concept FrontOfQuarantine = requires(typename F::PerThread& thread, const typename F::PerThread& seen,
                                     Bin bin, void** out, unsigned n) {
  { F::places(bin) } -> std::same_as<unsigned>;         // that may wait
  { F::waiting(seen, bin) } -> std::same_as<unsigned>;  // that do; any thread; a recent value
  // At most n leave, by the owner, or of a detached bin that accounts for its list
  { F::take_waiting(thread, bin, out, n) } -> std::same_as<unsigned>;
};

}  // namespace hz
