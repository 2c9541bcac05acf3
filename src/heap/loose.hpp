// SPDX-License-Identifier: Apache-2.0
//
// Slots that wait loose between threads: for their owner (Remote), or for any thread of it (Central). Retention says
// how many bytes may; what is more goes home to its spans. Called from the boundary (boundary.hpp) with the thread's
// lock held.
#pragma once

#include "heap/home.hpp"

namespace hz {

template <class Line>
struct Loose {
  using S = State<Line>;
  using H = Home<Line>;
  using Thread = typename S::Thread;
  using Bundle = typename Line::Front::Bundle;
  using Remote = typename Line::Remote;
  using Route = typename Line::Route;
  using Central = typename Line::Central;
  using Retain = typename Line::Retain;
  using Observe = typename Line::Observe;
  using Guard = typename Line::Guard;

  static constexpr unsigned kAll = ~0U;
  static constexpr unsigned kBatch = kPage / kMinAlign;  // a page of the smallest slots
  static constexpr unsigned kLooks = 2 * kBins;          // lists that one crossing relieves
  static constexpr unsigned kUnproved = 16;              // batches of which one is proved
  static constexpr unsigned kOwnerLooks = 64;            // owners without a thread that one crossing asks

  static unsigned lists() { return S::global.owners.end() * kBins; }

  // Into an empty bundle; of an array, at most `want`.
  static void take(Thread& t, unsigned owner, Bin bin, unsigned want, Bundle& out) {
    collect(t, owner, bin, want, out);
    if (out.count == 0) take_waiting(t, owner, bin, want, out);
  }
  // What strangers sent.
  static void collect(Thread& t, unsigned owner, Bin bin, unsigned want, Bundle& out) {
    Remote::collect(S::shelves.remote, owner, bin, want, out);
    if (out.count == 0) return;
    Observe::count(t.observe, Event::kRemoteCollected, out.count);
    if constexpr (Remote::kDirect) {
      arrived(t, bin, out);  // was never counted as loose
    } else {
      Retain::loose_taken(t.retain, out.count * bin_size(bin));
    }
  }
  // What threads of the same owner left.
  static void take_waiting(Thread& t, unsigned owner, Bin bin, unsigned want, Bundle& out) {
    if (!may_wait(bin)) return;
    Central::take(S::shelves.central, owner, bin, want, out);
    if (out.count != 0) Retain::loose_taken(t.retain, out.count * bin_size(bin));
    own(t, bin, out);
  }

  // The same by the magazine; nullptr if none waits.
  static auto* take_magazine(Thread& t, Bin bin) {
    auto* full = may_wait(bin) ? Central::take(S::shelves.central, bin) : nullptr;
    if (full == nullptr) return full;
    Retain::loose_taken(t.retain, full->count * bin_size(bin));
    own(t, bin, {full->slots, full->count});
    return full;
  }
  // One with slots, or none: it may wait, or they go home.
  static void put_magazine(Thread& t, Bin bin, auto* magazine) {
    if (magazine == nullptr) return;
    Bundle slots = {magazine->slots, magazine->count};
    if (may_wait(bin) && Retain::may_wait(S::global.retain, t.retain, bin_size(bin))) {
      prove_some(t, bin, slots);
      magazine->count = slots.count;
      Retain::loose_added(t.retain, slots.count * bin_size(bin));
      return slots.count != 0 ? Central::give(S::shelves.central, bin, magazine) : give_empty(bin, magazine);
    }
    H::go_home(t, bin, slots);
    give_empty(bin, magazine);
    relieve(t);
  }
  static auto* take_empty(Bin bin) { return Central::take_empty(S::shelves.central, bin); }
  static void give_empty(Bin bin, auto* magazine) { Central::give_empty(S::shelves.central, bin, magazine); }

