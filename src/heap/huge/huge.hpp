// SPDX-License-Identifier: Apache-2.0
//
// Blocks above the largest class, and above a granule's alignment: a run of granules each; and samples of the
// heap profile, of whatever class (heap/api/quotas.hpp). A run that is freed keeps its pages for the next one
// while retention lets it, else they go back with it. Growing moves pages, not bytes, to where there are
// none. Called from the slow paths of heap.hpp with the thread's lock held.
#pragma once

#include "base/bytes.hpp"
#include "base/zeroes.hpp"
#include "box/guard/report.hpp"
#include "heap/exchange/reclaim.hpp"
#include "heap/state/block.hpp"
#include "heap/state/mitigation.hpp"

namespace hz {

template <class Line>
struct Huge {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Route = typename Line::Route;
  using M = MitigationOf<Line>;

  static constexpr std::size_t kMaxBytes = PTRDIFF_MAX;
  static constexpr unsigned kNobody = Line::Exchange::kOwners;  // an owner that no thread is

  // `instead_of`: granules of the block whose place it takes. `may_reclaim`: memory may be reclaimed for it.
  // `room`: granules of addresses behind it that it may grow into. A separate frame: test/stack bounds it.
  HZ_SLOW static void* allocate(Thread& t, std::size_t size, std::size_t alignment, bool& zeroed,
                                std::size_t instead_of = 0, bool may_reclaim = true, std::size_t room = 0) {
    if (size > kMaxBytes - kGranule) return nullptr;
    const std::size_t granules = granules_for(size == 0 ? 1 : size);
    Demand demand = {.instead_of = instead_of, .room = room};
    Run run = acquire(granules, alignment, size, demand);
    if (run.at == 0) {
      // Nothing that is given up makes room for more than there are addresses.
      const bool may_fit =
          size < Source::bytes(S::global.source) && alignment < Source::bytes(S::global.source);
      if (!may_reclaim || !may_fit) return nullptr;
      Reclaim<Line>::reclaim(t, 0);
      demand.force = true;
      run = acquire(granules, alignment, size, demand);
      if (run.at == 0) return nullptr;
    }
    zeroed = run.zeroed;
    if (!zeroed) purge_tail(t, run.at, size);
    // Recycled memory may still carry the mark of a free slot, and a realloc may take it along to where it
    // counts.
    if (Line::Guard::kMarks && !zeroed) Line::Guard::on_alloc(pointer(run.at), kHugeBin);
    bind_block(t, run.at, granules);
    if (zeroed)
      SpanReturn<Line>::purge_if_due(t, granules << kGranuleShift);  // new pages, while old ones wait to go
    return pointer(run.at);
  }

  // Two threads may free a block at once. Returns false to one of them. Reads the tag again, because the run
  // may have been freed and have another use by now.
  static bool claim(void* block) {
    if (!Source::claim(S::global.source, address(block), true)) return false;
    if (HZ_LIKELY(classify<Line>(block).kind == Kind::kRun)) return true;
    Source::claim(S::global.source, address(block), false);
    return false;
  }

  // A block that was claimed.
  static void free(Thread& t, void* block) {
    const std::size_t bytes = run_bytes(block);
    leave(t, address(block), bytes);
    if (M::release_run(address(block))) return;
    release(t, block, bytes);
    SpanReturn<Line>::purge_if_due(t);
  }

  // A recorded sample counts as a block of its class from here on, not as the run that it has to itself.
  static void count_as_sample(Thread& t, const void* block, Bin bin) {
    const std::size_t slack = slack_of(bin, run_bytes(block));
    gave(t, slack);
    S::global.huge_bytes.fetch_sub(slack, std::memory_order_relaxed);
  }
  // Ends what is recorded of a block, before another thread can have its run: there is one block of an
  // address. The block counts as the run again. Returns its class. `bytes`: of the run; 0: that it has now.
  HZ_INLINE static Bin end_sample(Thread& t, const void* block, std::size_t bytes = 0) {
    return HZ_UNLIKELY(Extensions::records()) ? end_recorded(t, block, bytes) : kHugeBin;
  }

  // Makes a block read as zero whose run was used before: what the program does not touch is not to be paid
  // for. False: the system does not take its pages.
  static bool cleared(void* block) { return os::purge(block, run_bytes(block)); }

