// SPDX-License-Identifier: Apache-2.0
//
// Central as a stack of magazines per class: arrays of pointers that threads which free leave for threads which
// allocate. Used by hakozuna. One lock per class, held for one copy of at most a kilobyte; the newest magazine
// leaves first, because its slots are the likeliest to be in some cache. Memory for magazines comes from the system and
// stays; one that cannot be had is a magazine that goes home.
#pragma once

#include "base/slot_array.hpp"
#include "box/central/contract.hpp"
#include "os/lock.hpp"

namespace hz {

template <class Line>
struct MagazineDepot {
  using Bundle = SlotArray;

  static constexpr unsigned kSlots = 128;
  struct Full {
    Full* next;
    std::uint64_t count;
    void* slots[kSlots];
  };

  struct Global {
    struct alignas(64) Shelf {
      os::Lock lock;
      Full* first = nullptr;
    };
    Shelf of_bin[kBins];
    alignas(64) os::Lock lock;  // of what follows
    Full* unused = nullptr;
    std::atomic<std::size_t> bytes{0};
  };

  static void give(Global& g, unsigned /*owner*/, Bin bin, SlotArray& bundle) {
    while (bundle.count != 0) {
      Full* full = unused(g);
      if (full == nullptr) return;
      full->count = bundle.take(full->slots, kSlots);
      const os::Guarded hold(g.of_bin[bin].lock);
      full->next = g.of_bin[bin].first;
      g.of_bin[bin].first = full;
    }
  }

  // One magazine at most, and not more than `want` of it.
  static SlotArray take(Global& g, unsigned /*owner*/, Bin bin, unsigned want) {
    SlotArray bundle;
    Full* emptied = nullptr;
    {
      const os::Guarded hold(g.of_bin[bin].lock);
      Full* full = g.of_bin[bin].first;
      if (full == nullptr) return bundle;
      while (bundle.count < want && full->count != 0) bundle.push(full->slots[--full->count]);
      if (full->count == 0) {
        g.of_bin[bin].first = full->next;
        emptied = full;
      }
    }
    if (emptied != nullptr) {
      const os::Guarded hold(g.lock);
      emptied->next = g.unused;
      g.unused = emptied;
    }
    return bundle;
  }

  static std::size_t metadata_bytes(const Global& g) { return g.bytes.load(std::memory_order_relaxed); }

 private:
  static Full* unused(Global& g) {
    const os::Guarded hold(g.lock);
    if (g.unused == nullptr && !more(g)) return nullptr;
    Full* full = g.unused;
    g.unused = full->next;
    return full;
  }

  static bool more(Global& g) {
    void* chunk = os::map(kGranule, kGranule);
    if (chunk == nullptr) return false;
    os::forbid_huge_pages(chunk, kGranule);
    g.bytes.fetch_add(kGranule, std::memory_order_relaxed);
    auto* full = static_cast<Full*>(chunk);
    for (std::size_t left = kGranule / sizeof(Full); left != 0; --left, ++full) {
      full->next = g.unused;
      g.unused = full;
    }
    return true;
  }
};

}  // namespace hz
