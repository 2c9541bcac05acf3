// SPDX-License-Identifier: Apache-2.0
//
// Protection of pages for a guard with seals: unallocated memory is inaccessible, and huge blocks stand
// between such pages (guard pages). The processor stops an access far beyond a block, one byte beyond a huge
// block at either end, and any access to a huge block after its free. Called by huge.hpp and where spans come
// and go; a span costs a system call, and one when it goes, a huge block two, and one.
//
//   free run    no access, no pages
//   huge block  [ granule: no access ][ the block | fence bytes ][ no access, at least a granule ]
//               a run of its own       a run that begins with the block
//               none where the block is aligned to more than a granule
//
// The addresses of a huge block that was freed wait, and one of those that wait leaves for it, at random;
// when many do, one of them may serve the next block of its length. A block of no bytes is a run without
// access, as long as there are few. Where the system forbids nothing more (it has too many mappings), blocks
// do without.
#pragma once

#include <algorithm>

#include "base/bytes.hpp"
#include "base/plain_word.hpp"
#include "heap/state/state.hpp"

namespace hz {

template <class Line>
struct Fences {
  using S = State<Line>;
  using Source = typename Line::Source;

  // So many runs wait, none of them longer than that.
  static constexpr unsigned kWaiting = 32;
  static constexpr std::size_t kMostWaiting = 4 * kMiB;
  static constexpr unsigned kMany = kWaiting / 2;
  static constexpr unsigned kMostEmpty = 256;

  // When the heap opens.
  static void open() {
    os::forbid_uncommitted();
    scatters().set(os::address_space_limit() == SIZE_MAX);
  }

  // --- spans

  // Behind a gap of a random length, in proportion to the heap, which later spans fill: as long as the heap
  // is not so large that the system has too many mappings of it, and where addresses are not limited.
  static constexpr std::size_t kMostGap = 64, kGapShare = 2;
  static constexpr std::size_t kMostScattered = 64 * kMiB;

  static Run acquire_span(std::size_t granules, Demand demand) {
    const std::size_t reached = Source::reached_bytes(S::global.source);
    const std::size_t most_gap = std::min(kMostGap, 1 + (reached >> kGranuleShift) / kGapShare);
    const std::size_t gap = scatters().get() ? dice() % most_gap : 0;
    // Near a limit the span itself is refused, and its caller reclaims.
    if (gap != 0 && reached < kMostScattered &&
        Source::has_room(S::global.source, (granules + gap) << kGranuleShift)) {
      const std::size_t used = demand.used;
      demand.used = used + (gap << kGranuleShift);
      const Run wide = Source::acquire(S::global.source, granules + gap, 1, demand);
      demand.used = used;
      if (wide.at != 0) {
        Source::part(S::global.source, wide.at, gap);
        Source::release(S::global.source, wide.at, wide.zeroed);
        return usable({wide.at + (gap << kGranuleShift), wide.zeroed}, granules);
      }
    }
    return usable(Source::acquire(S::global.source, granules, 1, demand), granules);
  }
  static Run usable(const Run& run, std::size_t granules) {
    if (run.at == 0 || os::commit(pointer(run.at), granules << kGranuleShift)) return run;
    Source::release(S::global.source, run.at, run.zeroed);
    return {};
  }
  static void release_span(std::uintptr_t at) {
    const std::size_t granules = Source::granules(S::global.source, at);
    forbid(at, granules, granules << kGranuleShift);
    Source::release(S::global.source, at, true);
  }

  // --- huge blocks

