// SPDX-License-Identifier: Apache-2.0
//
// The boundary: the one place where memory changes hands. A bin that ran empty gets a batch (refill), a bin
// that ran full gives one away (flush), an outbox is delivered. Called from the slow paths of heap.hpp with
// the thread's lock held.
//
//   refill:  own outbox -> what others sent -> what own threads left -> spans with free slots -> what waits
//            for nobody, or where memory would be mapped for others -> a new span
//            (with owners: own spans; others' only if a new one may not be had)
//   flush:   the exchange while retention lets slots wait there, else back to their spans; empty spans retire
#pragma once

#include "heap/boundary/capacities.hpp"
#include "heap/spans/discard.hpp"

namespace hz {

template <class Line>
struct Boundary {
  using S = State<Line>;
  using Spans = SpanReturn<Line>;
  using Transfer = TransferCache<Line>;
  using R = Reclaim<Line>;
  using C = Capacities<Line>;
  using Thread = typename S::Thread;
  using M = MitigationOf<Line>;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Exchange = typename Line::Exchange;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Guard = typename Line::Guard;
  using Policy = typename Line::Policy;
  using Observe = typename Line::Observe;

  static constexpr unsigned kSpanOwners = Composition<Line>::kSpanOwners;
  static constexpr unsigned kWaits = 1000;  // for spans that others look through, before there is no memory

  // A slot for the caller, and more for the bin; nullptr when memory cannot be had. `zeroed`: it reads as
  // zero. A caller that wants zeroes gets a slot of a page or more alone: another one would be read to know
  // whether it is zero, and written later, which are two page faults where it is untouched.
  HZ_INLINE static void* refill(Thread& t, Bin bin, bool& zeroed, bool wants_zeroes) {
    unsigned goal = 0;
    void* const slot = refill(t, bin, zeroed, wants_zeroes, goal);
    if (goal != 0) top_up(t, bin, goal);
    return slot;
  }
  // The same from one place. `goal`: so many slots the bin should come to have, from further spans, and the
  // one that is returned; 0: it has enough. A frame of its own: test/stack.
  HZ_SLOW static void* refill(Thread& t, Bin bin, bool& zeroed, bool wants_zeroes, unsigned& goal) {
    Observe::count(t.observe, Event::kRefill, 1);
    if (swap(t, bin)) {
      if (void* slot = popped(t, bin)) return slot;
    }
    if (HZ_UNLIKELY(!has_help())) noted(t);
    C::grow(t, bin);
    C::look_at_one(t, bin);
    const bool alone = wants_zeroes && !Pool::kWholePages && bin_size(bin) >= kPage;
    const bool fills = !alone && (!Front::kInBand || bin_size(bin) < kPage) && goes_on(t, bin, true);
    const unsigned want = alone ? 1 : Policy::refill_batch(bin, Front::capacity(t.front, bin), fills);
    Bundle bundle = Front::space(t.front, bin, want);
    Exchange::recall(t.exchange, bin, want, bundle);
    Spans::move(bin, bundle, Phase::kLocalFree);
    if (bundle.count == 0) Transfer::collect(t, t.owner, bin, want, bundle);
    if (bundle.count == 0 && exchanges(t, bin)) {
      if (take_magazine(t, bin)) {
        if (void* slot = popped(t, bin)) return slot;
      }
    } else if (bundle.count == 0) {
      Transfer::take_waiting(t, t.owner, bin, want, bundle);
    }
    void* waiting = stock(t, bin, bundle);
    Transfer::pass_on_backlog(t, bin);
    if (waiting != nullptr) return waiting;
    bool apart = keeps_apart(t);
    unsigned waits = kWaits;
    for (bool reclaimed = false;;) {
      if (void* slot = take_from_spans(t, bin, want, !apart, zeroed)) {
        if (fills) goal = want;
        return slot;
      }
      bundle = Front::space(t.front, bin, want);
      Transfer::steal(t, bin, want, maps(bin), bundle);
      if (void* slot = stock(t, bin, bundle)) return slot;
      // What lies in the outbox may be what another thread is about to map.
      if (Exchange::outbox_due(t.exchange) || reclaimed) deliver(t, true);
      if (!apart || has_room(bin)) {
        if (void* slot = take_from_new(t, bin, want, zeroed, reclaimed)) {
          if (fills) goal = want;
          return slot;
        }
      }
      if (apart) {  // from now on of anybody's
        apart = false;
        continue;
      }
      if (reclaimed && !(waits != 0 && Discard<Line>::in_flight())) return nullptr;
      if (reclaimed) {
        --waits;
        os::give_way();
        continue;
      }
      R::reclaim(t, 0);
      reclaimed = true;
    }
  }

