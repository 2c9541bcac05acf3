// SPDX-License-Identifier: Apache-2.0
//
// A bit for each slot that a granule can hold, a row of words per granule, in two tables: the words that
// slots of 128 bytes or more need stand together, and those which only smaller ones need stand apart. So
// spans of such slots touch 64 bytes a granule and not 512. For boxes that keep bitmaps beside the arena;
// costs a compare a word.
#pragma once

#include "base/size_classes.hpp"

namespace hz {

template <class Word>
struct SlotBits {
  static constexpr std::size_t kWords = kGranule / kMinAlign / 64, kNear = kGranule / 128 / 64,
                               kFar = kWords - kNear;
  static constexpr std::size_t kNearBytes = kNear * sizeof(Word), kFarBytes = kFar * sizeof(Word);

  Word* near = nullptr;
  Word* far = nullptr;

  // Once: where kNearBytes and then kFarBytes a granule have been set aside, all zero.
  void open(std::uintptr_t table, std::size_t granules) {
    near = static_cast<Word*>(pointer(table));
    far = static_cast<Word*>(pointer(table + granules * kNearBytes));
  }

  HZ_INLINE Word& word(std::size_t row, std::size_t number) const {
    return number < kNear ? near[row * kNear + number] : far[row * kFar + number - kNear];
  }
};

}  // namespace hz