  // A run for a block of `size` bytes, that reads as zero. Granules and alignment are those of the block;
  // none of the fences count. A separate frame: test/stack bounds it.
  HZ_SLOW static Run acquire(std::size_t granules, std::size_t alignment, std::size_t size,
                             const Demand& demand) {
    const bool below = alignment == 1;
    const std::size_t room = room_in(demand, granules);
    granules += room;
    std::uintptr_t at = below ? waiting(granules) : 0;
    if (at == 0) {
      const std::size_t all = granules + (below ? 2 : 1);
      Run run = Source::acquire(S::global.source, all, alignment,
                                {.force = demand.force, .instead_of = demand.instead_of});
      if (run.at == 0) return {};
      at = run.at + (below ? kGranule : 0);
      if (below) Source::part(S::global.source, run.at, 1);
      forbid(run.at, all, 0);
      Source::without_pages(S::global.source, fences(below));
    }
    Source::without_pages(S::global.source, static_cast<std::ptrdiff_t>(room));
    const std::size_t pages = align_up(size, os::page_bytes());
    if (pages != 0 && !os::commit(pointer(at), pages) &&
        !os::commit(pointer(at), (granules + 1) << kGranuleShift))
      return forbid(at, granules, 0), give_back(at, below, room), Run{};
    if (size == 0) few().fetch_add(1, std::memory_order_relaxed);
    Line::Guard::seal_run(pointer(at), size, below);
    return {at, true};
  }

  // The block's pages go, and its addresses wait.
  static void release(std::uintptr_t at) {
    const std::size_t granules = block_granules(at), room = room_of(at);
    if (Line::Guard::run_bytes(pointer(at)) == 0) few().fetch_sub(1, std::memory_order_relaxed);
    Source::drop(S::global.source, at);
    const bool forbidden =
        forbid(at, granules, align_up(Line::Guard::run_bytes(pointer(at)), os::page_bytes()));
    const bool below = Line::Guard::has_fence_below(pointer(at));
    // A run that the program can still write to is cleared again before it serves another block.
    if (!forbidden || !below || granules << kGranuleShift > kMostWaiting) return give_back(at, below, room);
    Source::without_pages(S::global.source, static_cast<std::ptrdiff_t>(granules - room));
    // Relaxed, as below: the source's lock orders what is done with a run.
    const std::uintptr_t leaving =
        places()[dice() % kWaiting].exchange(at | granules, std::memory_order_relaxed);
    if (leaving != 0) return give_back_waiting(leaving);
    waiting_count().fetch_add(1, std::memory_order_relaxed);
  }
  // Makes a block larger where it is, up to the end of its room. False: there is no room, or no memory.
  static bool grow(std::uintptr_t at, std::size_t size) {
    const std::size_t before = Line::Guard::run_bytes(pointer(at)), page = os::page_bytes();
    const std::size_t had = align_up(before, page), pages = align_up(size, page);
    const std::size_t more = granules_for(size) - granules_for(before);
    if (before == 0 || size > block_granules(at) << kGranuleShift) return false;
    if (more != 0 && !Source::has_room(S::global.source, more << kGranuleShift)) return false;
    if (pages != had && !os::commit(pointer(at + had), pages - had)) return false;
    Source::without_pages(S::global.source, -static_cast<std::ptrdiff_t>(more));
    return Line::Guard::grow_run(pointer(at), size), true;
  }
  // Makes the first `bytes` of a block usable, for its pages are about to be moved, or written to, by whole
  // granules. False: the system refuses.
  static bool expose(const void* block, std::size_t bytes) {
    const std::size_t pages = align_up(Line::Guard::run_bytes(block), os::page_bytes());
    return bytes <= pages || os::commit(pointer(address(block) + pages), bytes - pages);
  }
  // Releases a block whose contents are at `to` now, clears the fence that came with them, and puts up the
  // one that they may have been written over.
  static void bequeath(const void* block, void* to) {
    const std::size_t bytes = Line::Guard::run_bytes(block);
    clear_bytes(pointer(address(to) + bytes), align_up(bytes, os::page_bytes()) - bytes);
    Line::Guard::seal_run(to, Line::Guard::run_bytes(to), Line::Guard::has_fence_below(to));
    release(address(block));
  }
  // Notes that a block has become smaller where it is; the pages behind it go.
  static void shrink(std::uintptr_t at, std::size_t size) {
    const std::size_t before = Line::Guard::run_bytes(pointer(at)), page = os::page_bytes();
    const std::size_t had = align_up(before, page), pages = align_up(size, page);
    Line::Guard::seal_run_again(pointer(at), size);
    if (pages != had) forbid_bytes(at + pages, had - pages, had - pages);
    const std::size_t less = granules_for(before) - granules_for(size);
    Source::without_pages(S::global.source, static_cast<std::ptrdiff_t>(less));
  }
  static bool addresses_limited() { return !scatters().get(); }
  // Returns true if one more block of no bytes may have a run.
  static bool may_be_empty() { return few().load(std::memory_order_relaxed) < kMostEmpty; }
  // All that wait, when memory cannot be had.
  static void release_all() {
    for (std::atomic<std::uintptr_t>& place : places())
      if (const std::uintptr_t one = place.exchange(0, std::memory_order_relaxed))
        taken(), give_back_waiting(one);
  }

