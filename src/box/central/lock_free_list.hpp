// SPDX-License-Identifier: Apache-2.0
//
// Central as one lock-free list per (owner, class), taken whole by one exchange. Used by hz3. Lists are kept apart by
// owner because a slot that wanders to another owner's thread is a remote free ever after; memory changes owners span
// by span, in the pool.
#pragma once

#include "base/free_list.hpp"
#include "box/central/contract.hpp"

namespace hz {

template <class Line>
struct LockFreeList {
  using Bundle = Chain;
  static constexpr unsigned kMostOwners = Line::kOwners;

  struct Global {
    struct alignas(64) Shelf {
      SharedList of_bin[kBins];
    };
    Shelf of_owner[Line::kOwners];
  };

  static void give(Global& g, unsigned owner, Bin bin, Chain& chain) {
    g.of_owner[owner].of_bin[bin].push(chain, bin_size(bin));
    chain = {};
  }
  static void take(Global& g, unsigned owner, Bin bin, unsigned want, Chain& out) {
    out = g.of_owner[owner].of_bin[bin].take(want, bin_size(bin));
  }
  static std::size_t metadata_bytes(const Global&) { return 0; }
  static void shrink(Global&) {}
};

}  // namespace hz
