// SPDX-License-Identifier: Apache-2.0
//
// Visits all live blocks, or those of one first-class heap. Called by the direct API: hz_walk, hz_heap_walk,
// hz_heap_stats. All thread caches are flushed first, so that every slot outside of its span is a live block.
// Then each granule that was ever used is scanned: its slots are copied under the span's lock, and the
// visitor runs without a lock. Cost: a trim that purges nothing, 16,384 rows for each GiB of heap, and the
// visits.
//
// A thread that allocates or frees during the walk, the visitor included, may cache slots again. The walk may
// visit such a slot although it is free.
#pragma once

#include "hakozuna/hakozuna.h"
#include "heap/heaps/heaps.hpp"
#include "heap/process/revoke.hpp"

namespace hz {

template <class Line>
struct Walk {
  using S = State<Line>;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;
  using Visit = hz_visit_t;

  // Visits the blocks of the whole process. Returns the visitor's first answer that is not 0, or 0.
  static int all(Visit visit, void* argument) {
    if (!Start<Line>::open()) return 0;
    take_back_caches();
    const int answer = rows([&](std::uintptr_t at) { return of_granule(at, visit, argument); });
    return answer != 0 ? answer : Extensions::walk(visit, argument);
  }
  // Visits the blocks of one first-class heap, as above. Errors: a handle without a heap is reported (E07),
  // and the answer is -1.
  static int of_heap(HeapHandle heap, Visit visit, void* argument) {
    if (!Heaps<Line>::is_there(heap)) return -1;
    return rows([&](std::uintptr_t at) { return of_granule_in(number(heap), at, visit, argument); });
  }
  // Sums up what a first-class heap has. Returns 0; -1 as above.
  static int figures(HeapHandle heap, hz_heap_stats_t& out) {
    if (!Heaps<Line>::is_there(heap)) return -1;
    const Visit count = [](void*, std::size_t bytes, void* stats) {
      ++static_cast<hz_heap_stats_t*>(stats)->blocks;
      static_cast<hz_heap_stats_t*>(stats)->bytes_live += bytes;
      return 0;
    };
    rows([&](std::uintptr_t at) {
      const std::uint64_t live = out.bytes_live;
      of_granule_in(number(heap), at, count, &out);
      out.bytes_held +=
          HeapWays<Line>::holder_of_chunk(at) == number(heap) ? kGranule : out.bytes_live - live;
      return 0;
    });
    return 0;
  }

 private:
  static constexpr std::size_t kAtOnce = 1024;  // rows that the source is asked for

  static std::uint32_t number(HeapHandle heap) { return HeapTable::number(heap); }

  static void take_back_caches() {
    Threads<Line>::collect_leftovers();
    Revocation<Line>::revoke_others();
    typename Threads<Line>::Entered here;
    Reclaim<Line>::give_up(here.thread(), true);
    TransferCache<Line>::flush_all(here.thread());
    // Waits for slots that the purger has taken, and not yet put back.
    const typename S::Hold purger(S::purger_state.lock, os::Rank::kPurger);
  }

  static int rows(auto visit) {
    Rows some;
    for (std::size_t from = 0;
         some = Source::rows_from(S::global.source, from, kAtOnce), some.begin != some.end; from = some.end) {
      for (std::size_t row = some.begin; row < some.end; ++row)
        if (const int answer = visit(Source::base(S::global.source) + (row << kGranuleShift))) return answer;
    }
    return 0;
  }

  static int of_granule(std::uintptr_t at, Visit visit, void* argument) {
    switch (classify<Line>(pointer(at)).kind) {
      case Kind::kNothing:
      case Kind::kExtension:  // they have a separate walk
        return 0;
      case Kind::kInHeap: return Heaps<Line>::walk_chunk(at, Heaps<Line>::kAnyHeap, visit, argument);
      case Kind::kRun: return of_run(at, visit, argument);
      case Kind::kSlot: return of_span(at, visit, argument);
    }
    return 0;
  }
  static int of_granule_in(std::uint32_t heap, std::uintptr_t at, Visit visit, void* argument) {
    const Kind kind = classify<Line>(pointer(at)).kind;
    if (kind == Kind::kInHeap) return Heaps<Line>::walk_chunk(at, heap, visit, argument);
    if (kind != Kind::kRun || Source::holder(S::global.source, at) != heap) return 0;
    return of_run(at, visit, argument);
  }
  // A separate frame, as of the others: the visitor is called with little of ours on the stack.
  HZ_SLOW static int of_span(std::uintptr_t at, Visit visit, void* argument) {
    OutOfSpan out;
    {
      const typename Threads<Line>::Entered here;  // a fork waits for the holder of a span's lock
      Pool::note_slots_out(S::shelves.pool, at, out);
    }
    for (unsigned i = 0; i < out.slots; ++i) {
      if ((out.bits[i / 64] >> i % 64 & 1) == 0) continue;
      if (const int answer = visit(pointer(at + i * bin_size(out.bin)), bin_size(out.bin), argument))
        return answer;
    }
    return 0;
  }
  // Reads nothing of the run itself: another thread may free it meanwhile.
  static int of_run(std::uintptr_t at, Visit visit, void* argument) {
    const std::size_t bytes = Source::granules(S::global.source, at) << kGranuleShift;
    return bytes == 0 ? 0 : visit(pointer(at), Huge<Line>::noted_bytes(pointer(at), bytes), argument);
  }
};

}  // namespace hz
