// SPDX-License-Identifier: Apache-2.0
//
// The boundary: the one place where memory changes hands. A bin that ran empty gets a batch (refill), a bin that ran
// full gives one away (flush), an outbox is delivered. Called from the slow paths of heap.hpp with the thread's lock
// held.
//
//   refill:  own outbox -> own stash -> own central list -> spans with free slots -> lists that nobody owns
//            -> a new span
//   flush:   central list while retention lets slots wait loose, else home to their spans; empty spans retire
#pragma once

#include "heap/loose.hpp"

namespace hz {

template <class Line>
struct Boundary {
  using S = State<Line>;
  using H = Home<Line>;
  using L = Loose<Line>;
  using Thread = typename S::Thread;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Remote = typename Line::Remote;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Guard = typename Line::Guard;
  using Policy = typename Line::Policy;
  using Observe = typename Line::Observe;

  static constexpr unsigned kAll = L::kAll, kBatch = L::kBatch;
  static constexpr unsigned kDeniedPerTake = 16, kDeniedPerVerdict = 256;
  static constexpr std::uint64_t kBusyMicroseconds = 2000, kCalmMicroseconds = 50000;  // for so many denials
  static constexpr unsigned kKeepers = Composition<Line>::kKeepers;
  static constexpr std::size_t kAloneShare = 16, kLeastAlone = 256 * kKiB;

  // A slot for the caller, and more for the bin; nullptr when memory cannot be had. `zeroed`: it reads as zero.
  static void* refill(Thread& t, Bin bin, bool& zeroed) {
    Observe::count(t.observe, Event::kRefill, 1);
    if (HZ_UNLIKELY(t.hidden)) {
      t.hidden = false;
      S::show(t, true);
    }
    grow_capacity(t, bin);
    look_at_one(t, bin);
    const unsigned want = Policy::refill_batch(bin, Front::capacity(t.front, bin));
    Bundle bundle = Front::space(t.front, bin, want);
    Remote::recall(t.remote, bin, want, bundle);
    if (bundle.count == 0) L::take(t, t.owner, bin, want, bundle);
    void* waiting = stock(t, bin, bundle);
    L::catch_up(t, bin);
    if (waiting != nullptr) return waiting;
    for (bool reclaimed = false;;) {
      if (void* slot = take_from_spans(t, bin, want, zeroed)) return slot;
      bundle = Front::space(t.front, bin, want);
      L::take_from_others(t, bin, want, Remote::kLent && maps(bin), bundle);
      if (void* slot = stock(t, bin, bundle)) return slot;
      // What lies in the outbox may be what another thread is about to map.
      if (Remote::outbox_bytes(t.remote) >= Remote::kEarlyBytes || reclaimed) deliver(t, true);
      if (new_span(t, bin, reclaimed)) continue;  // others may be quicker to take its slots
      if (reclaimed) return nullptr;
      reclaim(t, 0);
      reclaimed = true;
    }
  }

  // A bin was full when `slot` came: makes room and takes it in.
  static void flush(Thread& t, Bin bin, void* slot) {
    Observe::count(t.observe, Event::kFlush, 1);
    if (give_up_if_emptied(t)) return flush_home(t, bin, slot);
    grow_capacity(t, bin);
    look_at_one(t, bin);
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
    Bundle bundle = Bundle::of(slot);  // this thread caches nothing of the class
    t.gave(bin_size(bin));
    L::put(t, bin, bundle);
    H::purge_if_due(t);
  }

