// SPDX-License-Identifier: Apache-2.0
//
// Role: keeps free slots that no thread caches, and brings a slot to its owner after a remote free. Threads
// give slots that they cannot keep and take slots that they need. In a line with owners, a thread defers a
// remote slot, and its owner collects it. The box chooses the owners and the means (rings, inboxes, bitmaps,
// stacks of magazines). Nothing is lost when an owner's thread ends: its place stays, and any thread may
// collect there.
#pragma once

#include <concepts>

#include "base/size_classes.hpp"

namespace hz {

// Slots of one class on their way to one owner.
template <class Bundle>
struct Parcel {
  unsigned owner = 0;
  Bin bin = 0;
  Bundle slots = {};
};

// Of what was deferred for an owner and waits for no bin: at most so many slots of a class.
struct Backlog {
  unsigned owner = 0;
  Bin bin = 0;
  unsigned most = 0;
};

// Whom a box may ask: owners below `end()` ever had a thread.
struct SomeOwners {
  unsigned end();
  unsigned threads(unsigned owner);
};

template <class E>
concept ExchangeContract = requires(typename E::Global& g, typename E::PerThread& thread,
                                    const typename E::PerThread& seen, const typename E::Global& known,
                                    unsigned owner, Bin bin, void* slot, typename E::Bundle& bundle,
                                    unsigned want, bool yes, Parcel<typename E::Bundle>& parcel,
                                    Backlog& backlog, SomeOwners& owners) {
  // The slots that wait for any thread of an owner, or for all owners together if they are not distinguished.
  { E::kOwners } -> std::convertible_to<unsigned>;
  { E::kByOwner } -> std::convertible_to<bool>;              // what an owner's threads give, only these take
  { E::holds(bin) } -> std::same_as<bool>;                   // may slots of the class wait here?
  { E::give(g, owner, bin, bundle) } -> std::same_as<void>;  // what it has no room for stays in the bundle
  // Into an empty bundle: whole batches of a list until there are `want`, of an array no more; any thread.
  { E::take(g, owner, bin, want, bundle) } -> std::same_as<void>;
  // Does anything wait for the owner, or was deferred? a hint
  { E::waits(g, owner, bin) } -> std::same_as<bool>;
  // What waits for owners without a thread. If `yes`, memory is about to be mapped: then also what waits for
  // other owners, and for threads of other processors. How many of these slots had been deferred.
  { E::steal(g, owners, bin, want, yes, bundle) } -> std::same_as<unsigned>;
  { E::metadata_bytes(known) } -> std::same_as<std::size_t>;  // beside Global
  { E::shrink(g, owner) } -> std::same_as<void>;              // its memory that it does not need goes back

  // A stranger's slot. `join` comes first, and once; until then nothing is admitted.
  { E::join(thread, g) } -> std::same_as<void>;
  { E::admit(thread, owner, bin) } -> std::same_as<bool>;  // hot; false: drain first
  // Hot, after admit. How many bytes the owner can have from now on; 0: they lie in this thread's outbox.
  { E::defer(thread, owner, bin, slot) } -> std::same_as<std::size_t>;
  { E::is_latest(seen, slot) } -> std::same_as<bool>;  // it was deferred last; lines with marks need not know
  { E::moves_span(bin) } -> std::same_as<bool>;  // nothing is deferred: a free takes the slot and its span

  // The outbox. A drain takes everything out, or only what made admit refuse; a parcel is whole until the
  // next one.
  { E::outbox_bytes(seen) } -> std::same_as<std::size_t>;  // any thread; a recent value
  { E::outbox_due(seen) } -> std::same_as<bool>;           // it is worth a drain before memory is mapped
  { E::recall(thread, bin, want, bundle) } -> std::same_as<void>;  // out of it, at most `want`; or none
  { typename E::Drain(g, thread, owner, yes).next(parcel) } -> std::same_as<bool>;
  // Sends that parcel to its owner's place, or, with kAnybodys, to one for any thread. Slots without room
  // stay in it.
  { E::kAnybodys } -> std::convertible_to<bool>;
  { typename E::Drain(g, thread, owner, yes).send(parcel) } -> std::same_as<void>;

  // Collects slots that were deferred for the owner into an empty bundle, as `take`. Returns how many of them
  // came in parcels. The heap has no record of the others, which exist with kUntold, and checks each.
  { E::kUntold } -> std::convertible_to<bool>;
  { E::collect(g, owner, bin, want, bundle) } -> std::same_as<unsigned>;
  // One more to collect for: whom an owner leaves behind, if any
  { E::kOrphans } -> std::convertible_to<unsigned>;
  // After a refill of the class, by the owner: the n-th of what is to be passed on now, or nothing of it;
  // false: that was all.
  { E::backlog(g, thread, owner, bin, want, backlog) } -> std::same_as<bool>;
  // After defer: this thread is to collect for the owner ...
  { E::help_due(thread, bin) } -> std::same_as<bool>;
  { E::helped(thread) } -> std::same_as<void>;      // ... and did
  { E::something_waits(g) } -> std::same_as<bool>;  // slots that came without a parcel since the last call

  // Owners' lives, under the lock of the list of threads; and what a fork, or a child without one, cut in
  // two.
  { E::carried(g, owner) } -> std::same_as<void>;  // by its first thread ...
  { E::left(g, owner) } -> std::same_as<void>;     // ... and by no thread any more
  { E::finish(g, thread) } -> std::same_as<void>;
  { E::make_whole(g, owner) } -> std::same_as<void>;
};

// What an exchange answers, too, that keeps magazines: they come and leave whole.
template <class E>
concept ExchangeOfMagazines = requires(typename E::Global& g, Bin bin, typename E::Magazine* magazine) {
  { E::give(g, bin, magazine) } -> std::same_as<bool>;         // false: it has no room
  { E::take(g, bin) } -> std::same_as<typename E::Magazine*>;  // nullptr: none waits for this processor
  { E::take_empty() } -> std::same_as<typename E::Magazine*>;  // its count is 0; nullptr: no memory
  { E::give_empty(magazine) } -> std::same_as<void>;           // or none
};

// The answers of a box that tells no owners apart, and so defers nothing. A box with owners begins with
// these, and says what is otherwise.
struct WithoutOwners {
  static constexpr unsigned kOwners = 1;
  static constexpr bool kByOwner = false;
  struct PerThread {};
  static constexpr auto words() { return layout::Words<0>{}; }

