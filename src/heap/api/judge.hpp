// SPDX-License-Identifier: Apache-2.0
//
// Finds what is wrong with a pointer that is no live block, and reports it. Called by the slow paths of
// heap.hpp, by realloc and by usable_size; a few loads for a pointer with which nothing is wrong.
#pragma once

#include "heap/heaps/heaps.hpp"

namespace hz {

template <class Line>
struct Judge {
  using S = State<Line>;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Guard = typename Line::Guard;
  using Exchange = typename Line::Exchange;
  using Source = typename Line::Source;

  // `bin` is a class.
  HZ_INLINE static Fault fault_of_slot(Bin bin, const void* block) {
    const Fault fault = Guard::diagnose(S::shared.guard, const_cast<void*>(block), bin);
    if (Guard::kProves || fault != Fault::kNone) return fault;
    const auto& t = S::fast();
    const bool latest = Front::is_latest(t.front, bin, block) || Exchange::is_latest(t.exchange, block);
    return latest ? Fault::kDoubleFree : Fault::kNone;
  }

  // The start of a slot that is not free; reports what it is if not. Of a tag, a run and a span there is one
  // look each: they may change at any time.
  HZ_INLINE static bool plausible(const Block<Line>& found, const void* block) {
    const Finding finding = look(found, block);
    if (HZ_LIKELY(finding.fault == Fault::kNone)) return true;
    Guard::report(finding.fault, block, finding.bin, Line::kName);
    return false;
  }

  HZ_INLINE static Finding look(const Block<Line>& found, const void* block) {
    switch (found.kind) {
      case Kind::kSlot: return {fault_of_slot(found.bin, block), found.bin};
      case Kind::kRun:
        if (static_cast<std::uint16_t>(address(block)) != 0) return {Fault::kInterior, found.bin};
        return {MitigationOf<Line>::is_run_whole(block) ? Fault::kNone : Fault::kOutOfBounds, found.bin};
      case Kind::kInHeap: return Heaps<Line>::look(block);
      case Kind::kExtension: return Extensions::look(block);
      case Kind::kNothing: return look_around(block);
    }
    return {Fault::kForeign, 0};
  }

 private:
  // Nothing is handed out at this address: outside of the arena, a place without a slot, or inside a block
  // that began on another page.
  HZ_COLD static Finding look_around(const void* block) {
    if (!Route::covers(S::global.route, address(block))) return {Fault::kForeign, 0};
    Forks<Line>::notice_process();  // in a child, a lost thread may hold the arena's lock
    const std::uintptr_t start = Source::start(S::global.source, address(block));
    if (start == 0) return {Fault::kNotAllocated, 0};
    if (classify<Line>(pointer(start)).kind == Kind::kRun) return {Fault::kInterior, kHugeBin};
    const Bin bin = Line::Pool::bin_at(S::shelves.pool, start, address(block));
    return {bin != 0 ? Fault::kInterior : Fault::kNotAllocated, bin};
  }
};

}  // namespace hz
