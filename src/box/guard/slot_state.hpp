// SPDX-License-Identifier: Apache-2.0
//
// A guard whose authority stands out of line: one byte per slot, in tables beside the arena, says whether the
// program has it. A free must name the start of a slot (one multiplication) that is live (one compare with
// that byte), so every second free is found at the free itself, and nothing that a program writes can hide
// it. Used by hz5 and hz8. Costs one store a malloc, one load and one store a free.
//
//   nothing   never handed out since the pages were last given back
//   live      the program has it
//   claimed   a remote thread freed it (compare-and-swap: of two one gets it) and it is on its way back
//   free      in a thread's bin, or in its span
//
// Only the holder of a slot writes its byte: the program by freeing it, or the thread in whose bin it lies.
// So the owner's free is a plain load and store. If a remote free of the same block falls within those few
// instructions, both pass. Then the slot does not arrive as claimed, is reported, and is not taken twice.
#pragma once

#include "base/slot_bytes.hpp"
#include "box/guard/report.hpp"

namespace hz {

template <class Line>
struct SlotState : SlotBytes<Line>, WithoutPhases {
  static constexpr bool kMarks = false;
  static constexpr bool kProves = true;
  static constexpr bool kClaims = true;

  enum State : std::uint8_t { kNothing = 0, kLive, kClaimed, kFree };

  struct PerThread {};

  static void join(PerThread&) {}
  HZ_INLINE static bool on_alloc(void* slot, Bin bin) {
    set(slot, bin, kLive);
    return true;
  }
  HZ_INLINE static bool may_free(const PerThread&, const void* slot, Bin bin) {
    return HZ_LIKELY(is_slot_start(bin, static_cast<std::uint16_t>(address(slot)))) &&
           HZ_LIKELY(get(slot, bin) == kLive);
  }
  HZ_INLINE static void on_free(const PerThread&, void* slot, Bin bin) { set(slot, bin, kFree); }

  // The pending bit publishes what the program wrote.
  HZ_INLINE static void* claim(const PerThread&, void* slot, Bin bin) {
    return SlotBytes<Line>::change(slot, bin, kLive, kClaimed) ? slot : nullptr;
  }
  static bool arrive(void* slot, Bin bin) {
    if (HZ_UNLIKELY(get(slot, bin) != kClaimed)) return false;
    set(slot, bin, kFree);
    return true;
  }

  HZ_INLINE static Fault diagnose(const PerThread&, const void* slot,
                                  Bin bin) {  // hot in realloc and usable_size
    if (!is_slot_start(bin, static_cast<std::uint16_t>(address(slot)))) return Fault::kInterior;
    const std::uint8_t state = get(slot, bin);
    return state == kLive ? Fault::kNone : state == kNothing ? Fault::kNotAllocated : Fault::kDoubleFree;
  }
  static bool intact(const PerThread&, const void*) { return true; }

  static void report(Fault fault, const void* at, Bin bin, const char* line, Seen seen = Seen::kNow) {
    FaultReport::send(fault, at, bin, line, seen);
  }

 private:
  using SlotBytes<Line>::get, SlotBytes<Line>::set;
};

}  // namespace hz