  // Where nobody can take back what threads cache (no purger, or no barrier on all threads), they do not cache while
  // they empty themselves: whoever falls asleep then keeps nothing. From then on each of the thread's frees crosses and
  // goes home, until it allocates again. Asked by every free that crosses; whether it is so.
  static bool give_up_if_emptied(Thread& t) {
    if (HZ_LIKELY(S::global.aided.load(std::memory_order_relaxed))) return false;
    const std::size_t cached = t.capacity_bytes + Remote::outbox_bytes(t.remote);
    if (!Retain::emptied(S::global.retain) && !t.lately.emptied(t.taken, cached)) return false;
    if (!Retain::may_purge(S::global.retain)) return false;
    if (cached != 0) {
      give_up(t, true);
      for (Bin bin = 1; bin < kBins; ++bin) Front::set_capacity(t.front, bin, 0);
      Retain::bins_shrunk(S::global.retain, t.capacity_bytes);
      t.capacity_bytes = 0;
    }
    t.hidden = true;
    S::show(t, false);
    return true;
  }
  // A stranger's slot that was just deferred waits for nobody either, then.
  static void hurry(Thread& t, unsigned owner, Bin bin) {
    if (HZ_LIKELY(!give_up_if_emptied(t))) return;
    send(t, true);
    L::hurry(t, owner, bin);
    L::relieve(t);
    H::purge_if_due(t);
  }

  // Sends remote frees on their way: all of them, or those for which there was no room.
  static void deliver(Thread& t, bool everything) {
    send(t, everything);
    L::relieve(t);
    H::purge_if_due(t);
  }

  // A thread's end: what it holds goes to its heirs, the threads of the same owner; without any, all that waits for the
  // owner goes home.
  static void bury(Thread& t) {
    // A hint: see Threads::on_thread_exit.
    const bool last = S::global.owners.threads(t.owner) == 1;
    Retain::bins_shrunk(S::global.retain, t.capacity_bytes);
    give_up(t, last);
    if (last) L::vacate(t, t.owner);
    H::purge_if_due(t);
  }

  // Returns what this thread and all shared lists hold to the spans, and pages beyond `keep_dirty` bytes to the system.
  static std::size_t reclaim(Thread& t, std::size_t keep_dirty) {
    give_up(t, true);
    L::vacate_all(t);
    return H::purge(t, keep_dirty, SIZE_MAX);
  }

  // Empties a thread's bins and its outbox.
  static void give_up(Thread& t, bool to_spans) {
    send(t, true);
    for (Bin bin = 1; bin < kBins; ++bin)
      while (drain(t, bin, kAll, to_spans)) {
      }
  }

  // What is in the outbox goes to where its owners find it, all of it or what made it full.
  static void send(Thread& t, bool everything) {
    typename Remote::Sweep sweep(t.remote, everything);
    Parcel<Bundle> parcel;
    while (sweep.next(parcel)) {
      const std::size_t size = bin_size(parcel.bin);
      t.gave(parcel.slots.count * size);
      H::audit(t, parcel.bin, parcel.slots);
      // Nobody would look for what waits for an owner without a thread; at home its span finds whoever wants it.
      if (parcel.slots.count != 0 && Retain::may_wait(S::global.retain, size) &&
          S::global.owners.threads(parcel.owner) != 0) {
        L::prove_some(t, parcel.bin, parcel.slots);
        const unsigned count = parcel.slots.count;
        Retain::loose_added(S::global.retain, count * size);
        Remote::send(S::shelves.remote, t.owner, parcel);
        if (parcel.slots.count != 0) Retain::loose_taken(S::global.retain, parcel.slots.count * size);
        Observe::count(t.observe, Event::kRemoteSent, count - parcel.slots.count);
      }
      H::go_home(t, parcel.bin, parcel.slots);
    }
  }

  // Slots that were taken away from a thread, and that it will not touch again: see revoke.hpp.
  static void take_home(Thread& t, Bin bin, const Bundle& bundle) { H::go_home(t, bin, bundle); }

 private:
  static void flush_home(Thread& t, Bin bin, void* slot) {
    Bundle bundle = Bundle::of(slot);
    t.gave(bin_size(bin));
    H::audit(t, bin, bundle);
    H::go_home(t, bin, bundle);
    L::relieve(t);
    H::purge_if_due(t);
  }

