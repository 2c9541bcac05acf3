// SPDX-License-Identifier: Apache-2.0
//
// A bit for each slot that a granule can hold, a row of words per granule, in three tables: slots of 1 KiB or
// more need one word, those of 128 bytes or more seven others, and smaller ones the rest. So spans of large
// slots touch 8 bytes a granule, and those of the usual ones 64, not 512. For boxes that keep bitmaps beside
// the arena; costs a compare or two a word.
#pragma once

#include "base/size_classes.hpp"

namespace hz {

template <class Word>
struct SlotBits {
  static constexpr std::size_t kWords = kGranule / kMinAlign / 64;
  static constexpr std::size_t kSparse = kGranule / 1024 / 64, kWide = kGranule / 128 / 64 - kSparse,
                               kDense = kWords - kWide - kSparse;
  static constexpr std::size_t kSparseBytes = kSparse * sizeof(Word), kWideBytes = kWide * sizeof(Word),
                               kDenseBytes = kDense * sizeof(Word);
  static constexpr std::size_t kBytesPerGranule = kSparseBytes + kWideBytes + kDenseBytes;

  Word *sparse = nullptr, *wide = nullptr, *dense = nullptr;

  // Once: where the bytes of these three a granule have been set aside, in this order, all zero. Where they
  // end.
  std::uintptr_t open(std::uintptr_t table, std::size_t granules) {
    sparse = static_cast<Word*>(pointer(table));
    wide = static_cast<Word*>(pointer(table + granules * kSparseBytes));
    dense = static_cast<Word*>(pointer(table + granules * (kSparseBytes + kWideBytes)));
    return table + granules * kBytesPerGranule;
  }

  HZ_INLINE Word& word(std::size_t row, std::size_t number) const {
    if (number < kSparse) return sparse[row * kSparse + number];
    if (number < kSparse + kWide) return wide[row * kWide + number - kSparse];
    return dense[row * kDense + number - kSparse - kWide];
  }
};

}  // namespace hz
