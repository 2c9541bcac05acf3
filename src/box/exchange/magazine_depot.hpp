// SPDX-License-Identifier: Apache-2.0
//
// Stacks of magazines, one per class and processor: threads which free leave them for threads which allocate.
// All of hakozuna's exchange, and a part of hz4's and hz8's. A full magazine changes hands whole, for one
// lock of its stack and no copy; what is less is copied into the one that came last. The newest magazine
// leaves first, and a thread looks first where it runs, because those slots are the likeliest to be in its
// core's cache. A magazine that cannot be had is one whose slots return to their spans.
#pragma once

#include <new>
#include <utility>

#include "base/slot_array.hpp"
#include "box/exchange/contract.hpp"
#include "os/lock.hpp"
#include "os/magazines.hpp"

namespace hz {

template <class Line>
struct MagazineDepot : WithoutOwners {
  using Bundle = SlotArray;
  using Empty = os::Magazines<Line, Line::kBinSlots / 2>;
  using Magazine = typename Empty::Magazine;

  static constexpr unsigned kShards = 16;  // on machines with more processors some share one
  static constexpr unsigned kEmpties = 2;  // magazines that a stack keeps for itself

  struct Global {
    struct alignas(64) Shelf {
      os::Lock lock;
      std::uint32_t empties = 0;
      Magazine* first = nullptr;
      Magazine* empty = nullptr;  // some that were emptied here, to be filled here

      // With the lock.
      void put(Magazine* full) {
        full->follow_with(first);
        first = full;
      }
      void keep(Magazine* magazine) {
        magazine->follow_with(empty);
        empty = magazine;
        ++empties;
      }
      Magazine* take_empty() {
        Magazine* magazine = empty;
        if (magazine == nullptr) return nullptr;
        empty = magazine->following();
        --empties;
        return magazine;
      }
    };
    struct Shard {
      Shelf of_bin[kBins];
      // A bit for each bin of which something waits: written under the lock of its shelf, read as a hint, so
      // that who looks through all bins touches one line and not one a bin.
      alignas(64) std::atomic<std::uint64_t> waiting[kBins / 64 + 1];
    };
    Shard of_cpu[kShards];
    alignas(64) std::atomic<std::uint32_t> used{0};  // a bit for each shard that ever had a magazine
  };
  using Shard = typename Global::Shard;
  using Shelf = typename Global::Shelf;
  static_assert(kShards <= 32);

  static void give(Global& g, unsigned /*owner*/, Bin bin, SlotArray& bundle) {
    Shard& here = shard(g);
    auto& shelf = here.of_bin[bin];
    while (bundle.count != 0) {
      Magazine* some = top_up(shelf, bundle);
      if (bundle.count == 0) return;
      if (some == nullptr) some = Empty::take();
      if (some == nullptr) return;
      some->count = bundle.take(some->slots, Magazine::kSlots);
      put(here, bin, some);
    }
  }
  static void give(Global& g, Bin bin, Magazine* full) { put(shard(g), bin, full); }

  // Of one magazine, and not more than `want`.
  static void take(Global& g, unsigned /*owner*/, Bin bin, unsigned want, SlotArray& out) {
    for_each_waiting(g, bin, [&](Shard& shard) {
      Magazine* emptied = nullptr;
      {
        auto& shelf = shard.of_bin[bin];
        const os::Guarded hold(shelf.lock);
        Magazine* first = shelf.first;
        if (first == nullptr) return false;
        out.draw(want, first->slots, first->count);
        if (first->count == 0) emptied = taken(shard, bin);
      }
      recycle(shard.of_bin[bin], emptied);
      return true;
    });
  }
  // Whole; nullptr if none waits.
  static Magazine* take(Global& g, Bin bin) {
    Magazine* full = nullptr;
    for_each_waiting(g, bin, [&](Shard& shard) {
      const os::Guarded hold(shard.of_bin[bin].lock);
      return (full = taken(shard, bin)) != nullptr;
    });
    return full;
  }

  // An empty one, for a full one that will be given; nullptr if there is no memory. And the other way round.
  static Magazine* take_empty(Global& g, Bin bin) {
    Magazine* empty = kept_empty(shard(g).of_bin[bin]);
    if (empty == nullptr) empty = Empty::take();
    if (empty != nullptr) empty->count = 0;
    return empty;
  }
  static void give_empty(Global& g, Bin bin, Magazine* empty) { recycle(shard(g).of_bin[bin], empty); }

  static bool waits(const Global& g, unsigned /*owner*/, Bin bin) { return shards_with(g, bin) != 0; }

