// SPDX-License-Identifier: Apache-2.0
//
// A bit for each slot that a granule can hold. A class has its bits in one of three tables: slots of 1 KiB or
// more have 8 bytes a granule, those of 128 bytes or more 64, and smaller ones 512. So spans of large slots
// touch few lines and pages of the tables.
// Used by: box/pool, box/exchange/pending_bitmap.
// Cost: of(bin) two compares, once for many slots; then word() a multiplication and two additions.
// Invariant: a table has bits in a granule's row only while the granule's span has a class of that table.
#pragma once

#include "base/size_classes.hpp"

namespace hz {

template <class Word>
struct SlotBits {
  static constexpr std::size_t kSparse = 1, kWide = 8, kDense = 64;  // words a row
  static constexpr std::size_t kSparseBytes = kSparse * sizeof(Word), kWideBytes = kWide * sizeof(Word),
                               kDenseBytes = kDense * sizeof(Word);
  static constexpr std::size_t kBytesPerGranule = kSparseBytes + kWideBytes + kDenseBytes;
  static constexpr Bin kLastDense = scan_bin(128) - 1, kLastWide = scan_bin(1024) - 1;
  static_assert(kGranule / size_of_bin(1) <= 64 * kDense);
  static_assert(kGranule / size_of_bin(kLastDense + 1) <= 64 * kWide);
  static_assert(kGranule / size_of_bin(kLastWide + 1) <= 64 * kSparse);

  // The table of one class: a row of words for each granule.
  struct Rows {
    Word* first;
    std::size_t words;  // a row
    HZ_INLINE Word& word(std::size_t row, std::size_t number) const { return first[row * words + number]; }
  };

  Word *sparse = nullptr, *wide = nullptr, *dense = nullptr;

  // Once: where the bytes of these three a granule have been set aside, in this order, all zero. Where they
  // end.
  std::uintptr_t open(std::uintptr_t table, std::size_t granules) {
    sparse = static_cast<Word*>(pointer(table));
    wide = static_cast<Word*>(pointer(table + granules * kSparseBytes));
    dense = static_cast<Word*>(pointer(table + granules * (kSparseBytes + kWideBytes)));
    return table + granules * kBytesPerGranule;
  }

  // Returns the table of a class.
  HZ_INLINE Rows of(Bin bin) const {
    if (bin > kLastWide) return {sparse, kSparse};
    return bin > kLastDense ? Rows{wide, kWide} : Rows{dense, kDense};
  }
};

}  // namespace hz
