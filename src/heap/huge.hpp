// SPDX-License-Identifier: Apache-2.0
//
// Blocks above the largest class, and above a granule's alignment: a run of granules each, mapped for the block and
// given back with it. Growing moves pages, not bytes. Called from the slow paths of heap.hpp with the thread's lock
// held.
#pragma once

#include "heap/refill.hpp"

namespace hz {

template <class Line>
struct Huge {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Route = typename Line::Route;

  static constexpr std::size_t kMaxBytes = PTRDIFF_MAX;
  static constexpr unsigned kNobody = Line::Remote::kOwners;  // an owner that no thread is

  // `instead_of`: granules of the block whose place it takes.
  static void* allocate(Thread& t, std::size_t size, std::size_t alignment, bool& zeroed, std::size_t instead_of = 0) {
    if (size > kMaxBytes - kGranule) return nullptr;
    const std::size_t granules = granules_for(size == 0 ? 1 : size);
    Demand demand = {.instead_of = instead_of};
    Run run = Source::acquire(S::global.source, granules, granules_for(alignment), demand);
    if (run.at == 0) {
      Boundary<Line>::reclaim(t, 0);
      demand.insists = true;
      run = Source::acquire(S::global.source, granules, granules_for(alignment), demand);
      if (run.at == 0) return nullptr;
    }
    zeroed = run.zeroed;
    // Recycled memory may still carry the mark of a free slot, and a realloc may take it along to where it counts.
    if (!zeroed) Line::Guard::on_alloc(pointer(run.at));
    settle(t, run.at, granules);
    return pointer(run.at);
  }

  static void free(Thread& t, void* block) {
    const std::uintptr_t at = address(block);
    const std::size_t bytes = usable_size(block);
    leave(t, at, bytes);
    give_back(block, os::remap_fresh(block, bytes));
    Home<Line>::purge_if_due(t);
  }

  static std::size_t usable_size(const void* block) {
    return Source::granules(S::global.source, address(block)) << kGranuleShift;
  }

  // Whether a block of `size` bytes may lie here; realloc leaves blocks in place down to half.
  static bool fits(const void* block, std::size_t size, bool after_realloc) {
    const std::size_t usable = usable_size(block);
    return size <= usable && (usable - size <= kGranule || (after_realloc && size >= usable / 2));
  }

  // The block at its new size, moved by pages if need be; nullptr if there is no room, and then nothing has changed.
  // Blocks that move keep their contents up to the smaller size.
  static void* resize(Thread& t, void* block, std::size_t size) {
    if (size > kMaxBytes - kGranule) return nullptr;
    const std::size_t old_bytes = usable_size(block);
    const std::size_t bytes = granules_for(size) << kGranuleShift;
    if (Source::resize(S::global.source, address(block), bytes >> kGranuleShift)) {
      if (bytes > old_bytes) {
        Retain::slots_out(S::global.retain, bytes - old_bytes);
      } else {
        Retain::slots_home(S::global.retain, old_bytes - bytes);
        Home<Line>::purge_if_due(t);
      }
      return block;
    }
    bool zeroed = false;
    void* moved = allocate(t, size, 1, zeroed, old_bytes >> kGranuleShift);
    if (moved == nullptr) return nullptr;
    const bool in_pieces = Source::moved(S::global.source, address(block));  // cannot be moved by pages once more
    const os::Move result = in_pieces ? os::Move::kRefused : os::move_pages(block, moved, old_bytes);
    if (result == os::Move::kTargetLost) {
      abandon(t, address(moved));
      moved = allocate(t, size, 1, zeroed);
      if (moved == nullptr) return nullptr;
    }
    const bool by_pages = result == os::Move::kDone;
    if (by_pages) {
      Source::note_moved(S::global.source, address(moved));
    } else {
      __builtin_memcpy(moved, block, old_bytes < bytes ? old_bytes : bytes);
    }
    leave(t, address(block), old_bytes);
    give_back(block, by_pages || (in_pieces && os::remap_fresh(block, old_bytes)));
    Home<Line>::purge_if_due(t);
    return moved;
  }

 private:
  static std::size_t granules_for(std::size_t bytes) { return (bytes + kGranule - 1) >> kGranuleShift; }

  static void settle(Thread& t, std::uintptr_t at, std::size_t granules) {
    Route::bind(S::global.route, at, kPage, kHugeBin, kNobody);
    Retain::slots_out(S::global.retain, granules << kGranuleShift);
    Line::Observe::count(t.observe, Event::kSpanAcquired, 1);
  }
  // A place that lies in several mappings and could not be made one again stays in use: the next move from there might
  // stop half-way.
  static void give_back(void* block, bool fresh) {
    if (fresh || !Source::moved(S::global.source, address(block))) {
      Source::release(S::global.source, address(block), fresh);
    } else {
      os::purge(block, usable_size(block));
    }
  }
  // A run whose place could not be mapped again: it stays in use, so that nobody gets it.
  static void abandon(Thread& t, std::uintptr_t at) { leave(t, at, usable_size(pointer(at))); }
  static void leave(Thread& t, std::uintptr_t at, std::size_t bytes) {
    Route::clear(S::global.route, at, kPage);
    Retain::slots_home(S::global.retain, bytes);
    Line::Observe::count(t.observe, Event::kSpanRetired, 1);
  }
};

}  // namespace hz