  static std::size_t run_bytes(const void* block) { return M::run_bytes(block); }
  // The class of a block that lies in such a run as a recorded sample; else kHugeBin.
  static Bin bin_of(const void* block) {
    return HZ_UNLIKELY(Extensions::records()) ? Extensions::bin_of(block) : kHugeBin;
  }
  static std::size_t usable_size(const void* block) { return M::usable_in_run(block, bin_of(block)); }
  // Returns the bytes of a run without reading the block, for another thread may free it meanwhile.
  // `run_bytes`: those of its run.
  static std::size_t noted_bytes(const void* block, std::size_t run_bytes) {
    return M::noted_in_run(block, bin_of(block), run_bytes);
  }

  // Whether a block of `size` bytes may lie here; realloc leaves blocks in place down to half.
  static bool fits(const void* block, std::size_t size, bool after_realloc) {
    if constexpr (M::kExactSizes) return size == usable_size(block);
    const std::size_t usable = run_bytes(block);
    return size <= usable && (usable - size <= kGranule || (after_realloc && size >= usable / 2));
  }

  // The block at its new size, moved by pages if need be; nullptr if there is no room, and then nothing has
  // changed. Blocks that move keep their contents up to the smaller size.
  static void* resize(Thread& t, void* block, std::size_t size) {
    if (size > kMaxBytes - kGranule) return nullptr;
    const bool reuses = better_moves(t, block, size);
    if (resize_in_place(t, block, size, reuses)) return block;
    const std::size_t old_bytes = run_bytes(block);
    void* to = moved(t, block, old_bytes, size);
    if (to == nullptr && reuses && resize_in_place(t, block, size)) return block;
    if (to != nullptr || bytes_for(size) >= old_bytes) return to;
    FaultReport::keep(block);
    return block;  // larger than it has to be
  }
  // False if there is no room behind it, or its rest cannot go. `reuses`: also if it would take new memory
  // while free memory elsewhere holds all of it.
  static bool resize_in_place(Thread& t, void* block, std::size_t size, bool reuses = false) {
    if (size > kMaxBytes - kGranule) return false;
    const std::size_t old_bytes = run_bytes(block);
    if (!M::resize_run(block, size, reuses)) return false;
    const std::size_t bytes = bytes_for(size);
    end_sample(t, block, old_bytes);
    if (bytes > old_bytes) {
      took(t, bytes - old_bytes);
      S::global.huge_bytes.fetch_add(bytes - old_bytes, std::memory_order_relaxed);
    } else if (bytes < old_bytes) {
      gave(t, old_bytes - bytes);
      S::global.huge_bytes.fetch_sub(old_bytes - bytes, std::memory_order_relaxed);
      SpanReturn<Line>::purge_if_due(t);
    }
    return true;
  }
  // What a block of that size has.
  static std::size_t bytes_for(std::size_t size) {
    return granules_for(size == 0 ? 1 : size) << kGranuleShift;
  }

 private:
  // Returns true if a block that grows is to move into free memory, for too much of that has pages. A block
  // at the arena's end could always grow there, and so could the next one at its end: what is free below
  // would never be used.
  static bool better_moves(Thread& t, const void* block, std::size_t size) {
    if constexpr (M::kGrowsAsRun == SIZE_MAX) return false;
    const std::size_t before = run_bytes(block), bytes = bytes_for(size);
    return bytes > before && SpanReturn<Line>::too_dirty(t, bytes - before);
  }
  // Purges the pages of a run that was used before behind those of its block, which may never touch them.
  static void purge_tail(Thread& t, std::uintptr_t at, std::size_t size) {
    const std::size_t used = align_up(size == 0 ? 1 : size, os::page_bytes());
    const std::size_t tail = bytes_for(size) - used;
    if (tail != 0 && os::purge(pointer(at + used), tail)) SpanReturn<Line>::count_purge(t, tail);
  }

  // Purges a freed block if too much is dirty and one free may purge so much. Else its pages stay, for the
  // purger, or without one for a later free.
  static void release(Thread& t, void* block, std::size_t bytes) {
    const bool stays = !SpanReturn<Line>::too_dirty(t, bytes) || !SpanReturn<Line>::may_purge(bytes);
    if (stays && !Source::in_pieces(S::global.source, address(block)))
      return Source::release(S::global.source, address(block), false);
    give_back(block, bytes, false);
    Retain::purged(S::global.retain, bytes);
  }

