// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a pointer that is no live block, and telling the user. Called by the slow paths of
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
  using Tag = typename Route::Tag;

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
  static bool plausible(Tag tag, const void* block) {
    const Finding found = look(tag, block);
    if (HZ_LIKELY(found.fault == Fault::kNone)) return true;
    Guard::report(found.fault, block, found.bin, Line::kName);
    return false;
  }

  static Finding look(Tag tag, const void* block) {
    const Bin bin = Route::bin(tag);
    if (HZ_UNLIKELY(tag == 0)) return diagnose_untagged(block);
    if (HZ_UNLIKELY(bin == kHeapBin)) return Heaps<Line>::look(block);
    if (bin != kHugeBin) return {fault_of_slot(bin, block), bin};
    if (static_cast<std::uint16_t>(address(block)) != 0) return {Fault::kInterior, bin};
    if constexpr (Guard::kSealBytes != 0) {
      if (!Guard::is_run_sealed(block)) return {Fault::kOutOfBounds, bin};
    }
    return {Fault::kNone, bin};
  }

 private:
  // Nothing is handed out at this address: outside of the arena, a place without a slot, or inside a block
  // that began on another page.
  HZ_COLD static Finding diagnose_untagged(const void* block) {
    if (GuardedPool::has(block)) {
      const GuardedPool::Finding found = GuardedPool::look(block);
      return {found.fault, found.bin};
    }
    if (!Route::covers(S::global.route, address(block))) return {Fault::kForeign, 0};
    Forks<Line>::notice_process();  // the arena's lock may be held in a child by nobody
    const std::uintptr_t start = Source::start(S::global.source, address(block));
    if (start == 0) return {Fault::kNotAllocated, 0};
    if (Route::bin(Route::find(S::global.route, start)) == kHugeBin) return {Fault::kInterior, kHugeBin};
    const Bin bin = Line::Pool::bin_at(S::shelves.pool, start, address(block));
    return {bin != 0 ? Fault::kInterior : Fault::kNotAllocated, bin};
  }
};

}  // namespace hz
