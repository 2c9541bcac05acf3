// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a pointer that is no live block, and telling the user. Called by the slow paths of heap.hpp, by
// realloc and by usable_size; a few loads for a pointer with which nothing is wrong.
#pragma once

#include "heap/huge.hpp"

namespace hz {

template <class Line>
struct Judge {
  using S = State<Line>;
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Guard = typename Line::Guard;
  using Remote = typename Line::Remote;
  using Source = typename Line::Source;
  using Tag = typename Route::Tag;

  // The start of a slot that is not free; reports what it is if not.
  static bool plausible(Tag tag, const void* block) {
    const Bin bin = Route::bin(tag);
    Fault fault = Fault::kNone;
    if (HZ_UNLIKELY(tag == 0)) {
      fault = diagnose_untagged(block);
    } else if (bin == kHugeBin) {
      fault = static_cast<std::uint16_t>(address(block)) == 0 ? Fault::kNone : Fault::kInterior;
    } else {
      fault = Guard::diagnose(S::shared.guard, const_cast<void*>(block), bin);
      const auto& t = S::fast();
      const bool latest = Front::is_latest(t.front, bin, block) || Remote::is_latest(t.remote, block);
      if (!Guard::kProves && fault == Fault::kNone && latest) fault = Fault::kDoubleFree;
    }
    if (HZ_LIKELY(fault == Fault::kNone)) return true;
    refuse(fault, block, bin);
    return false;
  }

  HZ_COLD static void refuse(Fault fault, const void* block, Bin bin) {
    if (fault == Fault::kInterior && bin == 0) {
      bin = Line::Pool::bin_at(S::shelves.pool, Source::start(S::global.source, address(block)), address(block));
    }
    Guard::report(fault, block, bin, Line::kName);
  }

 private:
  // Nothing is handed out at this address: outside of the arena, a place without a slot, or inside a block that began
  // on another page.
  HZ_COLD static Fault diagnose_untagged(const void* block) {
    if (!Route::covers(S::global.route, address(block))) return Fault::kForeign;
    const std::uintptr_t start = Source::start(S::global.source, address(block));
    if (start == 0) return Fault::kNotAllocated;
    const bool huge = Route::bin(Route::find(S::global.route, start)) == kHugeBin;
    return huge || Line::Pool::bin_at(S::shelves.pool, start, address(block)) != 0 ? Fault::kInterior
                                                                                   : Fault::kNotAllocated;
  }
};

}  // namespace hz
