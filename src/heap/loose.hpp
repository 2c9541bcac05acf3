// SPDX-License-Identifier: Apache-2.0
//
// Slots that wait loose between threads: for their owner (Remote), or for any thread of it (Central). Retention says
// how many bytes may; what is more goes home to its spans. Called from the boundary (refill.hpp) with the thread's lock
// held.
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
  static constexpr unsigned kOwnerLooks = 64;            // owners without a thread that one crossing asks

  static unsigned lists() { return S::global.owners.end() * kBins; }

  static Bundle take(Thread& t, unsigned owner, Bin bin, unsigned want) {
    Bundle bundle = collect(t, owner, bin, want);
    if (bundle.count != 0 || !may_wait(bin)) return bundle;
    bundle = Central::take(S::shelves.central, owner, bin, want);
    if (bundle.count != 0) Retain::loose_taken(S::global.retain, bundle.count * bin_size(bin));
    if constexpr (Remote::kDirect)
      for (unsigned i = 0; i < bundle.count; ++i) own(t, bin, bundle.slots[i]);
    return bundle;
  }

  // Of a slot that is all of its span: whoever takes it owns it.
  static void own(const Thread& t, Bin bin, const void* slot) {
    Route::bind(S::global.route, address(slot), kPage, bin, t.owner);
  }

  static void put(Thread& t, Bin bin, Bundle& bundle) {
    if (may_wait(bin) && Retain::may_wait(S::global.retain, bin_size(bin))) {
      const unsigned count = bundle.count;
      Central::give(S::shelves.central, t.owner, bin, bundle);
      Retain::loose_added(S::global.retain, (count - bundle.count) * bin_size(bin));
      if (bundle.count == 0) return;
    }
    H::go_home(t, bin, bundle);
    relieve(t);
  }

  // Sends home what waits for an owner.
  static void vacate(Thread& t, unsigned owner) {
    for (Bin bin = 1; bin < kBins; ++bin)
      for (Bundle bundle = take(t, owner, bin, kAll); bundle.count != 0; bundle = take(t, owner, bin, kAll))
        H::go_home(t, bin, bundle);
  }

  static void vacate_all(Thread& t) {
    for (unsigned owner = 0; owner < S::global.owners.end(); ++owner) vacate(t, owner);
    if constexpr (Remote::kDirect) vacate(t, Remote::kOrphans);
    Central::shrink(S::shelves.central);
    Remote::shrink(S::shelves.remote, S::global.owners.end());
  }

  // What strangers sent without an outbox, beyond what the owner wants: some of it goes on, so that spans come to be
  // empty and other threads have it; more each time, as long as more is left.
  static void catch_up(Thread& t, Bin bin) {
    if constexpr (Remote::kDirect) {
      pass_on(t, t.owner, bin, Remote::budget(S::shelves.remote, t.remote, t.owner, bin));
      pass_on(t, t.owner, Remote::next_bin(t.remote), kBatch);
      // Of spans whose owner is gone: at home, they find a new one.
      pass_on(t, Remote::kOrphans, bin, kBatch);
    }
  }
  // The same for an owner to whom this thread has sent a lot.
  static void help(Thread& t, unsigned owner) {
    for (Bin bin = 1; bin < kBins; ++bin) pass_on(t, owner, bin, kAll);
    H::purge_if_due(t);
  }
  // The same for everybody's, when it has waited for a beat of the purger.
  static void sweep_up(Thread& t) {
    if constexpr (Remote::kDirect) {
      if (Remote::something_waits(S::shelves.remote)) vacate_all(t);
    }
  }

  // From owners without a thread; with `anybodys`, from owners who have not come for it, because their threads may be
  // waiting for a processor. The counts are only a hint: any list may be taken by anybody.
  static Bundle take_from_others(Thread& t, Bin bin, unsigned want, bool anybodys) {
    if constexpr (Remote::kDirect) return {};  // what is sent to those without a thread is the orphans': see catch_up
    const unsigned end = S::global.owners.end();
    const unsigned looks = end < kOwnerLooks ? end : kOwnerLooks;
    const unsigned from = end == looks ? 0 : S::global.sweep_cursor.fetch_add(looks, std::memory_order_relaxed);
    for (unsigned i = 0; i < looks; ++i) {
      const unsigned owner = (from + i) % end;
      if (!anybodys && S::global.owners.threads(owner) != 0) continue;
      const Bundle bundle = take(t, owner, bin, want);
      if (bundle.count != 0) return bundle;
    }
    return {};
  }

  // More waits loose than may: a bounded part of what waits goes home, list by list in turn; if it is far more, first
  // what waits for this thread's owner, although the thread may want it soon. Returns how many slots went.
  static unsigned relieve(Thread& t) {
    constexpr unsigned kMost = 4 * kBatch;
    if (Retain::may_wait(S::global.retain, bin_size(kBins - 1))) return 0;
    unsigned room = kMost;
    const unsigned at = S::global.sweep_cursor.fetch_add(kLooks, std::memory_order_relaxed);
    for (unsigned i = 0; Retain::must_go(S::global.retain) && i < kBins && room != 0; ++i)
      room = relieve_list(t, t.owner, (at + i) % kBins, room);
    const unsigned all = lists();
    for (unsigned i = 0; i < (all < kLooks ? all : kLooks) && room != 0; ++i) {
      const unsigned list = (at + i) % all;
      room = relieve_list(t, list / kBins, list % kBins, room);
    }
    return kMost - room;
  }

  // Until no more waits than may.
  static void relieve_all(Thread& t) {
    for (bool some = true; some;) {
      some = false;
      for (unsigned at = 0; at < lists(); at += kLooks) some |= relieve(t) != 0;
    }
  }

 private:
  // What a stranger claimed and nobody else has freed.
  static Bundle arrived(Thread& t, Bin bin, const Bundle& bundle) {
    Bundle whole;
    for (unsigned i = 0; i < bundle.count; ++i) {
      if (HZ_LIKELY(Guard::arrive(bundle.slots[i], bin))) {
        whole.push(bundle.slots[i]);
      } else {
        Guard::report(Fault::kDoubleFree, bundle.slots[i], bin, Line::kName);
      }
    }
    Observe::count(t.observe, Event::kBytesCollected, bundle.count * bin_size(bin));
    return whole;
  }

  // Of a box without an outbox, slots that are not all of their span do not wait loose: they would change hands and the
  // span its owner not with them.
  static bool may_wait(Bin bin) { return !Remote::kDirect || bin_slots(bin) == 1; }

  static Bundle collect(Thread& t, unsigned owner, Bin bin, unsigned want) {
    Bundle bundle = Remote::collect(S::shelves.remote, owner, bin, want);
    if (bundle.count == 0) return bundle;
    Observe::count(t.observe, Event::kRemoteCollected, bundle.count);
    if constexpr (Remote::kDirect) return arrived(t, bin, bundle);  // was never counted as loose
    Retain::loose_taken(S::global.retain, bundle.count * bin_size(bin));
    return bundle;
  }

  static void pass_on(Thread& t, unsigned owner, Bin bin, unsigned most) {
    while (most != 0) {
      Bundle bundle = collect(t, owner, bin, most);
      if (bundle.count == 0) return;
      most = bundle.count < most ? most - bundle.count : 0;
      put(t, bin, bundle);
    }
  }

  // What is left of `room` slots.
  static unsigned relieve_list(Thread& t, unsigned owner, Bin bin, unsigned room) {
    if (bin == 0) return room;
    const Bundle bundle = take(t, owner, bin, kBatch);
    H::go_home(t, bin, bundle);
    return bundle.count < room ? room - bundle.count : 0;
  }
};

}  // namespace hz
