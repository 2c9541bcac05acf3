// SPDX-License-Identifier: Apache-2.0
//
// Central as stacks of magazines, one per class and processor: arrays of pointers that threads which free leave for
// threads which allocate. Used by hakozuna, hz4 and hz8. One lock per stack, held for one copy of at most a kilobyte;
// the newest magazine leaves first, and a thread looks first where it runs, because those slots are the likeliest to be
// in its core's cache. A crate that cannot be had is a magazine that goes home.
#pragma once

#include "base/slot_array.hpp"
#include "box/central/contract.hpp"
#include "os/crates.hpp"
#include "os/lock.hpp"

namespace hz {

template <class Line>
struct MagazineDepot {
  using Bundle = SlotArray;
  using Store = os::CrateStore<128>;
  using Crate = Store::Crate;

  static constexpr unsigned kMostOwners = ~0U;
  static constexpr unsigned kShards = 16;  // on machines with more processors some share one

  struct Global {
    struct alignas(64) Shelf {
      os::Lock lock;
      Crate* first = nullptr;
    };
    struct Shard {
      Shelf of_bin[kBins];
      // A bit for each bin of which something waits: written under the lock of its shelf, read as a hint, so that who
      // looks through all bins touches one line and not one a bin.
      alignas(64) std::atomic<std::uint64_t> waiting[kBins / 64 + 1];
      Store store;
    };
    Shard of_cpu[kShards];
    alignas(64) std::atomic<std::uint32_t> used{0};  // a bit for each shard that ever had a magazine
  };
  using Shard = typename Global::Shard;
  static_assert(kShards <= 32);

  static void give(Global& g, unsigned /*owner*/, Bin bin, SlotArray& bundle) {
    const unsigned here = os::current_cpu() % kShards;
    const std::uint32_t mine = 1U << here;
    if ((g.used.load(std::memory_order_relaxed) & mine) == 0) g.used.fetch_or(mine, std::memory_order_relaxed);
    auto& shelf = g.of_cpu[here].of_bin[bin];
    if (bundle.count < Crate::kSlots) top_up(shelf, bundle);
    while (bundle.count != 0) {
      Crate* full = g.of_cpu[here].store.take();
      if (full == nullptr) return;
      full->count = bundle.take(full->slots, Crate::kSlots);
      const os::Guarded hold(shelf.lock);
      if (shelf.first == nullptr) word_of(g.of_cpu[here], bin).fetch_or(bit_of(bin), std::memory_order_relaxed);
      full->follow_with(shelf.first);
      shelf.first = full;
    }
  }

  // One magazine at most, and not more than `want` of it.
  static void take(Global& g, unsigned /*owner*/, Bin bin, unsigned want, SlotArray& out) {
    std::uint32_t some = 0;
    for (std::uint32_t left = g.used.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      const auto shard = static_cast<unsigned>(__builtin_ctz(left));
      some |= waits(g.of_cpu[shard], bin) ? 1U << shard : 0;
    }
    if (some == 0) return;
    const unsigned here = os::current_cpu() % kShards;
    // From here on upwards, then from the first.
    std::uint32_t left = some >> here | (some & ((1U << here) - 1)) << (kShards - here);
    for (; left != 0 && out.count == 0; left &= left - 1)
      take_from(g.of_cpu[(here + static_cast<unsigned>(__builtin_ctz(left))) % kShards], bin, want, out);
  }

  static std::size_t metadata_bytes(const Global& g) {
    std::size_t bytes = 0;
    for (const Shard& shard : g.of_cpu) bytes += shard.store.bytes();
    return bytes;
  }

  static void shrink(Global& g) {
    for (Shard& shard : g.of_cpu) shard.store.shrink();
  }

  // In a child that another thread's change was cut off in: what it was at is lost.
  static void make_whole(Global& g) {
    for (Shard& shard : g.of_cpu) {
      shard.store.make_whole();
      for (Bin bin = 1; bin < kBins; ++bin)
        if (shard.of_bin[bin].lock.reset()) shard.of_bin[bin].first = nullptr;
    }
  }

 private:
  static std::atomic<std::uint64_t>& word_of(Shard& shard, Bin bin) { return shard.waiting[bin / 64]; }
  static std::uint64_t bit_of(Bin bin) { return std::uint64_t{1} << bin % 64; }
  static bool waits(Shard& shard, Bin bin) {
    return (word_of(shard, bin).load(std::memory_order_relaxed) & bit_of(bin)) != 0;
  }

  // What would not fill a magazine goes into the one that came last, as far as it has room.
  static void top_up(typename Global::Shelf& shelf, SlotArray& bundle) {
    const os::Guarded hold(shelf.lock);
    Crate* last = shelf.first;
    if (last == nullptr) return;
    last->count += bundle.take(last->slots + last->count, Crate::kSlots - last->count);
  }

  static void take_from(Shard& shard, Bin bin, unsigned want, SlotArray& out) {
    auto& shelf = shard.of_bin[bin];
    Crate* emptied = nullptr;
    {
      const os::Guarded hold(shelf.lock);
      Crate* full = shelf.first;
      if (full == nullptr) return;
      out.draw(want, full->slots, full->count);
      if (full->count == 0) {
        shelf.first = full->following();
        full->follow_with(nullptr);
        if (shelf.first == nullptr) word_of(shard, bin).fetch_and(~bit_of(bin), std::memory_order_relaxed);
        emptied = full;
      }
    }
    shard.store.give(emptied);  // back to where magazines are filled
  }
};

}  // namespace hz
