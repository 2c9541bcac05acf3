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

  static constexpr unsigned kShards = 16;  // on machines with more processors some share one

  struct Global {
    struct alignas(64) Shelf {
      os::Lock lock;
      std::atomic<Crate*> first{nullptr};  // written under the lock, read as a hint
    };
    struct Shard {
      Shelf of_bin[kBins];
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
    while (bundle.count != 0) {
      Crate* full = g.of_cpu[here].store.take();
      if (full == nullptr) return;
      full->count = bundle.take(full->slots, Crate::kSlots);
      const os::Guarded hold(shelf.lock);
      full->follow_with(shelf.first.load(std::memory_order_relaxed));
      shelf.first.store(full, std::memory_order_relaxed);
    }
  }

  // One magazine at most, and not more than `want` of it.
  static SlotArray take(Global& g, unsigned /*owner*/, Bin bin, unsigned want) {
    SlotArray bundle;
    const unsigned here = os::current_cpu() % kShards;
    const std::uint32_t used = g.used.load(std::memory_order_relaxed);
    // From here on upwards, then from the first.
    std::uint32_t left = used >> here | (used & ((1U << here) - 1)) << (kShards - here);
    for (; left != 0 && bundle.count == 0; left &= left - 1)
      take_from(g.of_cpu[(here + static_cast<unsigned>(__builtin_ctz(left))) % kShards], bin, want, bundle);
    return bundle;
  }

  static std::size_t metadata_bytes(const Global& g) {
    std::size_t bytes = 0;
    for (const Shard& shard : g.of_cpu) bytes += shard.store.bytes();
    return bytes;
  }

  static void shrink(Global& g) {
    for (Shard& shard : g.of_cpu) shard.store.shrink();
  }

 private:
  static void take_from(Shard& shard, Bin bin, unsigned want, SlotArray& out) {
    auto& shelf = shard.of_bin[bin];
    if (shelf.first.load(std::memory_order_relaxed) == nullptr) return;
    Crate* emptied = nullptr;
    {
      const os::Guarded hold(shelf.lock);
      Crate* full = shelf.first.load(std::memory_order_relaxed);
      if (full == nullptr) return;
      while (out.count < want && full->count != 0) out.push(full->slots[--full->count]);
      if (full->count == 0) {
        shelf.first.store(full->following(), std::memory_order_relaxed);
        full->follow_with(nullptr);
        emptied = full;
      }
    }
    shard.store.give(emptied);  // back to where magazines are filled
  }
};

}  // namespace hz