  static constexpr bool holds(Bin) { return true; }
  static constexpr unsigned steal(auto&, auto&, Bin, unsigned /*want*/, bool /*anybodys*/, auto&) {
    return 0;
  }

  static void join(auto&, auto&) {}
  static constexpr bool admit(auto&, unsigned /*owner*/, Bin) { return false; }
  static constexpr std::size_t defer(auto&, unsigned /*owner*/, Bin, void* /*slot*/) { return 0; }
  static constexpr bool is_latest(const auto&, const void* /*slot*/) { return false; }
  static constexpr bool moves_span(Bin) { return false; }

  static constexpr std::size_t outbox_bytes(const auto&) { return 0; }
  static constexpr bool outbox_due(const auto&) { return true; }
  static constexpr bool kAnybodys = false;
  static void recall(auto&, Bin, unsigned /*want*/, auto&) {}
  struct Drain {
    Drain(auto&, auto&, unsigned /*sender*/, bool /*everything*/) {}
    static bool next(auto&) { return false; }
    static void send(auto&) {}
  };

  static constexpr bool kUntold = false;
  static constexpr unsigned collect(auto&, unsigned /*owner*/, Bin, unsigned /*want*/, auto&) { return 0; }
  static constexpr unsigned kOrphans = 0;  // what waits for an owner stays where it is
  static constexpr bool backlog(auto&, auto&, unsigned /*owner*/, Bin, unsigned /*n*/, Backlog&) {
    return false;
  }
  static constexpr bool help_due(auto&, Bin) { return false; }
  static void helped(auto&) {}
  static constexpr bool something_waits(auto&) { return false; }

  static void carried(auto&, unsigned /*owner*/) {}
  static void left(auto&, unsigned /*owner*/) {}
  static void finish(auto&, auto&) {}
  static void make_whole(auto&, unsigned /*owners*/) {}
};

}  // namespace hz