  // Folded at once: what is freed is dirty at once, and others would purge for it.
  static void took(Thread& t, std::size_t bytes) {
    Retain::slots_out(t.retain, bytes);
    Retain::fold(S::global.retain, t.retain);
  }
  static void gave(Thread& t, std::size_t bytes) {
    Retain::slots_returned(t.retain, bytes);
    Retain::fold(S::global.retain, t.retain);
  }

  HZ_COLD static Bin end_recorded(Thread& t, const void* block, std::size_t bytes) {
    const Bin bin = Extensions::end(block);
    if (bin == kHugeBin) return bin;
    const std::size_t slack = slack_of(bin, bytes != 0 ? bytes : run_bytes(block));
    took(t, slack);
    S::global.huge_bytes.fetch_add(slack, std::memory_order_relaxed);
    return bin;
  }
  static std::size_t slack_of(Bin bin, std::size_t run_bytes) {
    return run_bytes > bin_size(bin) ? run_bytes - bin_size(bin) : 0;
  }

  static Run acquire(std::size_t granules, std::size_t alignment, std::size_t size, const Demand& demand) {
    return M::acquire_run(granules, granules_for(alignment), size, demand);
  }

  static std::size_t granules_for(std::size_t bytes) { return (bytes + kGranule - 1) >> kGranuleShift; }

  // One copy of it, as of leave(): gold refuses the note of a probe (os/probe.hpp) in a copy that it drops.
  HZ_SLOW static void bind_block(Thread& t, std::uintptr_t at, std::size_t granules) {
    Route::bind(S::global.route, at, kPage, kHugeBin, kNobody);
    took(t, granules << kGranuleShift);
    S::global.huge_blocks.fetch_add(1, std::memory_order_relaxed);
    S::global.huge_bytes.fetch_add(granules << kGranuleShift, std::memory_order_relaxed);
    Line::Observe::count(t.observe, Event::kSpanAcquired, 1);
    os::probe::span_acquired(at, granules << kGranuleShift);
  }

  // Returns how many granules a block gets to grow into where it grows by less than half: half as many as it
  // has, or as many, where its bytes are copied. A program that adds a little each time then moves it seldom.
  static std::size_t room_for(std::size_t size, std::size_t old_bytes) {
    const std::size_t bytes = bytes_for(size);
    return bytes > old_bytes && bytes - old_bytes < old_bytes / 2 ? M::room_behind(bytes) >> kGranuleShift
                                                                  : 0;
  }

  // The block at another place; nullptr if there is none.
  static void* moved(Thread& t, void* block, std::size_t old_bytes, std::size_t size) {
    bool zeroed = false;
    void* to = allocate(t, size, 1, zeroed, old_bytes >> kGranuleShift, true, room_for(size, old_bytes));
    if (to == nullptr) return nullptr;
    const std::size_t kept = old_bytes < run_bytes(to) ? old_bytes : run_bytes(to);
    Move move;
    if (!opened(t, block, old_bytes, to, kept)) return nullptr;
    // Moves pages only to a place without pages; otherwise the end of a partial move could not be found.
    // Copies bytes if there are some: those pages and the old ones would have to be faulted in again.
    const bool by_bytes = !zeroed;
    if (by_bytes) {
      copy_bytes(to, block, kept);
    } else if (!move_pieces(block, to, kept, move) && !gathered(block, to, kept, move)) {
      abandon(t, to, move.done);
      to = allocate(t, size, 1, zeroed);
      if (to == nullptr || !opened(t, block, old_bytes, to, kept)) return nullptr;
      copy_bytes(to, block, kept);
    }
    Source::join(S::global.source, address(to), address(block));
    end_sample(t, block, old_bytes);
    leave(t, address(block), old_bytes);
    if (M::bequeath_run(block, to)) return to;
    // The old place did not count while both were held: it may keep its pages only where they count for
    // nothing.
    if (by_bytes && Source::has_room(S::global.source, 0)) {
      release(t, block, old_bytes);
    } else {
      give_back(block, old_bytes, move.done == old_bytes && !move.copied);
    }
    SpanReturn<Line>::purge_if_due(t);
    return to;
  }

