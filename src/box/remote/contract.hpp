// SPDX-License-Identifier: Apache-2.0
//
// Role: what becomes of a slot freed by a thread that does not own it? It waits in the freeing thread's outbox
// (`defer`), leaves it in a parcel (a Sweep takes them out one by one), and waits again where its owner finds it
// (`send`, `collect`). Nothing is lost when the owner's thread is gone: its place stays, and others may collect from
// it. Between sweep and send the heap may decide that a parcel should not wait at all but return to its spans.
#pragma once

#include <concepts>

#include "base/size_classes.hpp"

namespace hz {

// Slots of one class on their way to one owner.
template <class Bundle>
struct Parcel {
  unsigned owner = 0;
  Bin bin = 0;
  Bundle slots;
};

template <class R>
concept RemoteContract = requires(typename R::Global& g, typename R::PerThread& thread,
                                  const typename R::PerThread& seen, const typename R::Global& known, unsigned owner,
                                  unsigned sender, Bin bin, void* slot, Parcel<typename R::Bundle>& parcel,
                                  typename R::Bundle& bundle, unsigned want, bool everything) {
  { R::kOwners } -> std::convertible_to<unsigned>;
  { R::kDirect } -> std::convertible_to<bool>;             // there is no outbox: deferred is sent, see DirectRemote
  { R::kEarlyBytes } -> std::convertible_to<std::size_t>;  // a thread in need of memory sends an outbox above that
  { R::kLent } -> std::convertible_to<bool>;               // what waits for one serves others before memory is mapped
  { R::admit(thread, owner, bin) } -> std::same_as<bool>;  // false: sweep first
  { R::defer(thread, owner, bin, slot) } -> std::same_as<void>;  // after admit
  // Everything, or only what made admit refuse; a parcel is whole until the next one.
  { typename R::Sweep(g, thread, sender, everything).next(parcel) } -> std::same_as<bool>;
  // That parcel, to where its owner finds it; what has no room stays in it.
  { typename R::Sweep(g, thread, sender, everything).send(parcel) } -> std::same_as<void>;
  { R::is_latest(seen, slot) } -> std::same_as<bool>;  // it was deferred last; lines with marks need not know
  { R::recall(thread, bin, want, bundle) } -> std::same_as<void>;  // out of the outbox, at most `want`; or none
  { R::outbox_bytes(seen) } -> std::same_as<std::size_t>;          // any thread; a recent value
  { R::metadata_bytes(known) } -> std::same_as<std::size_t>;  // beside Global
  // Memory of its own that it does not need goes back; so many owners there are.
  { R::shrink(g, owner) } -> std::same_as<void>;
  // Into an empty bundle: whole parcels of a list until there are `want`, of an array no more; any thread.
  { R::collect(g, owner, bin, want, bundle) } -> std::same_as<void>;
};

// What a remote box without an outbox answers, too. Its owners have lives, and what is freed to one that is gone is the
// orphans', which is an owner beyond the last one.
template <class R>
concept DirectRemote = requires(typename R::Global& g, typename R::PerThread& thread, unsigned owner, Bin bin,
                                std::uintptr_t at, std::size_t granules) {
  { R::kOrphans } -> std::convertible_to<unsigned>;
  { R::kTableBytesPerGranule } -> std::convertible_to<std::size_t>;
  { R::open(g, at, at, granules) } -> std::same_as<void>;          // arena's base, table, granules
  { R::join(thread, g) } -> std::same_as<void>;                    // once; before it, nothing is admitted
  { R::open_queues(g, owner) } -> std::same_as<void>;              // a thread carries the owner ...
  { R::close_queues(g, owner) } -> std::same_as<void>;             // ... none does: nothing new comes in
  { R::budget(g, thread, owner, bin) } -> std::same_as<unsigned>;  // slots to collect beyond what is wanted
  { R::help_due(thread, bin) } -> std::same_as<bool>;  // after defer: this thread is to collect for the owner ...
  { R::helped(thread) } -> std::same_as<void>;         // ... and did
  { R::next_bin(thread) } -> std::same_as<Bin>;        // a class to look at besides
  { R::something_waits(g) } -> std::same_as<bool>;     // since the last call
  { R::finish(g, thread) } -> std::same_as<void>;      // what a fork cut in two
};

}  // namespace hz