  static void own(const Thread& t, Bin bin, const Bundle& slots) {
    if constexpr (Remote::kDirect)
      for (unsigned i = 0; i < slots.count; ++i) own(t, bin, slots.slots[i]);
  }
  // Of a slot that is all of its span: whoever takes it owns it.
  static void own(const Thread& t, Bin bin, const void* slot) {
    Route::bind(S::global.route, address(slot), kPage, bin, t.owner);
  }

  // Of batches that do not go home the first and then one in so many, and all that a dying thread leaves.
  static void prove_some(Thread& t, Bin bin, Bundle& bundle) {
    if (t.loose_batches++ % kUnproved == 0 || t.local.peek() == nullptr) H::prove(bin, bundle);
  }

  static void put(Thread& t, Bin bin, Bundle& bundle) {
    if (!put_where_it_may(t, bin, bundle)) relieve(t);
  }

  // Sends home what waits for an owner.
  static void vacate(Thread& t, unsigned owner) {
    for (Bin bin = 1; bin < kBins; ++bin)
      while (send_home(t, owner, bin, kAll) != 0) continue;
  }

  static void vacate_all(Thread& t) {
    for (unsigned owner = 0; owner < S::global.owners.end(); ++owner) vacate(t, owner);
    if constexpr (Remote::kDirect) vacate(t, Remote::kOrphans);
    shrink();
  }
  // Some of what waits in one list; how many bytes, 0 if there was nothing.
  static std::size_t vacate_some(Thread& t, unsigned owner, Bin bin) {
    return send_home(t, owner, bin, 8 * kBatch) * bin_size(bin);
  }
  // Memory of the lists' own that they do not need goes back.
  static void shrink() {
    Central::shrink(S::shelves.central);
    Remote::shrink(S::shelves.remote, S::global.owners.end());
  }

  // What strangers sent without an outbox, beyond what the owner wants: some of it goes on, so that spans come to be
  // empty and other threads have it; more each time, as long as more is left.
  static void catch_up(Thread& t, Bin bin) {
    if constexpr (Remote::kDirect) {
      bool full = pass_on(t, t.owner, bin, Remote::budget(S::shelves.remote, t.remote, t.owner, bin));
      full |= pass_on(t, t.owner, Remote::next_bin(t.remote), kBatch);
      // Of spans whose owner is gone: at home, they find a new one.
      full |= pass_on(t, Remote::kOrphans, bin, kBatch);
      if (full) relieve(t);
    }
  }
  // The same for an owner to whom this thread has sent a lot.
  static void help(Thread& t, unsigned owner) {
    bool full = false;
    for (Bin bin = 1; bin < kBins; ++bin) full |= pass_on(t, owner, bin, kAll);
    if (full) relieve(t);
    H::purge_if_due(t);
  }

  // What was sent to an owner without an outbox, of one class.
  static void hurry(Thread& t, unsigned owner, Bin bin) {
    if constexpr (Remote::kDirect) pass_on(t, owner, bin, kAll);
  }

  // From owners without a thread; with `anybodys`, from owners who have not come for it, because their threads may be
  // waiting for a processor. The counts are only a hint: any list may be taken by anybody.
  static void take_from_others(Thread& t, Bin bin, unsigned want, bool anybodys, Bundle& out) {
    if constexpr (Remote::kDirect) return;  // what is sent to those without a thread is the orphans': see catch_up
    const unsigned end = S::global.owners.end();
    const unsigned looks = end < kOwnerLooks ? end : kOwnerLooks;
    const unsigned from = end == looks ? 0 : S::global.sweep_cursor.fetch_add(looks, std::memory_order_relaxed);
    for (unsigned i = 0; i < looks && out.count == 0; ++i) {
      const unsigned owner = (from + i) % end;
      if (anybodys || S::global.owners.threads(owner) == 0) take(t, owner, bin, want, out);
    }
  }

