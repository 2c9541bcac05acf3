// SPDX-License-Identifier: Apache-2.0
//
// The boundary: the one place where memory changes hands. A bin that ran empty gets a batch (refill), a bin that ran
// full gives one away (flush), an outbox is delivered. Called from the slow paths of heap.hpp with the thread's lock
// held.
//
//   refill:  own stash -> own central list -> spans with free slots -> lists that nobody owns -> a new span
//   flush:   central list while retention lets slots wait loose, else home to their spans; empty spans retire
#pragma once

#include "heap/home.hpp"

namespace hz {

template <class Line>
struct Boundary {
  using S = State<Line>;
  using H = Home<Line>;
  using Thread = typename S::Thread;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Remote = typename Line::Remote;
  using Central = typename Line::Central;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Guard = typename Line::Guard;
  using Policy = typename Line::Policy;
  using Observe = typename Line::Observe;

  static constexpr unsigned kAll = ~0U;
  static constexpr unsigned kBatch = kPage / kMinAlign;  // a page of the smallest slots
  static constexpr unsigned kDeniedPerTake = 16;
  static constexpr unsigned kLists = Remote::kOwners * kBins;
  static constexpr unsigned kLooks = 2 * kBins;  // lists that one crossing relieves

  // A slot for the caller, and more for the bin; nullptr when memory cannot be had. `zeroed`: it reads as zero.
  static void* refill(Thread& t, Bin bin, bool& zeroed) {
    Observe::count(t.observe, Event::kRefill, 1);
    grow_capacity(t, bin);
    const unsigned want = Policy::refill_batch(bin, Front::capacity(t.front, bin));
    if (void* slot = stock(t, bin, take_loose(t, t.owner, bin, want))) return slot;
    for (bool reclaimed = false;;) {
      if (void* slot = take_from_spans(t, bin, want, zeroed)) return slot;
      if (void* slot = stock(t, bin, take_abandoned(t, bin, want))) return slot;
      deliver(t, true);                           // what lies in the outbox may be what another thread is about to map
      if (new_span(t, bin, reclaimed)) continue;  // others may be quicker to take its slots
      if (reclaimed) return nullptr;
      reclaim(t, 0);
      reclaimed = true;
    }
  }

  // A bin was full when `slot` came: makes room and takes it in.
  static void flush(Thread& t, Bin bin, void* slot) {
    Observe::count(t.observe, Event::kFlush, 1);
    grow_capacity(t, bin);
    const unsigned capacity = Front::capacity(t.front, bin);
    const unsigned count = Front::count(t.front, bin);
    if (count >= capacity) {
      const unsigned keep = capacity == 0 ? 0 : capacity - Policy::flush_batch(bin, capacity);
      drain(t, bin, count - keep, false);
      H::purge_if_due(t);
    }
    Front::check(t.front, bin);
    if (Front::admit(t.front, bin, slot)) return Front::put(t.front, bin, slot);
    Front::turn_away(t.front, bin);
    Bundle bundle;  // this thread caches nothing of the class
    bundle.push(slot);
    put_loose(t, bin, bundle);
    H::purge_if_due(t);
  }

  // Sends remote frees on their way: all of them, or those for which there was no room.
  static void deliver(Thread& t, bool everything) {
    send(t, everything);
    relieve(t);
    H::purge_if_due(t);
  }

  // A thread's end: what it holds goes to its heirs, the threads of the same owner; without any, all that waits for the
  // owner goes home.
  static void bury(Thread& t) {
    // A hint: an heir that leaves at the same moment leaves the lists to take_abandoned.
    const bool last = S::global.owner_threads[t.owner].load(std::memory_order_relaxed) == 1;
    Retain::bins_shrunk(S::global.retain, t.capacity_bytes);
    give_up(t, last);
    if (last) vacate(t, t.owner);
    H::purge_if_due(t);
  }

  // Returns what this thread and all shared lists hold to the spans, and pages beyond `keep_dirty` bytes to the system.
  static std::size_t reclaim(Thread& t, std::size_t keep_dirty) {
    give_up(t, true);
    vacate_all(t);
    return H::purge(t, keep_dirty);
  }

  // Empties a thread's bins and its outbox.
  static void give_up(Thread& t, bool to_spans) {
    send(t, true);
    for (Bin bin = 1; bin < kBins; ++bin) {
      while (drain(t, bin, kAll, to_spans)) {
      }
    }
  }

