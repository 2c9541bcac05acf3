// SPDX-License-Identifier: Apache-2.0
//
// Fail-fast guard: a free must name the start of a slot (one multiplication) that is not free already (one
// compare with a secret mark that every free slot carries in its second word). Both are proved at the free
// itself, before the slot can reach anyone. Used by hz3; costs ten of the 44 instructions of a pair. The mark
// is a random word of the process: a live block that happens to hold it is as likely as guessing 64 bits.
#pragma once

#include <atomic>

#include "box/guard/report.hpp"
#include "os/os.hpp"

namespace hz {

struct FailFast : WithoutPhases {
  static constexpr bool kMarks = true;
  static constexpr bool kProves = true;
  static constexpr bool kClaims = false;

  struct PerThread {
    std::uint64_t mark = 0;
  };

  static void join(PerThread& thread) { thread.mark = process_mark(); }

  HZ_INLINE static bool on_alloc(void* slot, Bin /*bin*/) {
    static_cast<FreeSlot*>(slot)->mark = 0;
    return true;
  }

  HZ_INLINE static bool may_free(const PerThread& thread, void* slot, Bin bin) {
    // The low 16 bits are the offset in the granule; a slot start is also aligned, so that the mark can be
    // read.
    if (HZ_UNLIKELY(!is_slot_start(bin, offset_in_granule(slot)))) return false;
    return HZ_LIKELY(static_cast<FreeSlot*>(slot)->mark != thread.mark);
  }
  HZ_INLINE static void on_free(const PerThread& thread, void* slot, Bin /*bin*/) {
    static_cast<FreeSlot*>(slot)->mark = thread.mark;
  }
  HZ_INLINE static void* claim(const PerThread& thread, void* slot, Bin bin) {
    return on_free(thread, slot, bin), slot;
  }
  static bool arrive(void*, Bin) { return true; }

  static Fault diagnose(const PerThread& thread, void* slot, Bin bin) {
    if (!is_slot_start(bin, offset_in_granule(slot))) return Fault::kInterior;
    return static_cast<FreeSlot*>(slot)->mark == thread.mark ? Fault::kDoubleFree : Fault::kNone;
  }
  static bool intact(const PerThread& thread, const FreeSlot* slot) { return slot->mark == thread.mark; }

  static void report(Fault fault, const void* at, Bin bin, const char* line, Seen seen = Seen::kNow) {
    FaultReport::send(fault, at, bin, line, seen);
  }

 private:
  HZ_INLINE static unsigned offset_in_granule(const void* p) {
    return static_cast<std::uint16_t>(address(p));
  }

  static std::uint64_t process_mark() {
    static constinit std::atomic<std::uint64_t> mark{0};
    std::uint64_t seen = mark.load(std::memory_order_relaxed);
    if (seen != 0) return seen;
    const std::uint64_t fresh = os::random_word() | 1;  // odd: no pointer, and never zero
    // Relaxed: the word itself is all there is to see.
    return mark.compare_exchange_strong(seen, fresh, std::memory_order_relaxed) ? fresh : seen;
  }
};

}  // namespace hz