  // A bin that runs empty or full grows while the thread's budget lasts. When it is spent, a bin in turn gives up half
  // of its own now and then, so that what the thread no longer uses does not hold the budget for ever; and the budget
  // follows how often that happens.
  static void grow_capacity(Thread& t, Bin bin) {
    const unsigned capacity = Front::capacity(t.front, bin);
    const unsigned next = capacity == 0 ? Policy::first_capacity(bin) : Policy::next_capacity(bin, capacity);
    if (next <= capacity) return;
    const std::size_t more = (next - capacity) * bin_size(bin);
    if (t.capacity_bytes + more <= thread_budget(t)) {
      Front::set_capacity(t.front, bin, next);
      t.capacity_bytes += more;
      Retain::bins_grown(S::global.retain, more);
    } else if (++t.denied % kDeniedPerTake == 0) {
      if (t.denied % kDeniedPerVerdict == 0) adapt_budget(t);
      shrink_next(t, bin);
    }
  }

  // What the user said, or what the thread has come to, but no more than its share of a small container.
  static std::size_t thread_budget(const Thread& t) {
    const std::size_t asked = S::global.thread_budget.load(std::memory_order_relaxed);
    if (asked != 0) return asked;
    const std::size_t share = Source::thread_share(S::global.source);
    const std::size_t budget = share < t.budget ? share : t.budget;
    if (S::global.aided.load(std::memory_order_relaxed)) return budget;
    // Nobody will take it back.
    const std::size_t alone = t.lately.most() / kAloneShare;
    return alone < kLeastAlone || budget < alone ? budget : alone;
  }

  // A cache of twice the size is worth its memory to a thread that spends a good part of its time at the boundary. By
  // the clock on the wall, for that of a thread's processor is a system call: who waits for a processor looks calm, and
  // busy again within its next slice of time.
  static void adapt_budget(Thread& t) {
    const std::uint64_t now = os::microseconds();
    const std::uint64_t spent = now - t.verdict_at;
    t.verdict_at = now;
    if (spent < kBusyMicroseconds && t.budget < Line::kThreadCacheMost) t.budget *= 2;
    if (spent > kCalmMicroseconds && t.budget > Line::kThreadCacheBytes) t.budget /= 2;
  }

  static void shrink_next(Thread& t, Bin except) {
    for (unsigned looked = 0; looked < kBins; ++looked) {
      const Bin bin = ++t.victim % kBins;
      if (bin == except || Front::capacity(t.front, bin) == 0) continue;
      return shrink(t, bin);
    }
  }
  static void shrink(Thread& t, Bin bin) {
    const unsigned capacity = Front::capacity(t.front, bin);
    const unsigned less = capacity / 2;
    Front::set_capacity(t.front, bin, less);
    t.capacity_bytes -= (capacity - less) * bin_size(bin);
    Retain::bins_shrunk(S::global.retain, (capacity - less) * bin_size(bin));
    const unsigned count = Front::count(t.front, bin);
    if (count > less) drain(t, bin, count - less, false);
  }

  // Each crossing for a bin that caches looks at one bin in turn. If it is as it was the last time, the thread does not
  // use it, and half of it goes: a program that goes on to other sizes takes its memory along. (As tcmalloc's low-water
  // marks, without a mark on the hot path.)
  static void look_at_one(Thread& t, Bin except) {
    if (Front::capacity(t.front, except) == 0) return;  // a size that never fits would make all others look idle
    t.looked_at = t.looked_at % (kBins - 1) + 1;
    const Bin bin = t.looked_at;
    if (bin != except && Front::glance(t.front, bin) == t.seen[bin] && Front::count(t.front, bin) != 0) shrink(t, bin);
    t.seen[bin] = Front::glance(t.front, bin);
  }

  // First slot to the caller, the rest into the bin; nullptr if there is none.
  static void* stock(Thread& t, Bin bin, const Bundle& bundle) {
    if (bundle.count == 0) return nullptr;
    t.took(bundle.count * bin_size(bin));
    Front::fill(t.front, bin, bundle);
    Front::check(t.front, bin);
    void* slot = Front::pop(t.front, bin);
    Guard::on_alloc(slot, bin);
    return slot;
  }

  // Who is to get a span's slots, as long as it has some: where nobody owns them, the threads of a processor.
  static unsigned keeper(const Thread& t) { return Route::kOwned ? t.owner : os::current_cpu() % kKeepers; }

