// SPDX-License-Identifier: Apache-2.0
//
// The owner stash: one lock-free list per (owner, class), filled by strangers with one compare-and-swap a parcel and
// emptied by the owner with one exchange. Shared by the two hz3 outboxes (sparse_ring, dense_bank). The list carries
// the line: without it every remote free ends in a lock.
#pragma once

#include "base/free_list.hpp"
#include "box/remote/contract.hpp"

namespace hz {

template <unsigned kOwnerCount>
struct OwnerStash {
  struct Global {
    struct alignas(64) Shelf {
      SharedList of_bin[kBins];
    };
    Shelf of_owner[kOwnerCount];
  };

  static void send(Global& g, Parcel<Chain>& parcel) {
    g.of_owner[parcel.owner].of_bin[parcel.bin].push(parcel.slots, bin_size(parcel.bin));
    parcel.slots = {};
  }
  static Chain collect(Global& g, unsigned owner, Bin bin, unsigned want) {
    return g.of_owner[owner].of_bin[bin].take(want, bin_size(bin));
  }
};

}  // namespace hz
