// SPDX-License-Identifier: Apache-2.0
//
// Where slots come from when none waits for the thread: spans with free slots, and new spans. Called by the
// boundary with the thread's lock held; costs the pool's lock, and for a new span the source's.
#pragma once

#include "heap/exchange/reclaim.hpp"
#include "heap/spans/discard.hpp"

namespace hz {

template <class Line>
struct SpanSupply {
  using S = State<Line>;
  using Spans = SpanReturn<Line>;
  using Transfer = TransferCache<Line>;
  using R = Reclaim<Line>;
  using M = MitigationOf<Line>;
  using Thread = typename S::Thread;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Guard = typename Line::Guard;
  using Policy = typename Line::Policy;
  using Observe = typename Line::Observe;

  static constexpr unsigned kSpanOwners = Composition<Line>::kSpanOwners;

  // Takes a slot of the bin that the guard accepts; returns nullptr only if the bin is empty. A slot that was
  // written to stays out of circulation.
  static void* popped(Thread& t, Bin bin) { return popped(t.front, bin); }
  static void* popped(typename Front::PerThread& front, Bin bin) {
    Front::check(front, bin, os::is_forked());
    while (void* slot = Front::pop(front, bin)) {
      if (HZ_LIKELY(Guard::on_alloc(slot, bin))) return slot;
      Faults<Line>::note(Guard::fault_of_free(slot, bin), slot, bin);
    }
    return nullptr;
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

  // Returns true if the thread takes a new span rather than slots of a span that another owner prefers. In
  // lines with owners, a span that has slots of two costs each of them remote frees. In the child of a fork,
  // a slot between blocks of its parent costs a page that is copied.
  static bool keeps_apart(const Thread& t) {
    if (os::is_forked()) return true;
    return Route::kOwned &&
           Retain::may_spread(t.retain, S::global.huge_bytes.load(std::memory_order_relaxed));
  }

  // Returns true if no limit refuses a span of the class. A caller that is refused has to reclaim.
  static bool has_room(Bin bin) {
    return Source::has_room(S::global.source, std::size_t{bin_granules(bin)} << kGranuleShift);
  }
  // A span of the class would cost page faults: nothing that was touched before is free.
  static bool maps(Bin bin) {
    return Source::dirty_bytes(S::global.source) < std::size_t{bin_granules(bin)} << kGranuleShift;
  }

 private:
  // Returns the number of the threads that prefer a span's slots from now on: those of an owner, or of a
  // processor. Those of a forked child, and none of its parent's.
  static unsigned span_owner(const Thread& t) {
    return os::process_number_below(~0U / Pool::kMostOwners) * Pool::kMostOwners +
           (Route::kOwned ? t.owner : os::current_cpu() % kSpanOwners);
  }

  // Hands out the slots of one span: those that were free are in the bundle, those that were carved are not.
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
  // Those that are free in a span, into the bundle; no user memory is touched under the pool's lock. A
  // separate frame: test/stack bounds it.
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
    Policy::span_acquired(t.policy, bin);
    return taken;
  }
};

}  // namespace hz