  static void* take_from_spans(Thread& t, Bin bin, unsigned want, bool& zeroed) {
    Bundle bundle = Front::space(t.front, bin, want);
    const Taken taken = take_some(t, bin, want, bundle);
    if (taken.slots == 0) return nullptr;
    Retain::slots_out(S::global.retain, taken.slots * bin_size(bin));
    if (taken.pages != 0) bind(t, bin, taken);
    if (!taken.fresh) {
      H::audit(t, bin, bundle);
      return stock(t, bin, bundle);
    }
    guard_tail(t, bin, taken);
    Carved carved = Pool::carved(taken, bin);
    while (carved.left() != 1) {
      void* slot = carved.next();
      if (Guard::kMarks) Guard::on_free(t.guard, slot, bin);
      bundle.push(slot);
    }
    t.took(taken.slots * bin_size(bin));
    if (bundle.count != 0) Front::fill(t.front, bin, bundle);
    void* slot = carved.next();
    zeroed = taken.zeroed;
    // Recycled memory may still carry the mark of a slot that lay here before; zeroed memory is not touched.
    if (!Guard::kMarks || !zeroed) Guard::on_alloc(slot, bin);
    return slot;
  }
  // Those at home into the bundle; no user memory is touched under the pool's lock.
  static Taken take_some(Thread& t, Bin bin, unsigned want, Bundle& out) {
    if constexpr (Front::kInBand) {
      constexpr unsigned kMost = 96;  // small stacks: test/stack
      void* slots[kMost];
      const Taken taken = Pool::take(S::shelves.pool, bin, keeper(t), slots, want < kMost ? want : kMost);
      for (unsigned i = 0; i < taken.slots && !taken.fresh; ++i) out.push(slots[i]);
      return taken;
    } else {
      const Taken taken = Pool::take(S::shelves.pool, bin, keeper(t), out.slots, want);
      if (!taken.fresh) out.count = taken.slots;
      return taken;
    }
  }

  // Nothing that was handed out starts behind the last slot.
  static void bind(Thread& t, Bin bin, const Taken& taken) {
    const std::size_t first = std::size_t{taken.first_page} << kPageShift;
    const std::size_t pages_end = first + (std::size_t{taken.pages} << kPageShift);
    const std::size_t end = pages_end < taken.end ? pages_end : taken.end;
    Route::bind(S::global.route, taken.span + first, end - first, bin, t.owner);
  }

  // Where the last page ends in less than a slot, an address there must look like a free slot: it was never handed out.
  static void guard_tail(Thread& t, Bin bin, const Taken& taken) {
    const std::size_t end = bin_slots(bin) * bin_size(bin);
    const std::size_t pages_end = std::size_t{taken.first_page + taken.pages} << kPageShift;
    if (Guard::kMarks && pages_end > end && end < kGranule) Guard::on_free(t.guard, pointer(taken.span + end), bin);
  }

  // A span of the class would cost page faults: nothing that was touched before is free.
  static bool maps(Bin bin) {
    return Source::dirty_bytes(S::global.source) < std::size_t{bin_granules(bin)} << kGranuleShift;
  }

  static bool new_span(Thread& t, Bin bin, bool reclaimed) {
    const Run run = Source::acquire(S::global.source, bin_granules(bin), 1, {.insists = reclaimed});
    if (run.at == 0) return false;
    Pool::adopt(S::shelves.pool, run.at, bin, keeper(t), run.zeroed);
    Retain::span_used(S::global.retain, std::size_t{bin_granules(bin)} << kGranuleShift);
    Observe::count(t.observe, Event::kSpanAcquired, 1);
    return true;
  }

  // At most `n` slots of a bin leave the thread; whether any did.
  static bool drain(Thread& t, Bin bin, unsigned n, bool to_spans) {
    Bundle bundle = Front::drain(t.front, bin, n);
    const unsigned count = bundle.count;
    if (count == 0) return false;
    t.gave(count * bin_size(bin));
    H::audit(t, bin, bundle);
    if (to_spans) {
      H::go_home(t, bin, bundle);
    } else {
      L::put(t, bin, bundle);
    }
    Front::drained(t.front, bin, count);
    return true;
  }
};

}  // namespace hz
