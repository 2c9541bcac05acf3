// SPDX-License-Identifier: Apache-2.0
//
// The way home: from loose slots to their spans, from empty spans to the source, from free pages to the system; and the
// look at every slot on its way. The lower half of the boundary: called by refill.hpp, and by huge blocks when they go.
#pragma once

#include "heap/state.hpp"

namespace hz {

template <class Line>
struct Home {
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

  // The caller looks whether a purge is due when it has sent home all that it will.
  static void go_home(Thread& t, Bin bin, Bundle bundle) {
    constexpr unsigned kStep = 64;
    void* slots[kStep];
    std::uintptr_t emptied[kStep];
    while (const unsigned n = bundle.take(slots, kStep)) {
      const Given given = Pool::give(S::shelves.pool, bin, slots, n, emptied, slots);
      Retain::slots_home(S::global.retain, given.kept * bin_size(bin));
      for (unsigned i = 0; i < given.rejected; ++i) Guard::report(Fault::kDoubleFree, slots[i], bin, Line::kName);
      for (unsigned i = 0; i < given.emptied; ++i) retire(t, bin, emptied[i]);
    }
  }

  // Slots that somebody wrote to after freeing them are reported, and kept out of circulation. Looked at where the
  // slots are in this core's cache anyway: on their way out of a thread and out of a span.
  static void audit(Thread& t, Bin bin, Bundle& bundle) {
    if constexpr (Guard::kMarks) {
      const FreeSlot* slot = bundle.first;
      for (unsigned i = 0; i < bundle.count; ++i, slot = slot->next) {
        if (HZ_UNLIKELY(!Guard::intact(t.guard, slot))) return weed(t, bin, bundle);
      }
    }
  }

  static std::size_t purge(Thread& t, std::size_t keep) {
    const std::size_t purged = Source::purge(S::global.source, keep);
    if (purged != 0) {
      Observe::count(t.observe, Event::kPurge, 1);
      Observe::count(t.observe, Event::kPurgedBytes, purged);
    }
    return purged;
  }
  static void purge_if_due(Thread& t) {
    if (Source::dirty_bytes(S::global.source) > Retain::dirty_limit(S::global.retain))
      purge(t, Retain::dirty_target(S::global.retain));
  }

  // Whether a slot of the class lies there; any pointer may be asked about.
  static bool is_slot(const FreeSlot* slot, Bin bin) {
    const std::uintptr_t at = address(slot);
    return Route::bin(Route::find(S::global.route, at)) == bin &&
           is_slot_start(bin, static_cast<std::uint16_t>(at & (kGranule - 1)));
  }

 private:
  static void retire(Thread& t, Bin bin, std::uintptr_t span) {
    Route::clear(S::global.route, span, is_large(bin) ? kPage : kGranule);
    Source::release(S::global.source, span, false);
    Observe::count(t.observe, Event::kSpanRetired, 1);
  }

  HZ_COLD static void weed(Thread& t, Bin bin, Chain& chain) {
    Chain kept;
    FreeSlot* slot = chain.first;
    for (unsigned i = 0; i < chain.count; ++i) {
      FreeSlot* next = slot->next;
      if (Guard::intact(t.guard, slot)) {
        kept.push(slot);
      } else {
        Guard::report(Fault::kWriteAfterFree, slot, bin, Line::kName);
        if (!is_slot(next, bin)) break;  // the link went with the mark: what follows is lost
      }
      slot = next;
    }
    chain = kept;
  }
};

}  // namespace hz