  // Makes what is moved by whole granules usable at both places. False: the system refuses, and the new block
  // is gone.
  static bool opened(Thread& t, const void* block, std::size_t old_bytes, void* to, std::size_t kept) {
    if (M::open_runs(block, old_bytes, to, kept)) return true;
    claim(to);
    free(t, to);
    return false;
  }

  // What has arrived, and the piece after it, which did not.
  struct Move {
    std::size_t done = 0, failed = 0;
    bool copied = false;  // some of it is still where it was, too
  };
  static constexpr std::size_t kLeastMove = kMiB;

  // A mapping at a time; what is small is copied.
  static bool move_pieces(void* from, void* to, std::size_t bytes, Move& move) {
    while (move.done < bytes) {
      const std::size_t rest = bytes - move.done;
      const std::size_t piece = Source::piece(S::global.source, address(from), move.done);
      const std::size_t length = piece < rest ? piece : rest;
      if (length < kLeastMove) {
        copy_bytes(at(to, move.done), at(from, move.done), length);
        move.copied = true;
      } else {
        Source::note_mapping_boundary(S::global.source, address(to) + move.done);
        if (!os::move_pages(at(from, move.done), at(to, move.done), length))
          return move.failed = length, false;
        if (move.done + length < run_bytes(to))
          Source::note_mapping_boundary(S::global.source, address(to) + move.done + length);
      }
      move.done += length;
    }
    return true;
  }

  // After a move that stopped: every granule is in one of the two places, and the other one reads as zero, or
  // has the same, or is a hole. Brings all of them to `to`, or, if that is no longer ours as a whole, back.
  HZ_COLD static bool gathered(void* from, void* to, std::size_t bytes, const Move& move) {
    if (reclaimed(to, move)) {
      for (std::size_t offset = 0; offset < bytes; offset += kGranule)
        carry(at(from, offset), at(to, offset));
      return true;
    }
    for (std::size_t offset = 0; offset < move.done + move.failed; offset += kGranule) {
      // Of the piece that failed, what has certainly left.
      const bool there =
          offset < move.done || (is_zero(at(from, offset)) && os::is_mapped(at(to, offset), kGranule));
      if (there) carry(at(to, offset), at(from, offset));
    }
    return false;
  }
  // The system may have unmapped the target of the piece that failed. Then other code may have mapped
  // something there meanwhile, which looks like our memory. The place is ours again only if all of it was a
  // hole, or nothing.
  static bool reclaimed(void* to, const Move& move) {
    std::size_t holes = 0;
    for (std::size_t offset = move.done; offset < move.done + move.failed; offset += kGranule)
      holes += is_hole(at(to, offset)) ? kGranule : 0;
    return holes == move.failed || (holes == 0 && os::is_mapped(at(to, move.done), move.failed));
  }
  static bool is_hole(void* granule) {
    return os::extend(granule, kGranule) == os::Placed::kHere && M::open_granule(granule);
  }
  static void carry(const void* from, void* to) {
    if (!is_zero(from)) copy_bytes(to, from, kGranule);
  }
  static bool is_zero(const void* granule) {
    return Zeroes::are_words(address(granule), address(granule) + kGranule);
  }
  static void* at(void* block, std::size_t offset) { return pointer(address(block) + offset); }

  // A place that lies in several mappings, and cannot become one again, stays in use and is never handed out.
  static void give_back(void* block, std::size_t bytes, bool fresh) {
    const bool in_pieces = Source::in_pieces(S::global.source, address(block));
    if (!fresh || in_pieces) fresh = os::remap_fresh(block, bytes);
    if (fresh || !in_pieces) {
      Source::release(S::global.source, address(block), fresh);
    } else {
      os::purge(block, bytes);
    }
  }
  // A run of which only the first part is ours for certain: it stays in use, and is never handed out.
  static void abandon(Thread& t, void* block, std::size_t ours) {
    leave(t, address(block), run_bytes(block));
    if (ours != 0) os::purge(block, ours);
  }
  HZ_SLOW static void leave(Thread& t, std::uintptr_t at, std::size_t bytes) {
    Route::clear(S::global.route, at, kPage);
    gave(t, bytes);
    S::global.huge_blocks.fetch_sub(1, std::memory_order_relaxed);
    S::global.huge_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    Line::Observe::count(t.observe, Event::kSpanRetired, 1);
    os::probe::span_retired(at, bytes);
  }
};

}  // namespace hz
