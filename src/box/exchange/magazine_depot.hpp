// SPDX-License-Identifier: Apache-2.0
//
// Stacks of magazines, one per class and processor: threads which free leave them for threads which allocate.
// All of hakozuna's exchange, and a part of hz4's and hz8's. A full magazine changes hands whole, for one
// lock of its stack and no copy; what is less is copied into the one that came last. The newest magazine
// leaves first, and a thread looks first where it runs, because those slots are the likeliest to be in its
// core's cache. A magazine that cannot be had is one whose slots return to their spans.
#pragma once

#include <new>

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

  static constexpr unsigned kShards = 64;  // on machines with more processors some share one

  struct Global {
    struct alignas(64) Shelf {
      os::Lock lock;
      Magazine* first = nullptr;
    };
    struct Shard {
      Shelf of_bin[kBins];
      // A bit for each bin of which something waits: written under the lock of its shelf, read as a hint, so
      // that who looks through all bins touches one line and not one a bin.
      alignas(64) std::atomic<std::uint64_t> waiting[kBins / 64 + 1];
    };
    Shard of_cpu[kShards];
    alignas(64) std::atomic<std::uint64_t> used{0};  // a bit for each shard that ever had a magazine
  };
  using Shard = typename Global::Shard;
  using Shelf = typename Global::Shelf;
  static_assert(kShards == 64, "a bit for each");

  static void give(Global& g, unsigned /*owner*/, Bin bin, SlotArray& bundle) {
    Shard& here = shard(g);
    auto& shelf = here.of_bin[bin];
    top_up(shelf, bundle);
    while (bundle.count != 0) {
      Magazine* const some = Empty::take();
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
      give_empty(emptied);
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
  static Magazine* take_empty() {
    Magazine* empty = Empty::take();
    if (empty != nullptr) empty->count = 0;
    return empty;
  }
  static void give_empty(Magazine* empty) { Empty::give(empty); }

  static bool waits(const Global& g, unsigned /*owner*/, Bin bin) {
    for (std::uint64_t left = used(g); left != 0; left &= left - 1) {
      if (has(g.of_cpu[__builtin_ctzll(left)], bin)) return true;
    }
    return false;
  }

  static std::size_t metadata_bytes(const Global&) { return Empty::bytes(); }

  static void shrink(Global&, unsigned /*owners*/) { Empty::shrink(); }

  // In a child that another thread's change was cut off in: what it was at is lost.
  static void make_whole(Global& g, unsigned /*owners*/) {
    Empty::make_whole();
    for (std::uint64_t left = used(g); left != 0; left &= left - 1) {
      Shard& shard = g.of_cpu[__builtin_ctzll(left)];
      for (Bin bin = 1; bin < kBins; ++bin)
        if (shard.of_bin[bin].lock.reset()) ::new (static_cast<void*>(&shard.of_bin[bin])) Shelf;
    }
  }

 private:
  static std::atomic<std::uint64_t>& word_of(Shard& shard, Bin bin) { return shard.waiting[bin / 64]; }
  static std::uint64_t bit_of(Bin bin) { return std::uint64_t{1} << bin % 64; }
  static std::uint64_t used(const Global& g) { return g.used.load(std::memory_order_relaxed); }
  // A hint.
  static bool has(const Shard& shard, Bin bin) {
    return (shard.waiting[bin / 64].load(std::memory_order_relaxed) & bit_of(bin)) != 0;
  }

  // This processor's.
  static Shard& shard(Global& g) {
    const unsigned here = os::current_cpu() % kShards;
    const std::uint64_t mine = std::uint64_t{1} << here;
    if ((used(g) & mine) == 0) g.used.fetch_or(mine, std::memory_order_relaxed);
    return g.of_cpu[here];
  }

  // From here on upwards, then from the first, until `visit` is done. A shard is not looked at before its
  // turn comes: what a processor gives, it takes itself as a rule, and then no line of another one passes.
  static void for_each_waiting(Global& g, Bin bin, auto visit) {
    const unsigned here = os::current_cpu() % kShards;
    const std::uint64_t some = used(g);
    std::uint64_t left = here == 0 ? some : some >> here | some << (kShards - here);
    for (; left != 0; left &= left - 1) {
      Shard& shard = g.of_cpu[(here + static_cast<unsigned>(__builtin_ctzll(left))) % kShards];
      if (has(shard, bin) && visit(shard)) return;
    }
  }

  static void put(Shard& shard, Bin bin, Magazine* magazine) {
    auto& shelf = shard.of_bin[bin];
    const os::Guarded hold(shelf.lock);
    if (shelf.first == nullptr) word_of(shard, bin).fetch_or(bit_of(bin), std::memory_order_relaxed);
    magazine->follow_with(shelf.first);
    shelf.first = magazine;
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
  // What would not fill a magazine goes into the one that came last, as far as that has room.
  static void top_up(Shelf& shelf, SlotArray& bundle) {
    if (bundle.count >= Magazine::kSlots) return;
    const os::Guarded hold(shelf.lock);
    if (Magazine* const last = shelf.first)
      last->count += bundle.take(last->slots + last->count, Magazine::kSlots - last->count);
  }
};

}  // namespace hz
