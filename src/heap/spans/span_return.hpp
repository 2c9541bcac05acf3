// SPDX-License-Identifier: Apache-2.0
//
// The way back: from free slots to their spans, from empty spans to the source, from free pages to the
// system; and the look at every slot on its way. The lower half of the boundary: called by boundary.hpp, by
// what lies between, and by huge blocks when they go.
#pragma once

#include "heap/state/block.hpp"
#include "heap/state/faults.hpp"
#include "heap/state/mitigation.hpp"

namespace hz {

template <class Line>
struct SpanReturn {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Guard = typename Line::Guard;
  using Observe = typename Line::Observe;
  using Policy = typename Line::Policy;

  // The caller looks whether a purge is due when it has put back all that it will.
  static void put_back(Thread& t, Bin bin, Bundle bundle) {
    move(bin, bundle, Phase::kCentralFree);
    if constexpr (Front::kInBand) {
      void* slots[kStep];
      while (const unsigned n = bundle.take(slots, kStep)) put_back(t, bin, slots, n);
    } else {
      for (unsigned n = 0; bundle.count != 0; bundle.slots += n, bundle.count -= n) {
        n = bundle.count < kStep ? bundle.count : kStep;
        put_back(t, bin, bundle.slots, n);
      }
    }
  }

  // Reports a move to the guard before slots come to their new place, so that no other thread has them yet. A
  // slot that was not where it can come from is reported, and stays out of circulation.
  static void move(Bin bin, Bundle& bundle, Phase to) {
    if constexpr (Guard::kTracks) {
      const unsigned count = bundle.count;
      bundle.count = 0;
      for (unsigned i = 0; i < count; ++i) {
        void* slot = bundle.slots[i];
        if (HZ_LIKELY(move(bin, slot, to))) bundle.push(slot);
      }
    }
  }
  static bool move(Bin bin, void*& slot, Phase to) {
    if (HZ_LIKELY(Guard::move(slot, bin, to))) return true;
    Faults<Line>::note(Fault::kDoubleFree, slot, bin);
    return false;
  }

  // Reports slots that were written to after their free, and keeps them out of circulation. Checks them while
  // they are in this core's cache anyway: on their way out of a thread and out of a span.
  static void check_marks(Thread& t, Bin bin, Bundle& bundle) {
    if constexpr (Guard::kMarks) {
      const FreeSlot* slot = bundle.first;
      for (unsigned i = 0; i < bundle.count; ++i, slot = slot->next) {
        if (HZ_UNLIKELY(!Guard::intact(t.guard, slot))) return drop_corrupted(t, bin, bundle);
      }
    }
  }

  // Where nothing tells at the free whether a slot is free, what comes into a bin is proved when it returns
  // to its span. This is the proof for slots that do not.
  static void prove(Bin bin, Bundle& bundle) {
    if constexpr (!Guard::kProves) {
      const unsigned count = bundle.count;
      bundle.count = Pool::sift(S::shelves.pool, bin, bundle.slots, count);
      for (unsigned i = bundle.count; i < count; ++i) note_wrong(bin, bundle.slots[i]);
    }
  }

  // What one free hands to the system at most, so that none takes long: the purger or the next ones go on.
  static constexpr std::size_t kPurgedAtOnce = 8 * kMiB;

  static std::size_t purge(Thread& t, std::size_t keep, std::size_t most) {
    const std::size_t purged = Source::purge(S::global.source, keep, most);
    count_purge(t, purged);
    return purged;
  }
  static void count_purge(Thread& t, std::size_t bytes) {
    if (bytes == 0) return;
    Observe::count(t.observe, Event::kPurge, 1);
    Observe::count(t.observe, Event::kPurgedBytes, bytes);
  }
  // Returns true if, with so many bytes more, more than allowed would be dirty. Memory that others free is
  // dirty at once, and is counted later: before it returns true, it reads the sums again.
  static bool too_dirty(Thread& t, std::size_t more) {
    const std::size_t dirty = Source::dirty_bytes(S::global.source) + more;
    if (HZ_LIKELY(dirty <= Retain::dirty_limit(S::global.retain, t.retain))) return false;
    Retain::look(S::global.retain, t.retain);
    return dirty > Retain::dirty_limit(S::global.retain, t.retain);
  }
  // Returns true if one free may hand so many bytes to the system.
  static bool may_purge(std::size_t bytes) {
    return bytes <=
           (Retain::has_purger(S::global.retain) ? kPurgedAtOnce : Retain::paid_for(S::global.retain));
  }
  // At most kPurgedAtOnce or `least` bytes, and what is paid for; of a process that has next to nothing, all
  // of that, for the next free may be the last one.
  static void purge_if_due(Thread& t, std::size_t least = 0) {
    if (!too_dirty(t, 0)) return;
    const std::size_t usual = least > kPurgedAtOnce ? least : kPurgedAtOnce, most = purgeable(t, usual);
    if (most == 0) return;
    Retain::purged(S::global.retain, purge(t, Retain::dirty_target(S::global.retain, t.retain), most));
  }
  static bool has_slack(const Thread& t) {
    return Retain::has_slack(S::global.retain, t.retain, S::global.huge_bytes.load(std::memory_order_relaxed),
                             S::global.thread_count.load(std::memory_order_relaxed));
  }
  // Without a purger a slot that waits while there is slack could keep a span for good.
  static bool may_wait(const Thread& t, std::size_t slot) {
    return Retain::may_wait(S::global.retain, t.retain, slot) &&
           (Retain::has_purger(S::global.retain) || !has_slack(t));
  }