  // A bin was full when `slot` came: makes room and takes it in.
  static void flush(Thread& t, Bin bin, void* slot) {
    Observe::count(t.observe, Event::kFlush, 1);
    give_up_if_halved(t);
    sweep_if_due(t);
    if (!swap(t, bin)) make_room(t, bin);
    Front::check(t.front, bin);
    if (Front::admit(t.front, bin, slot)) return Front::put(t.front, bin, slot);
    Front::turn_away(t.front, bin);
    Bundle bundle = Bundle::of(slot);  // this thread caches nothing of the class
    t.gave(bin, 1);
    Transfer::put(t, bin, bundle);
    Spans::purge_if_due(t);
  }

  // Returns the thread's cache to its spans if its live bytes have halved since that happened last, so that
  // the last block that is freed leaves little behind. Only where no purger can do it (there is none, or no
  // barrier on all threads), and only while much is cached or free in spans.
  // Lock: the caller holds the thread's lock. Called at each crossing of a free.
  static bool give_up_if_halved(Thread& t) {
    if (HZ_LIKELY(has_help())) return false;
    const std::size_t live = noted(t);
    const bool has_halved = live <= t.level / 2;
    if (!has_halved && !t.shrinks) return false;
    t.shrinks =
        Retain::idle_bytes(S::global.retain) > Retain::little(S::global.retain) || Spans::has_slack(t);
    if (!has_halved || !t.shrinks) return false;
    return halved(t, live), true;
  }
  // Goes on with a sweep over all spans, or begins one, as the purger does (heap/process/purger.hpp), where
  // there is none. Lock: the caller holds the thread's lock.
  static void sweep_if_due(Thread& t) {
    if (HZ_LIKELY(Retain::has_purger(S::global.retain)) || !Spans::has_slack(t)) return;
    if (Discard<Line>::is_due(os::milliseconds())) sweep(t);
  }
  // Passes a remote slot on then that was just deferred, instead of leaving it to its owner.
  static void pass_on_if_halved(Thread& t, unsigned owner, Bin bin, bool sent) {
    if (HZ_LIKELY(!give_up_if_halved(t))) return;
    R::send(t, true);
    if (sent) {
      typename Transfer::Scratch scratch;
      Transfer::pass_on(t, scratch, owner, bin, Transfer::kAll);
    }
    Transfer::trim(t);
    Spans::purge_if_due(t);
  }

  // Returns true if a block of the class that lies in this span had better lie in a fuller one. The next
  // block of the class that this thread allocates does then: what it cached, and what waits for it, is in its
  // spans. Lock: the caller holds the thread's lock.
  static bool prefer_fuller(Thread& t, Bin bin, std::uintptr_t span) {
    while (R::drain(t, bin, Transfer::kAll, true)) continue;
    while (t.quota.peek() != nullptr && R::drain_quota(t, bin, true)) continue;
    while (Transfer::flush_some(t, t.owner, bin) != 0) continue;
    Spans::purge_if_due(t);
    return Pool::prefer_fuller(S::shelves.pool, bin, span, span_owner(t), !keeps_apart(t));
  }

  // Takes a slot of the bin that the guard accepts; returns nullptr only if the bin is empty. A slot that was
  // written to stays out of circulation.
  static void* popped(Thread& t, Bin bin) { return popped(t.front, bin); }
  static void* popped(typename Front::PerThread& front, Bin bin) {
    Front::check(front, bin);
    while (void* slot = Front::pop(front, bin)) {
      if (HZ_LIKELY(Guard::on_alloc(slot, bin))) return slot;
      Faults<Line>::note(Guard::fault_of_free(slot, bin), slot, bin);
    }
    return nullptr;
  }