  // More waits loose than may: a bounded part of what waits goes home, list by list in turn; if it is far more, first
  // what waits for this thread's owner, although the thread may want it soon. Returns how many slots went.
  static unsigned relieve(Thread& t) {
    constexpr unsigned kMost = 4 * kBatch;
    if (Retain::loose_bytes(t.retain) == 0 || Retain::may_wait(S::global.retain, t.retain, bin_size(kBins - 1)))
      return 0;
    unsigned room = kMost;
    const unsigned at = S::global.sweep_cursor.fetch_add(kLooks, std::memory_order_relaxed);
    for (unsigned i = 0; Retain::must_go(S::global.retain, t.retain) && i < kBins && room != 0; ++i)
      room = relieve_list(t, t.owner, (at + i) % kBins, room);
    const unsigned all = lists();
    for (unsigned i = 0; i < (all < kLooks ? all : kLooks) && room != 0; ++i) {
      const unsigned list = (at + i) % all;
      room = relieve_list(t, list / kBins, list % kBins, room);
    }
    return kMost - room;
  }

 private:
  // Whether all of it may wait loose.
  static bool put_where_it_may(Thread& t, Bin bin, Bundle& bundle) {
    if (may_wait(bin) && Retain::may_wait(S::global.retain, t.retain, bin_size(bin))) {
      prove_some(t, bin, bundle);
      const unsigned count = bundle.count;
      Central::give(S::shelves.central, t.owner, bin, bundle);
      Retain::loose_added(t.retain, (count - bundle.count) * bin_size(bin));
      if (bundle.count == 0) return true;
    }
    return H::go_home(t, bin, bundle), false;
  }

  // Leaves what a stranger claimed and nobody else has freed.
  static void arrived(Thread& t, Bin bin, Bundle& bundle) {
    const unsigned count = bundle.count;
    bundle.count = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (HZ_LIKELY(Guard::arrive(bundle.slots[i], bin))) {
        bundle.push(bundle.slots[i]);
      } else {
        Faults<Line>::note(Fault::kDoubleFree, bundle.slots[i], bin);
      }
    }
    Observe::count(t.observe, Event::kBytesCollected, count * bin_size(bin));
  }

  // Of a box without an outbox, slots that are not all of their span do not wait loose: they would change hands and the
  // span its owner not with them.
  static bool may_wait(Bin bin) { return !Remote::kDirect || bin_slots(bin) == 1; }

  // Those who call relieve afterwards: two buffers would be too much for a small stack. Whether they have to.
  HZ_SLOW static bool pass_on(Thread& t, unsigned owner, Bin bin, unsigned most) {
    typename Bundle::Buffer buffer;
    bool all_wait = true;
    while (most != 0) {
      Bundle bundle = buffer.empty();
      collect(t, owner, bin, step(most), bundle);
      if (bundle.count == 0) break;
      most = bundle.count < most ? most - bundle.count : 0;
      all_wait &= put_where_it_may(t, bin, bundle);
    }
    return !all_wait;
  }

  // A batch, or as much of it as a buffer holds; how many went.
  static unsigned send_home(Thread& t, unsigned owner, Bin bin, unsigned most) {
    typename Bundle::Buffer buffer;
    Bundle bundle = buffer.empty();
    take(t, owner, bin, step(most), bundle);
    const unsigned count = bundle.count;
    H::go_home(t, bin, bundle);
    return count;
  }
  static unsigned step(unsigned most) { return most < Bundle::kMost ? most : Bundle::kMost; }

  // What is left of `room` slots.
  static unsigned relieve_list(Thread& t, unsigned owner, Bin bin, unsigned room) {
    if (bin == 0) return room;
    unsigned gone = 0;
    // A magazine is some buffers full.
    for (unsigned n = Bundle::kMost; n == Bundle::kMost && gone < kBatch / 2; gone += n)
      n = send_home(t, owner, bin, kBatch);
    return gone < room ? room - gone : 0;
  }
};

}  // namespace hz
