// SPDX-License-Identifier: Apache-2.0
//
// A byte for each slot, in three tables beside the arena: slots below 128 bytes have that of the 16 bytes
// that they begin in, those below 2 KiB that of the 128, all others that of the 2 KiB, so that tables of
// larger slots are small. For guards whose authority stands out of line; costs a compare or two and an
// addition a look.
#pragma once

#include "base/plain_word.hpp"
#include "base/size_classes.hpp"

namespace hz {

// The tables of one line, or of another type `Of`.
template <class Of>
struct SlotBytes {
  static constexpr unsigned kDenseShift = 4, kWideShift = 7, kSparseShift = 11;
  static constexpr Bin kLastDense = scan_bin(1U << kWideShift) - 1;
  static constexpr Bin kLastWide = scan_bin(1U << kSparseShift) - 1;
  static constexpr std::size_t kDenseBytes = kGranule >> kDenseShift, kWideBytes = kGranule >> kWideShift,
                               kSparseBytes = kGranule >> kSparseShift;
  static constexpr std::size_t kTables[] = {kDenseBytes, kWideBytes, kSparseBytes};
  static constexpr std::size_t kTableBytesPerGranule = kDenseBytes + kWideBytes + kSparseBytes;

  // Once: the arena's base, the place of the tables, all zero, and for how many granules.
  static void open(std::uintptr_t base, std::uintptr_t table, std::size_t granules) {
    dense.set(table - (base >> kDenseShift));
    wide.set(table + granules * kDenseBytes - (base >> kWideShift));
    sparse.set(table + granules * (kDenseBytes + kWideBytes) - (base >> kSparseShift));
  }

 protected:
  HZ_INLINE static std::uint8_t* at(const void* slot, Bin bin) {
    // Without the hint clang computes all three places and chooses among them.
    if (HZ_LIKELY(bin <= kLastDense)) return in(dense, address(slot) >> kDenseShift);
    if (HZ_LIKELY(bin <= kLastWide)) return in(wide, address(slot) >> kWideShift);
    return in(sparse, address(slot) >> kSparseShift);
  }
  HZ_INLINE static std::uint8_t get(const void* slot, Bin bin) {
    return __atomic_load_n(at(slot, bin), __ATOMIC_RELAXED);
  }
  HZ_INLINE static void set(const void* slot, Bin bin, std::uint8_t value) {
    __atomic_store_n(at(slot, bin), value, __ATOMIC_RELAXED);
  }
  // Whether it was `expected`, and is `value` now: of several threads that ask this one gets it. Relaxed:
  // nothing is read through it.
  HZ_INLINE static bool change(const void* slot, Bin bin, std::uint8_t expected, std::uint8_t value) {
    return __atomic_compare_exchange_n(at(slot, bin), &expected, value, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
  }

 private:
  HZ_INLINE static std::uint8_t* in(const OnceWord<std::uintptr_t>& table, std::uintptr_t place) {
    return static_cast<std::uint8_t*>(pointer(table.get() + place));
  }

  // Each table's place as if it began at address 0.
  static inline constinit OnceWord<std::uintptr_t> dense{0}, wide{0}, sparse{0};
};

}  // namespace hz
