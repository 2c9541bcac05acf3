// SPDX-License-Identifier: Apache-2.0
//
// Central as stacks of magazines, one per class and processor: arrays of pointers that threads which free leave for
// threads which allocate. Used by hakozuna. One lock per stack, held for one copy of at most a kilobyte; the newest
// magazine leaves first, and a thread looks first where it runs, because those slots are the likeliest to be in its
// core's cache. Memory for magazines comes from the system and stays; one that cannot be had is a magazine that goes
// home.
#pragma once

#include "base/slot_array.hpp"
#include "box/central/contract.hpp"
#include "os/lock.hpp"

namespace hz {

template <class Line>
struct MagazineDepot {
  using Bundle = SlotArray;

  static constexpr unsigned kSlots = 128;
  static constexpr unsigned kShards = 16;  // on machines with more processors some share one
  struct Full {
    Full* next;
    std::uint64_t count;
    void* slots[kSlots];
  };

  struct Global {
    struct alignas(64) Shelf {
      os::Lock lock;
      std::atomic<Full*> first{nullptr};  // written under the lock, read as a hint
    };
    struct alignas(64) Shard {
      Shelf of_bin[kBins];
      alignas(64) os::Lock lock;  // of what follows
      Full* unused = nullptr;
    };
    Shard of_cpu[kShards];
    alignas(64) std::atomic<std::uint32_t> used{0};  // a bit for each shard that ever had a magazine
    std::atomic<std::size_t> bytes{0};
  };
  using Shard = typename Global::Shard;
  static_assert(kShards <= 32);

  static void give(Global& g, unsigned /*owner*/, Bin bin, SlotArray& bundle) {
    const unsigned here = os::current_cpu() % kShards;
    const std::uint32_t mine = 1U << here;
    if ((g.used.load(std::memory_order_relaxed) & mine) == 0) g.used.fetch_or(mine, std::memory_order_relaxed);
    Shard& shard = g.of_cpu[here];
    while (bundle.count != 0) {
      Full* full = unused(g, shard);
      if (full == nullptr) return;
      full->count = bundle.take(full->slots, kSlots);
      const os::Guarded hold(shard.of_bin[bin].lock);
      full->next = shard.of_bin[bin].first.load(std::memory_order_relaxed);
      shard.of_bin[bin].first.store(full, std::memory_order_relaxed);
    }
  }

  // One magazine at most, and not more than `want` of it.
  static SlotArray take(Global& g, unsigned /*owner*/, Bin bin, unsigned want) {
    SlotArray bundle;
    const unsigned here = os::current_cpu() % kShards;
    const std::uint32_t used = g.used.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < kShards && bundle.count == 0; ++i) {
      const unsigned at = (here + i) % kShards;
      if ((used & 1U << at) != 0) take_from(g.of_cpu[at], bin, want, bundle);
    }
    return bundle;
  }

  static std::size_t metadata_bytes(const Global& g) { return g.bytes.load(std::memory_order_relaxed); }

 private:
  static void take_from(Shard& shard, Bin bin, unsigned want, SlotArray& out) {
    auto& shelf = shard.of_bin[bin];
    if (shelf.first.load(std::memory_order_relaxed) == nullptr) return;
    Full* emptied = nullptr;
    {
      const os::Guarded hold(shelf.lock);
      Full* full = shelf.first.load(std::memory_order_relaxed);
      if (full == nullptr) return;
      while (out.count < want && full->count != 0) out.push(full->slots[--full->count]);
      if (full->count == 0) {
        shelf.first.store(full->next, std::memory_order_relaxed);
        emptied = full;
      }
    }
    if (emptied != nullptr) {  // back to where magazines are filled
      const os::Guarded hold(shard.lock);
      emptied->next = shard.unused;
      shard.unused = emptied;
    }
  }

  static Full* unused(Global& g, Shard& shard) {
    const os::Guarded hold(shard.lock);
    if (shard.unused == nullptr && !more(g, shard)) return nullptr;
    Full* full = shard.unused;
    shard.unused = full->next;
    return full;
  }

  static bool more(Global& g, Shard& shard) {
    void* chunk = os::map(kGranule, kGranule);
    if (chunk == nullptr) return false;
    os::forbid_huge_pages(chunk, kGranule);
    g.bytes.fetch_add(kGranule, std::memory_order_relaxed);
    auto* full = static_cast<Full*>(chunk);
    for (std::size_t left = kGranule / sizeof(Full); left != 0; --left, ++full) {
      full->next = shard.unused;
      shard.unused = full;
    }
    return true;
  }
};

}  // namespace hz
