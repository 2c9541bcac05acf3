// SPDX-License-Identifier: Apache-2.0
//
// A guard whose authority stands out of line: one byte per slot, in tables beside the arena, says whether the
// program has it. A free must name the start of a slot (one multiplication) that is live (one compare with
// that byte), so every second free is found at the free itself, and nothing that a program writes can hide
// it. Used by hz5 and hz8. Costs one store a malloc, one load and one store a free.
//
//   nothing   never handed out since the pages were last given back
//   live      the program has it
//   claimed   a stranger freed it (compare-and-swap: of two strangers one gets it) and it is on its way back
//   free      in a thread's bin, or in its span
//
// Only who holds a slot writes its byte: the program by freeing it, or the thread in whose bin it lies. So
// the owner's free is a plain load and store. If it meets a stranger's free of the same block within those
// few instructions both pass; then the slot does not arrive as claimed, is reported then, and is not taken in
// twice.
#pragma once

#include "base/plain_word.hpp"
#include "box/guard/report.hpp"

namespace hz {

template <class Line>
struct SlotState {
  static constexpr bool kMarks = false;
  static constexpr bool kProves = true;
  static constexpr bool kClaims = true;

  // Slots below 128 bytes: the byte of the 16 that they begin in. Others: of the 128, so that a table of them
  // is small.
  static constexpr unsigned kDenseShift = 4, kWideShift = 7;
  static constexpr Bin kLastDense = scan_bin(1U << kWideShift) - 1;
  static constexpr std::size_t kDenseBytes = kGranule >> kDenseShift, kWideBytes = kGranule >> kWideShift;
  static constexpr std::size_t kTables[] = {kDenseBytes, kWideBytes};
  static constexpr std::size_t kTableBytesPerGranule = kDenseBytes + kWideBytes;

  enum State : std::uint8_t { kNothing = 0, kLive, kClaimed, kFree };

  struct PerThread {};

  // Once: the arena's base, the place of the tables, and for how many granules.
  static void open(std::uintptr_t base, std::uintptr_t table, std::size_t granules) {
    dense.set(table - (base >> kDenseShift));
    wide.set(table + granules * kDenseBytes - (base >> kWideShift));
  }

  static void join(PerThread&) {}
  HZ_INLINE static void on_alloc(void* slot, Bin bin) { set(slot, bin, kLive); }
  HZ_INLINE static bool may_free(const PerThread&, const void* slot, Bin bin) {
    return HZ_LIKELY(is_slot_start(bin, static_cast<std::uint16_t>(address(slot)))) &&
           HZ_LIKELY(get(slot, bin) == kLive);
  }
  HZ_INLINE static void on_free(const PerThread&, void* slot, Bin bin) { set(slot, bin, kFree); }

  HZ_INLINE static bool claim(const PerThread&, void* slot, Bin bin) {
    std::uint8_t expected = kLive;
    // Relaxed: nothing is read through it; the pending bit publishes what the program wrote.
    return __atomic_compare_exchange_n(at(slot, bin), &expected, kClaimed, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
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

  static void report(Fault fault, const void* at, Bin bin, const char* line) {
    FaultReport::send(fault, at, bin, line);
  }

 private:
  // Each table's place as if it began at address 0.
  static inline constinit OnceWord<std::uintptr_t> dense{0}, wide{0};

  HZ_INLINE static std::uint8_t* at(const void* slot, Bin bin) {
    const std::uintptr_t place = bin <= kLastDense ? dense.get() + (address(slot) >> kDenseShift)
                                                   : wide.get() + (address(slot) >> kWideShift);
    return static_cast<std::uint8_t*>(pointer(place));
  }
  HZ_INLINE static std::uint8_t get(const void* slot, Bin bin) {
    return __atomic_load_n(at(slot, bin), __ATOMIC_RELAXED);
  }
  HZ_INLINE static void set(const void* slot, Bin bin, State state) {
    __atomic_store_n(at(slot, bin), state, __ATOMIC_RELAXED);
  }
};

}  // namespace hz