  // What is in the outbox goes to where its owners find it, all of it or what made it full.
  static void send(Thread& t, bool everything) {
    typename Remote::Sweep sweep(t.remote, everything);
    Parcel<Bundle> parcel;
    while (sweep.next(parcel)) {
      H::audit(t, parcel.bin, parcel.slots);
      if (parcel.slots.count == 0 || !Retain::may_wait(S::global.retain)) {
        H::go_home(t, parcel.bin, parcel.slots);
        continue;
      }
      Retain::loose_added(S::global.retain, parcel.slots.count * bin_size(parcel.bin));
      Observe::count(t.observe, Event::kRemoteSent, parcel.slots.count);
      Remote::send(S::global.remote, parcel);
    }
  }

  // Slots that were taken away from a thread, and that it will not touch again: see revoke.hpp.
  static void take_home(Thread& t, Bin bin, const Bundle& bundle) { H::go_home(t, bin, bundle); }

  // What the crossings of others would do in time, done by the purger while nobody crosses; whether nothing was left.
  // `idle`: all threads are, so that what waits loose waits for nobody.
  static bool tidy(Thread& t, bool idle) {
    Retain::rest(S::global.retain, idle);
    for (unsigned at = 0; !idle && at < kLists; at += kLooks) relieve(t);
    if (!idle) return H::purge_if_due(t), false;
    if (Retain::loose_bytes(S::global.retain) != 0) vacate_all(t);
    return H::purge(t, Retain::dirty_target(S::global.retain)) == 0 && Retain::at_rest(S::global.retain);
  }

 private:
  // A bin that runs empty or full grows while the thread's budget lasts. When it is spent, a bin in turn gives up half
  // of its own now and then, so that what the thread no longer uses does not hold the budget for ever.
  static void grow_capacity(Thread& t, Bin bin) {
    const unsigned capacity = Front::capacity(t.front, bin);
    const unsigned next = capacity == 0 ? Policy::first_capacity(bin) : Policy::next_capacity(bin, capacity);
    if (next <= capacity) return;
    const std::size_t more = (next - capacity) * bin_size(bin);
    if (t.capacity_bytes + more <= thread_budget()) {
      Front::set_capacity(t.front, bin, next);
      t.capacity_bytes += more;
      Retain::bins_grown(S::global.retain, more);
    } else if (++t.denied % kDeniedPerTake == 0) {
      shrink_next(t, bin);
    }
  }

  static std::size_t thread_budget() {
    const std::size_t asked = S::global.thread_budget.load(std::memory_order_relaxed);
    if (asked != 0) return asked;
    const std::size_t share = Source::thread_share(S::global.source);
    return share < Line::kThreadCacheBytes ? share : Line::kThreadCacheBytes;
  }

  static void shrink_next(Thread& t, Bin except) {
    for (unsigned looked = 0; looked < kBins; ++looked) {
      const Bin bin = ++t.victim % kBins;
      const unsigned capacity = Front::capacity(t.front, bin);
      if (bin == except || capacity == 0) continue;
      const unsigned less = capacity / 2;
      Front::set_capacity(t.front, bin, less);
      t.capacity_bytes -= (capacity - less) * bin_size(bin);
      Retain::bins_shrunk(S::global.retain, (capacity - less) * bin_size(bin));
      const unsigned count = Front::count(t.front, bin);
      if (count > less) drain(t, bin, count - less, false);
      return;
    }
  }

  // First slot to the caller, the rest into the bin; nullptr if the chain is empty.
  static void* stock(Thread& t, Bin bin, const Bundle& bundle) {
    if (bundle.count == 0) return nullptr;
    Front::fill(t.front, bin, bundle);
    Front::check(t.front, bin);
    void* slot = Front::pop(t.front, bin);
    Guard::on_alloc(slot);
    return slot;
  }

  static Bundle take_loose(Thread& t, unsigned owner, Bin bin, unsigned want) {
    Bundle bundle = Remote::collect(S::global.remote, owner, bin, want);
    if (bundle.count != 0) {
      Observe::count(t.observe, Event::kRemoteCollected, bundle.count);
    } else {
      bundle = Central::take(S::global.central, owner, bin, want);
    }
    if (bundle.count != 0) Retain::loose_taken(S::global.retain, bundle.count * bin_size(bin));
    return bundle;
  }

  // What is left of `room` slots.
  static unsigned relieve_list(Thread& t, unsigned owner, Bin bin, unsigned room) {
    if (bin == 0) return room;
    const Bundle bundle = take_loose(t, owner, bin, kBatch);
    H::go_home(t, bin, bundle);
    return bundle.count < room ? room - bundle.count : 0;
  }

  // Sends home what waits for an owner.
  static void vacate(Thread& t, unsigned owner) {
    for (Bin bin = 1; bin < kBins; ++bin) {
      for (Bundle bundle = take_loose(t, owner, bin, kAll); bundle.count != 0; bundle = take_loose(t, owner, bin, kAll))
        H::go_home(t, bin, bundle);
    }
  }