  // Sends remote frees on their way: all of them, or those for which there was no room.
  static void deliver(Thread& t, bool everything) {
    R::send(t, everything);
    Transfer::trim(t);
    Spans::purge_if_due(t);
  }

 private:
  static bool has_help() { return S::global.aided.load(std::memory_order_relaxed); }

  // Returns true if the only thread of the process fills this bin, or drains it. Threads that share spans
  // take no more than they need, and the child of a fork does not, because slots of its parent's spans cost
  // copies of pages.
  static bool goes_on(Thread& t, Bin bin, bool comes) {
    const bool shares = S::global.forks != 0 || S::global.thread_count.load(std::memory_order_relaxed) > 1;
    return !shares && Policy::goes_on(t.policy, bin, comes);
  }

  // Raises the thread's level to its live bytes, and returns those.
  static std::size_t noted(Thread& t) {
    const std::size_t live = live_bytes(t);
    if (live > t.level) t.level = live, t.shrinks = false;
    return live;
  }
  // Bins count as half full. A thread that only frees blocks of others counts those of the process.
  static std::size_t live_bytes(const Thread& t) {
    if (t.taken <= 0) return Retain::live_bytes(t.retain);
    const auto taken = static_cast<std::size_t>(t.taken);
    const std::size_t cached = t.capacity_bytes / 2 + Exchange::outbox_bytes(t.exchange);
    return taken > cached ? taken - cached : 0;
  }
  // Then purges, and discards free pages of spans, as far as it is paid for (box/retain).
  HZ_SLOW static void halved(Thread& t, std::size_t live) {
    t.level = live;
    R::give_up(t, true);
    R::leave(t);
    Retain::bins_shrunk(t.retain, t.capacity_bytes);
    t.capacity_bytes = 0;
    Retain::fold(S::global.retain, t.retain);
    Spans::purge_if_due(t);
    if (Retain::has_purger(S::global.retain)) return;
    // While more than one slot in eight is out, few pages are free.
    const std::size_t in_spans = S::held().in_spans, spans = Retain::span_bytes(S::global.retain);
    if (in_spans >= spans / 8 * 7)
      discard(in_spans, [&](std::size_t paid) { return Discard<Line>::all(t, paid); });
  }
  HZ_SLOW static void sweep(Thread& t) {
    discard(S::held().in_spans, [&](std::size_t) { return Discard<Line>::go_on(t, os::milliseconds()); });
  }
  // What the user lets stay, stays.
  static void discard(std::size_t in_spans, auto pages) {
    const std::size_t paid = Retain::paid_for(S::global.retain);
    if (paid == 0 || Retain::unneeded(S::global.retain, in_spans, true).dirty == 0) return;
    Retain::purged(S::global.retain, pages(paid));
  }

