// SPDX-License-Identifier: Apache-2.0
//
// A guard that keeps nothing in user memory: a free must name the start of a slot (one multiplication, at the
// free itself). A second free in succession is found by the front, any other when the slots return to their
// span. What a program writes to a block after freeing it cannot hurt the heap, and is not looked for. Used
// by hakozuna and hz4.
#pragma once

#include "box/guard/report.hpp"

namespace hz {

struct Outside : WithoutPhases {
  static constexpr bool kMarks = false;
  static constexpr bool kProves = false;
  static constexpr bool kClaims = false;

  struct PerThread {};

  static void join(PerThread&) {}
  HZ_INLINE static bool on_alloc(void*, Bin) { return true; }
  HZ_INLINE static bool may_free(const PerThread&, const void* slot, Bin bin) {
    return HZ_LIKELY(is_slot_start(bin, static_cast<std::uint16_t>(address(slot))));
  }
  HZ_INLINE static void on_free(const PerThread&, void*, Bin) {}
  HZ_INLINE static void* claim(const PerThread&, void* slot, Bin) { return slot; }
  static bool arrive(void*, Bin) { return true; }

  static Fault diagnose(const PerThread& t, const void* slot, Bin bin) {
    return may_free(t, slot, bin) ? Fault::kNone : Fault::kInterior;
  }
  static bool intact(const PerThread&, const void*) { return true; }

  static void report(Fault fault, const void* at, Bin bin, const char* line, Seen seen = Seen::kNow) {
    FaultReport::send(fault, at, bin, line, seen);
  }
};

}  // namespace hz