  static void vacate_all(Thread& t) {
    for (unsigned owner = 0; owner < Remote::kOwners; ++owner) vacate(t, owner);
  }

  // From owners without a thread. The counts are only a hint: any list may be taken by anybody.
  static Bundle take_abandoned(Thread& t, Bin bin, unsigned want) {
    for (unsigned owner = 0; owner < Remote::kOwners; ++owner) {
      if (S::global.owner_threads[owner].load(std::memory_order_relaxed) != 0) continue;
      const Bundle bundle = take_loose(t, owner, bin, want);
      if (bundle.count != 0) return bundle;
    }
    return {};
  }

  static void* take_from_spans(Thread& t, Bin bin, unsigned want, bool& zeroed) {
    void* slots[kBatch];
    const Taken taken = Pool::take(S::global.pool, bin, t.owner, slots, want < kBatch ? want : kBatch);
    if (taken.slots == 0) return nullptr;
    Retain::slots_out(S::global.retain, taken.slots * bin_size(bin));
    if (taken.pages != 0) {
      Route::bind(S::global.route, taken.span + (taken.first_page << kPageShift), taken.pages << kPageShift, bin,
                  t.owner);
    }
    if (taken.fresh) guard_tail(t, bin, taken);
    Bundle bundle;
    for (unsigned i = taken.slots; i-- > 1;) {
      if (taken.fresh) Guard::on_free(t.guard, slots[i]);
      bundle.push(slots[i]);
    }
    if (!taken.fresh) {
      bundle.push(slots[0]);
      H::audit(t, bin, bundle);
      return stock(t, bin, bundle);
    }
    if (bundle.count != 0) Front::fill(t.front, bin, bundle);
    zeroed = taken.zeroed;
    // Recycled memory may still carry the mark of a slot that lay here before; zeroed memory is not touched.
    if (!zeroed) Guard::on_alloc(slots[0]);
    return slots[0];
  }

  // Where the last page ends in less than a slot, an address there must look like a free slot: it was never handed out.
  static void guard_tail(Thread& t, Bin bin, const Taken& taken) {
    const std::size_t end = bin_slots(bin) * bin_size(bin);
    const std::size_t pages_end = std::size_t{taken.first_page + taken.pages} << kPageShift;
    if (Guard::kMarks && pages_end > end && end < kGranule) Guard::on_free(t.guard, pointer(taken.span + end));
  }

  static bool new_span(Thread& t, Bin bin, bool reclaimed) {
    const Run run = Source::acquire(S::global.source, bin_granules(bin), 1, {.insists = reclaimed});
    if (run.at == 0) return false;
    Pool::adopt(S::global.pool, run.at, bin, t.owner, run.zeroed);
    Observe::count(t.observe, Event::kSpanAcquired, 1);
    return true;
  }

  // At most `n` slots of a bin leave the thread; whether any did.
  static bool drain(Thread& t, Bin bin, unsigned n, bool to_spans) {
    Bundle bundle = Front::drain(t.front, bin, n);
    if (bundle.count == 0) return false;
    H::audit(t, bin, bundle);
    if (to_spans) {
      H::go_home(t, bin, bundle);
    } else {
      put_loose(t, bin, bundle);
    }
    return true;
  }

  static void put_loose(Thread& t, Bin bin, Bundle& bundle) {
    if (Retain::may_wait(S::global.retain)) {
      const unsigned count = bundle.count;
      Central::give(S::global.central, t.owner, bin, bundle);
      Retain::loose_added(S::global.retain, (count - bundle.count) * bin_size(bin));
      if (bundle.count == 0) return;
    }
    H::go_home(t, bin, bundle);
    relieve(t);
  }

  // More waits loose than may: a bounded part of what waits goes home, list by list in turn; if it is far more, first
  // what waits for this thread's owner, although the thread may want it soon.
  static void relieve(Thread& t) {
    if (Retain::may_wait(S::global.retain)) return;
    unsigned room = 4 * kBatch;
    const unsigned at = S::global.sweep_cursor.fetch_add(kLooks, std::memory_order_relaxed);
    for (unsigned i = 0; Retain::must_go(S::global.retain) && i < kBins && room != 0; ++i)
      room = relieve_list(t, t.owner, (at + i) % kBins, room);
    for (unsigned i = 0; i < kLooks && room != 0; ++i) {
      const unsigned list = (at + i) % kLists;
      room = relieve_list(t, list / kBins, list % kBins, room);
    }
  }
};

}  // namespace hz