  // A span of which the pool has all slots goes back to the source.
  static void retire(Thread& t, Bin bin, std::uintptr_t span) {
    if (const void* slot = Guard::retire(span, bin)) Faults<Line>::note(Fault::kDoubleFree, slot, bin);
    const std::size_t bytes = std::size_t{bin_granules(bin)} << kGranuleShift;
    Route::clear(S::global.route, span, is_large(bin) ? kPage : kGranule);
    count_purge(t, MitigationOf<Line>::release_span(span, bytes));
    Retain::span_retired(t.retain, bytes);
    Observe::count(t.observe, Event::kSpanRetired, 1);
    os::probe::span_retired(span, bytes);
    if (Policy::watches()) Policy::span_retired(bin);
  }

  // A span that the pool let go: what of it has no memory is not purged again. The tail does not count: a run
  // may be a span many times before it is purged, and that would be taken off each time.
  static void emptied(Thread& t, Bin bin, std::uintptr_t span) {
    Retain::purged_before(S::global.retain, Pool::absent_bytes(S::shelves.pool, span, bin));
    retire(t, bin, span);
  }

  // Whether a slot of the class lies there; any pointer may be asked about.
  static bool is_slot(const FreeSlot* slot, Bin bin) {
    return classify<Line>(slot).bin == bin && is_slot_start(bin, static_cast<std::uint16_t>(address(slot)));
  }

 private:
  static std::size_t purgeable(const Thread& t, std::size_t usual) {
    if (Retain::has_purger(S::global.retain)) return usual;
    const std::size_t paid = Retain::paid_for(S::global.retain);
    return paid < usual || Retain::live_bytes(t.retain) <= Retain::little(S::global.retain) ? paid : usual;
  }

  static constexpr unsigned kStep =
      Front::kInBand ? 24 : 64;  // slots for which the lock of their shelf is held, at most

  static void put_back(Thread& t, Bin bin, void** slots, unsigned count) {
    const Given given = Pool::give(S::shelves.pool, bin, slots, count);
    Retain::slots_returned(t.retain, given.kept * bin_size(bin));
    for (std::uintptr_t span = given.emptied; span != 0;) {
      const std::uintptr_t next = Pool::next_emptied(S::shelves.pool, span);
      emptied(t, bin, span);
      span = next;
    }
    for (unsigned i = 0; i < given.rejected; ++i) note_wrong(bin, slots[i]);
  }

  // Freed twice, or never handed out.
  HZ_COLD static void note_wrong(Bin bin, const void* slot) {
    const std::uintptr_t at = address(slot);
    const bool bound = classify<Line>(slot).bin == bin;
    const bool carved = Pool::bin_at(S::shelves.pool, at & ~(kGranule - 1), at) == bin;
    Faults<Line>::note(bound && !carved ? Fault::kNotAllocated : Fault::kDoubleFree, slot, bin);
  }

  HZ_COLD static void drop_corrupted(Thread& t, Bin bin, Chain& chain) {
    Chain kept = {};
    FreeSlot* slot = chain.first;
    for (unsigned i = 0; i < chain.count; ++i) {
      FreeSlot* next = slot->next;
      if (Guard::intact(t.guard, slot)) {
        kept.push(slot);
      } else {
        Faults<Line>::note(Fault::kWriteAfterFree, slot, bin);
        if (!is_slot(next, bin)) break;  // the link went with the mark: what follows is lost
      }
      slot = next;
    }
    chain = kept;
  }
};

}  // namespace hz