  // Of a block's run, without its fence.
  static std::size_t block_granules(std::uintptr_t at) { return Source::granules(S::global.source, at) - 1; }

 private:
  static std::size_t granules_for(std::size_t size) {
    return align_up(size == 0 ? 1 : size, kGranule) >> kGranuleShift;
  }
  // Granules of a block's run that it has not grown into: without access, and not counted as held.
  static std::size_t room_of(std::uintptr_t at) {
    return block_granules(at) - granules_for(Line::Guard::run_bytes(pointer(at)));
  }
  // As many as are wanted, if the limits would allow them as memory.
  static std::size_t room_in(const Demand& demand, std::size_t granules) {
    const std::size_t all = granules + demand.room + 2;
    return Source::has_room(S::global.source, all << kGranuleShift) ? demand.room : 0;
  }

  // Of each its place and, in the bits that are zero there, its length.
  using Places = std::atomic<std::uintptr_t>[kWaiting];
  static constexpr std::uintptr_t kLength = kGranule - 1;
  static_assert(kMostWaiting >> kGranuleShift <= kLength);

  // One of those that wait, if it is as long.
  static std::uintptr_t waiting(std::size_t granules) {
    if (waiting_count().load(std::memory_order_relaxed) < kMany ||
        !Source::has_room(S::global.source, granules << kGranuleShift))
      return 0;
    unsigned i = dice();
    for (unsigned looks = 0; looks < kWaiting; ++looks, ++i) {
      std::atomic<std::uintptr_t>& place = places()[i % kWaiting];
      std::uintptr_t one = place.load(std::memory_order_relaxed);
      if (one != 0 && (one & kLength) == granules &&
          place.compare_exchange_strong(one, 0, std::memory_order_relaxed)) {
        one &= ~kLength;
        taken();
        Source::claim(S::global.source, one, false);  // the freeing thread had claimed it
        Source::without_pages(S::global.source, -static_cast<std::ptrdiff_t>(granules));
        return one;
      }
    }
    return 0;
  }
  static constexpr std::ptrdiff_t fences(bool below) { return below ? 2 : 1; }
  static void give_back_waiting(std::uintptr_t one) { give_back(one & ~kLength, true, one & kLength); }
  // Of its granules so many did not count as held.
  static void give_back(std::uintptr_t at, bool below, std::size_t uncounted) {
    Source::without_pages(S::global.source, -fences(below) - static_cast<std::ptrdiff_t>(uncounted));
    if (below) Source::release(S::global.source, at - kGranule, true);
    Source::release(S::global.source, at, true);
  }

  // Purges the run and makes it inaccessible. Where the system has too many mappings, at least the first
  // `used` bytes, those that were written, are cleared. Returns true if the run is inaccessible.
  static bool forbid(std::uintptr_t at, std::size_t granules, std::size_t used) {
    return forbid_bytes(at, granules << kGranuleShift, used);
  }
  static bool forbid_bytes(std::uintptr_t at, std::size_t bytes, std::size_t used) {
    if (os::forbid(pointer(at), bytes)) return true;
    if (!os::purge(pointer(at), bytes)) clear_bytes(pointer(at), used);
    return false;
  }

  static void taken() { waiting_count().fetch_sub(1, std::memory_order_relaxed); }
  static Places& places() {
    static constinit Places all{};
    return all;
  }
  static std::atomic<unsigned>& waiting_count() {
    static constinit std::atomic<unsigned> count{0};
    return count;
  }
  static OnceWord<bool>& scatters() {
    static constinit OnceWord<bool> yes;
    return yes;
  }
  static std::atomic<unsigned>& few() {
    static constinit std::atomic<unsigned> count{0};
    return count;
  }
  static unsigned dice() { return static_cast<unsigned>(os::random_word()); }
};

}  // namespace hz
