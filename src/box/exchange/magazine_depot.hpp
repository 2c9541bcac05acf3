// SPDX-License-Identifier: Apache-2.0
//
// Stacks of magazines, one per class and processor: threads which free leave them for threads which allocate.
// All of hakozuna's exchange, and a part of that of hz4, hz5, hz6 and hz8. A full magazine changes hands
// whole, for one lock of its stack and no copy; what is less is copied into the one that came last. The
// newest magazine leaves first, and a thread takes where it runs, because those slots are the likeliest to be
// in its core's cache, and their neighbours too. It steals from other processors when memory would be mapped,
// and leaves them what they took back themselves of late. A magazine that cannot be had, or that there is no
// room for where a line bounds its shelves, is one whose slots return to their spans.
#pragma once

#include <atomic>

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
      os::LockOf<os::Rank::kWaiting> lock;
      std::atomic<Magazine*> first{nullptr};  // written under the lock, else a hint
      // In magazines, under the lock: how many wait, how many fewer than before because this processor took
      // them, and the most that these were of late: it will want as many again.
      unsigned count = 0, drawn = 0, wanted = 0;
    };
    // A bit for each shelf of the class that has magazines, so that a thread that searches all shelves reads
    // one line and not one a processor. Written under the lock of the shelf: set when it gets its first
    // magazine, cleared by a thread of another processor that leaves nothing. The processor itself leaves it
    // set.
    struct alignas(64) Waiting {
      std::atomic<std::uint64_t> shelves{0};
    };
    Shelf of_cpu[kShards][kBins];
    Waiting of_bin[kBins];
  };
  using Shelf = typename Global::Shelf;
  static_assert(kShards == 64, "a bit for each");

  static void give(Global& g, unsigned /*owner*/, Bin bin, SlotArray& bundle) {
    top_up(g.of_cpu[this_shard()][bin], room(bin), bundle);
    while (bundle.count != 0) {
      Magazine* const some = Empty::take();
      if (some == nullptr) return;
      some->count = bundle.take(some->slots, room(bin));
      if (give(g, bin, some)) continue;
      bundle.count += some->count;  // they still lie there
      return Empty::give(some);
    }
  }
  // Whether it waits; false: there is no room.
  static bool give(Global& g, Bin bin, Magazine* full) {
    const unsigned here = this_shard();
    Shelf& shelf = g.of_cpu[here][bin];
    const os::Guarded hold(shelf.lock);
    if (shelf.count >= most(bin) || full->count > room(bin)) return false;
    if (first(shelf) == nullptr && (waiting(g, bin) & bit_of(here)) == 0)
      g.of_bin[bin].shelves.fetch_or(bit_of(here), std::memory_order_relaxed);
    full->follow_with(first(shelf));
    set_first(shelf, full);
    ++shelf.count;
    if (shelf.drawn != 0) --shelf.drawn;
    return true;
  }

  // Of one magazine, and not more than `want`.
  static void take(Global& g, unsigned /*owner*/, Bin bin, unsigned want, SlotArray& out) {
    const unsigned here = this_shard();
    Magazine* emptied = nullptr;
    const auto some = [&](Shelf& shelf, Magazine* newest) {
      emptied = draw(shelf, newest, want, out);
      return true;
    };
    if (!at_own(g, here, bin, some)) at_others(g, here, bin, some);
    give_empty(emptied);
  }
  // Whole; nullptr if none waits for this processor.
  static Magazine* take(Global& g, Bin bin) {
    Magazine* full = nullptr;
    at_own(g, this_shard(), bin, [&](Shelf& shelf, Magazine* newest) {
      full = unlink(shelf, newest);
      if (++shelf.drawn > shelf.wanted) shelf.wanted = shelf.drawn;
      return true;
    });
    return full;
  }
  // Of one magazine of another processor.
  static unsigned steal(Global& g, auto& /*owners*/, Bin bin, unsigned want, bool anybodys, SlotArray& out) {
    if (!anybodys) return 0;
    Magazine* emptied = nullptr;
    at_others(g, this_shard(), bin, [&](Shelf& shelf, Magazine* newest) {
      if (!can_spare(shelf)) return false;
      emptied = draw(shelf, newest, want, out);
      return true;
    });
    give_empty(emptied);
    return 0;
  }

  // An empty one, for a full one that will be given; nullptr if there is no memory. And the other way round.
  static Magazine* take_empty() {
    Magazine* empty = Empty::take();
    if (empty != nullptr) empty->count = 0;
    return empty;
  }
  static void give_empty(Magazine* empty) { Empty::give(empty); }

  static bool waits(const Global& g, unsigned /*owner*/, Bin bin) { return waiting(g, bin) != 0; }

  static std::size_t metadata_bytes(const Global&) { return Empty::bytes(); }

  static void shrink(Global&, unsigned /*owners*/) { Empty::shrink(); }

  // In a child that another thread's change was cut off in: what it was at is lost.
  static void make_whole(Global& g, unsigned /*owners*/) {
    Empty::make_whole();
    for (auto& shelves : g.of_cpu)
      for (Shelf& shelf : shelves)
        if (shelf.lock.reset()) empty(shelf);
  }

 private:
  // Where the line says how many bytes of a class may wait for one processor: slots that may lie in one
  // magazine, and how many magazines there may be; one of each in any case.
  static constexpr unsigned room(Bin bin) {
    if constexpr (requires { Line::kShelfBytes; }) return fitting(bin_size(bin), Magazine::kSlots);
    return Magazine::kSlots;
  }
  static constexpr unsigned most(Bin bin) {
    if constexpr (requires { Line::kShelfBytes; }) return fitting(room(bin) * bin_size(bin), ~0U);
    return ~0U;
  }
  static constexpr unsigned fitting(std::size_t bytes, unsigned limit) {
    const std::size_t n = Line::kShelfBytes / bytes;
    return n == 0 ? 1 : n < limit ? static_cast<unsigned>(n) : limit;
  }

  static unsigned this_shard() { return os::current_cpu() % kShards; }
  static std::uint64_t bit_of(unsigned shard) { return std::uint64_t{1} << shard; }
  static std::uint64_t waiting(const Global& g, Bin bin) {
    return g.of_bin[bin].shelves.load(std::memory_order_relaxed);
  }
  static Magazine* first(const Shelf& shelf) { return shelf.first.load(std::memory_order_relaxed); }
  static void set_first(Shelf& shelf, Magazine* magazine) {
    shelf.first.store(magazine, std::memory_order_relaxed);
  }

  // Calls `visit` with the newest magazine there, with the lock of the shelf, and returns whether it took
  // slots. A processor usually takes what it gave itself, and then no line of another one passes. A caller
  // that searches this shelf and then the others reads `here` once: the system may move it to another
  // processor meanwhile, and it would skip that one.
  static bool at_own(Global& g, unsigned here, Bin bin, auto visit) {
    Shelf& own = g.of_cpu[here][bin];
    if (first(own) == nullptr) return false;
    const os::Guarded hold(own.lock);
    Magazine* const newest = first(own);
    return newest != nullptr && visit(own, newest);
  }
  // The same on other shelves, from the next one upwards, until `visit` took of one.
  static void at_others(Global& g, unsigned here, Bin bin, auto visit) {
    const std::uint64_t some = waiting(g, bin) & ~bit_of(here);
    std::uint64_t left = here == 0 ? some : some >> here | some << (kShards - here);
    for (; left != 0; left &= left - 1) {
      const unsigned at = (here + static_cast<unsigned>(__builtin_ctzll(left))) % kShards;
      Shelf& shelf = g.of_cpu[at][bin];
      const os::Guarded hold(shelf.lock);
      Magazine* const newest = first(shelf);
      const bool took = newest != nullptr && visit(shelf, newest);
      if (first(shelf) == nullptr) g.of_bin[bin].shelves.fetch_and(~bit_of(at), std::memory_order_relaxed);
      if (took) return;
    }
  }
  // To another processor, which is about to map memory. It asks again when it has used that up. Each refusal
  // halves the number that the shelf keeps, or a shelf would keep its highest number without end.
  static bool can_spare(Shelf& shelf) {
    if (shelf.count > shelf.wanted) return true;
    shelf.wanted /= 2;
    if (shelf.drawn > shelf.wanted) shelf.drawn = shelf.wanted;
    return false;
  }
  // The magazine, if it is empty now.
  static Magazine* draw(Shelf& shelf, Magazine* newest, unsigned want, SlotArray& out) {
    out.draw(want, newest->slots, newest->count);
    return newest->count == 0 ? unlink(shelf, newest) : nullptr;
  }
  static Magazine* unlink(Shelf& shelf, Magazine* newest) {
    set_first(shelf, newest->following());
    --shelf.count;
    return newest;
  }
  static void empty(Shelf& shelf) {
    set_first(shelf, nullptr);
    shelf.count = shelf.drawn = shelf.wanted = 0;
  }
  // What would not fill a magazine goes into the one that came last, as far as that has room.
  static void top_up(Shelf& shelf, unsigned room, SlotArray& bundle) {
    if (bundle.count >= room) return;
    const os::Guarded hold(shelf.lock);
    if (Magazine* const last = first(shelf))
      last->count += bundle.take(last->slots + last->count, room - last->count);
  }
};

}  // namespace hz
