// SPDX-License-Identifier: Apache-2.0
//
// Blocks above the largest class, and above a granule's alignment: a run of granules each. A run that is freed keeps
// its pages for the next one while retention lets it, else they go back with it. Growing moves pages, not bytes. Called
// from the slow paths of heap.hpp with the thread's lock held.
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
    if (Line::Guard::kMarks && !zeroed) Line::Guard::on_alloc(pointer(run.at), kHugeBin);
    settle(t, run.at, granules);
    return pointer(run.at);
  }

  static void free(Thread& t, void* block) {
    const std::uintptr_t at = address(block);
    const std::size_t bytes = usable_size(block);
    leave(t, at, bytes);
    if (may_stay(block, bytes)) {
      Source::release(S::global.source, at, false);
    } else {
      give_back(block, bytes, false);
    }
    Home<Line>::purge_if_due(t);
  }

  // Makes a block read as zero whose run was used before: what the program does not touch is not to be paid for.
  static void clear(void* block, std::size_t size) {
    if (!os::purge(block, usable_size(block))) __builtin_memset(block, 0, size);
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
    void* to = moved(t, block, old_bytes, size);
    return to == nullptr && bytes < old_bytes ? block : to;  // then it stays larger than it has to be
  }

 private:
  static bool may_stay(const void* block, std::size_t bytes) {
    return Source::dirty_bytes(S::global.source) + bytes <= Retain::dirty_limit(S::global.retain) &&
           !Source::in_pieces(S::global.source, address(block));
  }

  static std::size_t granules_for(std::size_t bytes) { return (bytes + kGranule - 1) >> kGranuleShift; }

  static void settle(Thread& t, std::uintptr_t at, std::size_t granules) {
    Route::bind(S::global.route, at, kPage, kHugeBin, kNobody);
    Retain::slots_out(S::global.retain, granules << kGranuleShift);
    Line::Observe::count(t.observe, Event::kSpanAcquired, 1);
  }

  // The block at another place; nullptr if there is none.
  static void* moved(Thread& t, void* block, std::size_t old_bytes, std::size_t size) {
    bool zeroed = false;
    void* to = allocate(t, size, 1, zeroed, old_bytes >> kGranuleShift);
    if (to == nullptr) return nullptr;
    const std::size_t kept = old_bytes < usable_size(to) ? old_bytes : usable_size(to);
    std::size_t done = 0;
    if (!zeroed && !os::purge(to, kept)) {  // what moves has to meet zeros, or nobody can tell where a move stopped
      __builtin_memcpy(to, block, kept);
    } else if ((done = move_pieces(block, to, kept)) != kept && !gathered(block, to, kept)) {
      abandon(t, to);
      to = allocate(t, size, 1, zeroed);
      if (to == nullptr) return nullptr;
      __builtin_memcpy(to, block, kept);
    }
    leave(t, address(block), old_bytes);
    give_back(block, old_bytes, done == old_bytes);
    Home<Line>::purge_if_due(t);
    return to;
  }

  // A mapping at a time; how much has arrived for certain.
  static std::size_t move_pieces(void* from, void* to, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      const std::size_t rest = bytes - done;
      const std::size_t piece = Source::piece(S::global.source, address(from), done);
      const std::size_t length = piece < rest ? piece : rest;
      Source::note_seam(S::global.source, address(to) + done);
      if (!os::move_pages(at(from, done), at(to, done), length)) return done;
      done += length;
    }
    if (done < usable_size(to)) Source::note_seam(S::global.source, address(to) + done);
    return done;
  }

  // After a move that stopped anywhere: every granule is in one of the two places, and the other one reads as zero or
  // is not mapped. Brings all of them to `to`, or, if that place cannot be mapped as a whole again, back.
  HZ_COLD static bool gathered(void* from, void* to, std::size_t bytes) {
    bool whole = true;
    for (std::size_t offset = 0; offset < bytes; offset += kGranule) {
      if (!os::extend(at(to, offset), kGranule) && !os::is_mapped(at(to, offset), kGranule)) whole = false;
    }
    for (std::size_t offset = 0; offset < bytes; offset += kGranule) {
      if (!whole && !os::is_mapped(at(to, offset), kGranule)) continue;
      void* source = at(whole ? from : to, offset);
      if (!is_zero(source)) __builtin_memcpy(at(whole ? to : from, offset), source, kGranule);
    }
    return whole;
  }
  static bool is_zero(const void* granule) {
    const auto* words = static_cast<const std::uint64_t*>(granule);
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < kGranule / sizeof *words; ++i) any |= words[i];
    return any == 0;
  }
  static void* at(void* block, std::size_t offset) { return pointer(address(block) + offset); }

  // A place that lies in several mappings and cannot be made one again stays in use: nobody gets it.
  static void give_back(void* block, std::size_t bytes, bool fresh) {
    const bool in_pieces = Source::in_pieces(S::global.source, address(block));
    if (!fresh || in_pieces) fresh = os::remap_fresh(block, bytes);
    if (fresh || !in_pieces) {
      Source::release(S::global.source, address(block), fresh);
    } else {
      os::purge(block, bytes);
    }
  }
  // A run whose place could not be mapped again: it stays in use, so that nobody gets it.
  static void abandon(Thread& t, void* block) {
    leave(t, address(block), usable_size(block));
    os::purge(block, usable_size(block));
  }
  static void leave(Thread& t, std::uintptr_t at, std::size_t bytes) {
    Route::clear(S::global.route, at, kPage);
    Retain::slots_home(S::global.retain, bytes);
    Line::Observe::count(t.observe, Event::kSpanRetired, 1);
  }
};

}  // namespace hz
