// SPDX-License-Identifier: Apache-2.0
//
// The table of addresses: a byte for each 4 MiB says what lies there, before anything there is read. It has
// two levels, of which a program touches a page or two. Called by everything here; costs two loads.
// Lock: the caller holds HeapLock.
#pragma once

#include "base/units.hpp"
#include "os/os.hpp"

namespace hz::one_lock {

inline constexpr unsigned kRegionShift = 22;
inline constexpr std::size_t kRegion = std::size_t{1} << kRegionShift;

struct Table {
  // kGone: was ours, and is unmapped. kHugeRest: of a huge block, behind its first 4 MiB.
  enum class Kind : std::uint8_t { kNothing, kGone, kSpans, kHuge, kHugeRest };
  static constexpr unsigned kAddressBits = 48, kLeafBits = 13;
  static constexpr std::size_t kLeaf = std::size_t{1} << kLeafBits;  // bytes, each for 4 MiB
  static constexpr std::size_t kLeaves = std::size_t{1} << (kAddressBits - kRegionShift - kLeafBits);
  static inline constinit Kind* leaves[kLeaves] = {};

  static Kind kind(std::uintptr_t at) {
    if (at >> kAddressBits != 0) return Kind::kNothing;
    const Kind* leaf = leaves[at >> (kRegionShift + kLeafBits)];
    return leaf == nullptr ? Kind::kNothing : leaf[at >> kRegionShift & (kLeaf - 1)];
  }
  // Returns false if there is no memory for a leaf; never for addresses that were marked before.
  static bool mark(std::uintptr_t at, std::size_t count, Kind kind) {
    for (std::size_t i = at >> kRegionShift; i < (at >> kRegionShift) + count; ++i) {
      Kind*& leaf = leaves[i >> kLeafBits];
      const std::size_t page = os::page_bytes();
      if (leaf == nullptr) leaf = static_cast<Kind*>(os::map(align_up(kLeaf, page), page));
      if (leaf == nullptr) return false;
      leaf[i & (kLeaf - 1)] = kind;
    }
    return true;
  }
  // Calls `visit` with the address and kind of each 4 MiB that the table knows.
  template <class Visit>
  static void for_each(Visit visit) {
    for (std::size_t i = 0; i < kLeaves * kLeaf; ++i) {
      const Kind* const leaf = leaves[i >> kLeafBits];
      if (leaf == nullptr) {
        i |= kLeaf - 1;
      } else {
        visit(i << kRegionShift, leaf[i & (kLeaf - 1)]);
      }
    }
  }
};

}  // namespace hz::one_lock