  static std::size_t metadata_bytes(const Global&) { return Empty::bytes(); }

  static void shrink(Global& g, unsigned /*owners*/) {
    for (unsigned i = 0; i < kShards; ++i) {
      Shard& shard = g.of_cpu[i];
      if ((g.used.load(std::memory_order_relaxed) >> i & 1) == 0) continue;
      for (auto& shelf : shard.of_bin) Empty::give(taken_empties(shelf));
    }
    Empty::shrink();
  }

  // In a child that another thread's change was cut off in: what it was at is lost.
  static void make_whole(Global& g, unsigned /*owners*/) {
    Empty::make_whole();
    for (Shard& shard : g.of_cpu) {
      for (Bin bin = 1; bin < kBins; ++bin)
        if (shard.of_bin[bin].lock.reset()) ::new (static_cast<void*>(&shard.of_bin[bin])) Shelf;
    }
  }

 private:
  static std::atomic<std::uint64_t>& word_of(Shard& shard, Bin bin) { return shard.waiting[bin / 64]; }
  static std::uint64_t bit_of(Bin bin) { return std::uint64_t{1} << bin % 64; }
  // A bit for each where something waits.
  static std::uint32_t shards_with(const Global& g, Bin bin) {
    std::uint32_t some = 0;
    for (std::uint32_t left = g.used.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      const auto shard = static_cast<unsigned>(__builtin_ctz(left));
      const std::uint64_t word = g.of_cpu[shard].waiting[bin / 64].load(std::memory_order_relaxed);
      some |= (word & bit_of(bin)) != 0 ? 1U << shard : 0;
    }
    return some;
  }

  // This processor's.
  static Shard& shard(Global& g) {
    const unsigned here = os::current_cpu() % kShards;
    const std::uint32_t mine = 1U << here;
    if ((g.used.load(std::memory_order_relaxed) & mine) == 0)
      g.used.fetch_or(mine, std::memory_order_relaxed);
    return g.of_cpu[here];
  }

  // From here on upwards, then from the first, until `visit` is done.
  static void for_each_waiting(Global& g, Bin bin, auto visit) {
    const std::uint32_t some = shards_with(g, bin);
    if (some == 0) return;
    const unsigned here = os::current_cpu() % kShards;
    std::uint32_t left = some >> here | (some & ((1U << here) - 1)) << (kShards - here);
    for (; left != 0; left &= left - 1) {
      if (visit(g.of_cpu[(here + static_cast<unsigned>(__builtin_ctz(left))) % kShards])) return;
    }
  }

  static void put(Shard& shard, Bin bin, Magazine* magazine) {
    auto& shelf = shard.of_bin[bin];
    const os::Guarded hold(shelf.lock);
    if (shelf.first == nullptr) word_of(shard, bin).fetch_or(bit_of(bin), std::memory_order_relaxed);
    shelf.put(magazine);
  }
  // With the lock: the newest, if there is one.
  static Magazine* taken(Shard& shard, Bin bin) {
    auto& shelf = shard.of_bin[bin];
    Magazine* first = shelf.first;
    if (first == nullptr) return nullptr;
    shelf.first = first->following();
    if (shelf.first == nullptr) word_of(shard, bin).fetch_and(~bit_of(bin), std::memory_order_relaxed);
    return first;
  }
  // One that was emptied, or none.
  static void recycle(Shelf& shelf, Magazine* empty) {
    if (empty == nullptr) return;
    {
      const os::Guarded hold(shelf.lock);
      if (shelf.empties < kEmpties) return shelf.keep(empty);
    }
    empty->follow_with(nullptr);
    Empty::give(empty);
  }

  // What would not fill a magazine goes into the one that came last, as far as it has room. For what is left,
  // an empty one, if there is one here.
  static Magazine* top_up(Shelf& shelf, SlotArray& bundle) {
    const os::Guarded hold(shelf.lock);
    Magazine* last = shelf.first;
    if (bundle.count < Magazine::kSlots && last != nullptr)
      last->count += bundle.take(last->slots + last->count, Magazine::kSlots - last->count);
    return bundle.count == 0 ? nullptr : shelf.take_empty();
  }
  static Magazine* kept_empty(Shelf& shelf) {
    const os::Guarded hold(shelf.lock);
    return shelf.take_empty();
  }
  static Magazine* taken_empties(Shelf& shelf) {
    const os::Guarded hold(shelf.lock);
    shelf.empties = 0;
    return std::exchange(shelf.empty, nullptr);
  }
};

}  // namespace hz