  static void make_room(Thread& t, Bin bin) {
    C::grow(t, bin);
    C::look_at_one(t, bin);
    if (!give_magazine(t, bin)) {
      const unsigned capacity = Front::capacity(t.front, bin);
      const unsigned count = Front::count(t.front, bin);
      if (count < capacity) return;
      const unsigned keep =
          capacity == 0 ? 0 : capacity - Policy::flush_batch(bin, capacity, goes_on(t, bin, false));
      R::drain(t, bin, count - keep, false);
    }
    Spans::purge_if_due(t);
  }
  // A bin of two magazines, of which the one at hand is empty or full and the other one is not, needs nobody
  // else.
  static bool swap(Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) return Front::swap(t.front, bin);
    return false;
  }
  // Whether what waits in the exchange comes in by whole magazines, and leaves so.
  static bool exchanges(const Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) return Front::exchanges(t.front, bin);
    return false;
  }
  // Whether one did.
  static bool take_magazine(Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) {
      auto* full = Transfer::take_magazine(t, bin);
      if (full == nullptr || full->count == 0) return Exchange::give_empty(full), false;
      t.took(bin, full->count);
      Exchange::give_empty(Front::exchange(t.front, bin, full));
      return true;
    }
    return false;
  }
  static bool give_magazine(Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) {
      auto* empty = exchanges(t, bin) ? Exchange::take_empty() : nullptr;
      if (empty == nullptr) return false;
      auto* full = Front::exchange(t.front, bin, empty);
      if (full != nullptr) t.gave(bin, full->count);
      Transfer::put_magazine(t, bin, full);
      return true;
    }
    return false;
  }

  // First slot to the caller, the rest into the bin; nullptr if there is none.
  static void* stock(Thread& t, Bin bin, const Bundle& bundle) {
    if (bundle.count == 0) return nullptr;
    t.took(bin, bundle.count);
    Front::fill(t.front, bin, bundle);
    return popped(t, bin);
  }

  // Returns the number of the threads that prefer a span's slots from now on: those of an owner, or of a
  // processor. Those of a forked child, and none of its parent's.
  static unsigned span_owner(const Thread& t) {
    const unsigned forks = S::global.forks % (~0U / Pool::kMostOwners);
    return forks * Pool::kMostOwners + (Route::kOwned ? t.owner : os::current_cpu() % kSpanOwners);
  }

  // Returns true if the thread takes a new span rather than slots of a span that another owner prefers. Where
  // owners are told apart, a span that has slots of two costs each of them remote frees. In the child of a
  // fork, a slot between blocks of its parent costs a page that is copied.
  static bool keeps_apart(const Thread& t) {
    if (S::global.forks != 0) return true;
    return Route::kOwned &&
           Retain::may_spread(t.retain, S::global.huge_bytes.load(std::memory_order_relaxed));
  }

  // The source would not refuse a span of the class for a limit: whoever is refused has to reclaim.
  static bool has_room(Bin bin) {
    return Source::has_room(S::global.source, std::size_t{bin_granules(bin)} << kGranuleShift);
  }

  static void* take_from_spans(Thread& t, Bin bin, unsigned want, bool anybodys, bool& zeroed) {
    Bundle bundle = Front::space(t.front, bin, want);
    const Taken taken = take_some(t, bin, want, anybodys, bundle);
    return taken.slots != 0 ? hand_out(t, bin, taken, bundle, zeroed) : nullptr;
  }
  static void* take_from_new(Thread& t, Bin bin, unsigned want, bool& zeroed, bool reclaimed) {
    Bundle bundle = Front::space(t.front, bin, want);
    const Taken taken = take_new(t, bin, want, reclaimed, bundle);
    return taken.slots != 0 ? hand_out(t, bin, taken, bundle, zeroed) : nullptr;
  }
  // Takes from further spans until the bin has what the refill asked for, less the slot that it returns: a
  // span of medium slots has few of them, and a crossing costs as much as ten slots. Not for slots of a page
  // where bins write into those that they keep: these come alone.
  HZ_SLOW static void top_up(Thread& t, Bin bin, unsigned want) {
    for (unsigned count = 0; (count = Front::count(t.front, bin) + 1) < want;) {
      Bundle bundle = Front::space(t.front, bin, want - count);
      Taken taken = take_some(t, bin, want - count, !keeps_apart(t), bundle);
      if (taken.slots == 0 && has_room(bin)) taken = take_new(t, bin, want - count, false, bundle);
      if (taken.slots == 0) return;
      receive(t, bin, taken, bundle, 0);
    }
  }
  // Of one span: those that were free are in the bundle, those that were carved are not.
  static void* hand_out(Thread& t, Bin bin, const Taken& taken, Bundle bundle, bool& zeroed) {
    Carved carved = receive(t, bin, taken, bundle, 1);
    if (!taken.fresh) return popped(t, bin);
    void* slot = carved.next();
    if (HZ_UNLIKELY(!Spans::move(bin, slot, Phase::kLocalFree))) return popped(t, bin);
    zeroed = taken.zeroed;
    // Recycled memory may still carry the mark of a slot that lay here before; zeroed memory is not touched.
    if (!Guard::kMarks || !zeroed) Guard::on_alloc(slot, bin);
    return slot;
  }
  // Into the bin, but for `rest` of those that were carved.
  HZ_INLINE static Carved receive(Thread& t, Bin bin, const Taken& taken, Bundle bundle, unsigned rest) {
    Retain::slots_out(t.retain, taken.slots * bin_size(bin));
    if (taken.pages != 0) bind(t, bin, taken);
    Carved carved = Pool::carved(taken, bin);
    if (taken.fresh) {
      guard_tail(t, bin, taken);
      while (carved.left() != rest) {
        void* slot = carved.next();
        if (Guard::kMarks) Guard::on_free(t.guard, slot, bin);
        bundle.push(slot);
      }
    } else {
      Spans::check_marks(t, bin, bundle);
    }
    Spans::move(bin, bundle, Phase::kLocalFree);
    t.took(bin, taken.fresh ? taken.slots : bundle.count);
    if (bundle.count != 0) Front::fill(t.front, bin, bundle);
    return carved;
  }
  static constexpr unsigned kMostAtOnce = 90;  // in band, for small stacks: test/stack
  static unsigned at_once(unsigned want) {
    return !Front::kInBand || want < kMostAtOnce ? want : kMostAtOnce;
  }
  // Those that are free in a span, into the bundle; no user memory is touched under the pool's lock.
  // A frame of its own: test/stack.
  HZ_SLOW static Taken take_some(Thread& t, Bin bin, unsigned want, bool anybodys, Bundle& out) {
    if constexpr (Front::kInBand) {
      void* slots[kMostAtOnce];
      const Taken taken = Pool::take(S::shelves.pool, bin, span_owner(t), slots, at_once(want), anybodys);
      for (unsigned i = 0; i < taken.slots && !taken.fresh; ++i) out.push(slots[i]);
      return taken;
    } else {
      const Taken taken = Pool::take(S::shelves.pool, bin, span_owner(t), out.slots, want, anybodys);
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

  // Where the last page ends in less than a slot, an address there must look like a free slot: it was never
  // handed out.
  static void guard_tail(Thread& t, Bin bin, const Taken& taken) {
    const std::size_t end = bin_slots(bin) * bin_size(bin);
    const std::size_t pages_end = std::size_t{taken.first_page + taken.pages} << kPageShift;
    if (Guard::kMarks && pages_end > end && end < kGranule)
      Guard::on_free(t.guard, pointer(taken.span + end), bin);
  }

  // A span of the class would cost page faults: nothing that was touched before is free.
  static bool maps(Bin bin) {
    return Source::dirty_bytes(S::global.source) < std::size_t{bin_granules(bin)} << kGranuleShift;
  }

  // Where spans are carved whole, the slots are in the bundle.
  static Taken take_new(Thread& t, Bin bin, unsigned want, bool reclaimed, Bundle& bundle) {
    if constexpr (Pool::kWholeSpans) {
      const Taken taken = new_span(t, bin, want, reclaimed, bundle.slots);
      bundle.count = taken.slots;
      return taken;
    } else {
      return new_span(t, bin, want, reclaimed);
    }
  }
  // Where spans are carved whole, the slots are listed in `out`.
  static Taken new_span(Thread& t, Bin bin, unsigned want, bool reclaimed, void** out = nullptr) {
    const Demand demand = {.force = reclaimed, .used = bin_slots(bin) * bin_size(bin)};
    const Run run = M::acquire_span(bin_granules(bin), demand);
    if (run.at == 0) return {};
    Spans::count_purge(t, run.purged);
    if (run.zeroed && Policy::looks() != 0) Discard<Line>::next(t, Policy::looks());
    M::prepare_span(run, bin);
    // As soon as the pool has the span, others may take slots of it.
    if constexpr (Pool::kWholeSpans)
      Route::bind(S::global.route, run.at, bin_slots(bin) * bin_size(bin), bin, t.owner);
    const Taken taken =
        Pool::adopt(S::shelves.pool, run.at, bin, span_owner(t), run.zeroed, at_once(want), out);
    const std::size_t bytes = std::size_t{bin_granules(bin)} << kGranuleShift;
    Retain::span_used(t.retain, bytes);
    Observe::count(t.observe, Event::kSpanAcquired, 1);
    os::probe::span_acquired(run.at, bytes);
    if (Policy::watches()) Policy::span_acquired(bin);
    return taken;
  }
};

}  // namespace hz
