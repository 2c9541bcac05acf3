// SPDX-License-Identifier: Apache-2.0
//
// The arena's accounts: which granules are in use, free, dirty or spare, and how much of that the process
// holds. Plain data under the arena's lock; maps and purges no block, and decides where the limits leave
// room. Called by: arena.hpp. Cost: rows are written one by one, so a long run costs by its length.
//
//   free runs never touch: neighbours are merged at release
//   a free run's first row holds its length and its number of dirty granules, its last row its length
//   every row of a run in use knows the first one
//   a spare run stands behind the run in use that may grow into it; its granules are clean
//
//   held = (reached - clean) granules - tails + tables of `reached`
//   Every change of it happens under the lock; past a limit (memory_limits.hpp) none goes upwards.
#pragma once

#include <atomic>

#include "box/source/contract.hpp"
#include "box/source/memory_limits.hpp"
#include "box/source/run_table.hpp"
#include "box/source/side_tables.hpp"

namespace hz {

struct RunBook {
  using Room = MemoryLimits::Room;

  RunTable runs;
  std::size_t reached = 0;            // granules that are or were in use
  std::atomic<std::size_t> dirty{0};  // free granules with pages; written under the lock
  std::size_t clean = 0;              // free granules without pages
  std::size_t tails = 0;              // pages of runs in use that are never used
  std::size_t leaving = 0;            // granules on their way to the system
  std::size_t per_granule = 0;        // bytes of all tables
  MemoryLimits limits;
  SideTables side_tables;

  static constexpr auto words() {
    return layout::joined(
        layout::Words<2>{layout::Word("source.reached", offsetof(RunBook, reached), sizeof(std::size_t)),
                         {"source.dirty", offsetof(RunBook, dirty), sizeof(std::size_t)}},
        layout::placed(MemoryLimits::words(), layout::kNumber, offsetof(RunBook, limits)));
  }

  // --- what is held

  std::size_t held() const {
    return ((reached - clean) << kGranuleShift) - (tails << kPageShift) + reached * per_granule;
  }
  std::size_t dirty_bytes() const { return dirty.load(std::memory_order_relaxed) << kGranuleShift; }

  // Returns whether the heap may hold `more` bytes.
  Room room_for(std::size_t more, const Demand& demand) {
    const std::size_t now = held();
    if (HZ_LIKELY(now + more <= limits.soft)) return Room::kEnough;
    return limits.room_for({now, dirty_bytes(), leaving << kGranuleShift}, more, demand);
  }
  // The same for the first part of a free run, of which the dirty granules are held already.
  Room room_for_part(std::uint32_t row, std::size_t granules, const Demand& demand) {
    if (HZ_LIKELY(held() + (granules << kGranuleShift) <= limits.soft)) return Room::kEnough;
    const std::size_t part = granules - runs.dirty_of(row, granules);
    return part == 0 ? Room::kEnough : room_for(part << kGranuleShift, demand);
  }
  bool recall_due(std::size_t more) const { return limits.recall_due(held() + more); }

  // --- runs that change hands

  // Notes that granules which were never used are a run now, and that the `gap` granules before it are free.
  void grown(std::uint32_t row, std::size_t granules, std::size_t gap) {
    reached += gap + granules;
    runs.mark_used(row, granules);
    if (gap == 0) return;
    runs.give(row - static_cast<std::uint32_t>(gap), gap, 0);
    clean += gap;
  }
  // Takes a free run, or the first part of it, into use. Returns how many of its granules were dirty.
  std::size_t use(std::uint32_t row, std::size_t granules) {
    const std::size_t were_dirty = runs.use(row, granules);
    dirty.store(dirty.load(std::memory_order_relaxed) - were_dirty, std::memory_order_relaxed);
    clean -= granules - were_dirty;
    return were_dirty;
  }
  // Makes rows that are in use (or were a run's tail) a free run, merged with free neighbours. Returns the
  // first row of that.
  std::uint32_t give(std::uint32_t row, std::size_t length, bool fresh) {
    if (fresh) {
      clean += length;
      limits.fell(held());
    } else {
      dirty.store(dirty.load(std::memory_order_relaxed) + length, std::memory_order_relaxed);
    }
    const std::uint32_t first = runs.give(row, length, fresh ? 0 : length);
    const RunTable::Row& run = runs.rows[first];
    if (fresh) side_tables.purge(first, run.length, run.dirty == 0, row, length);
    return first;
  }
  void release(std::uint32_t row, bool fresh) {
    tails -= tail_of(row);
    drop_spare(behind(row));
    runs.drop(row);
    give(row, runs.rows[row].length, fresh);
  }
  // Cuts a run in use in two, the first one of so many granules.
  void part(std::uint32_t row, std::size_t granules) {
    const std::uint32_t second = row + static_cast<std::uint32_t>(granules);
    const std::size_t length = runs.rows[row].length;
    const std::uint8_t backed = runs.last_of(row).backed;
    runs.mark_used(second, length - granules);
    runs.last_of(second).backed = backed;
    runs.rows[second].dirty = 0;
    runs.mark_used(row, granules);
  }

  // --- a run that is purged: it is in use meanwhile

  struct Purge {
    std::uint32_t row;
    std::size_t length, dirty;
    std::uint8_t backed;
  };
  Purge begin_purge(std::uint32_t row) {
    const std::size_t length = runs.rows[row].length;
    const std::uint8_t backed = runs.backed_of(row, length);
    const std::size_t were_dirty = use(row, length);
    leaving += were_dirty;
    clean += length - were_dirty;  // the others are no more held than before
    return {row, length, were_dirty, backed};
  }
  // Returns the first row of the free run that it is part of.
  std::uint32_t end_purge(const Purge& purge) {
    leaving -= purge.dirty;
    clean -= purge.length - purge.dirty;
    return give(purge.row, purge.length, true);
  }
  // The same if the system refused: the run is as before.
  void undo_purge(const Purge& purge) {
    leaving -= purge.dirty;
    dirty.store(dirty.load(std::memory_order_relaxed) + purge.dirty, std::memory_order_relaxed);
    runs.put_back(purge.row, purge.dirty, purge.backed);
  }

  // --- the tail of a run

  // Returns how many pages of a run's last granule will be used. `used`: bytes of the run; 0: all.
  static unsigned last_pages(std::size_t used) {
    const std::size_t pages = align_up(used, os::page_bytes()) >> kPageShift;
    return static_cast<unsigned>((pages + kPagesPerGranule - 1) % kPagesPerGranule) + 1;
  }
  // Notes that no page behind the first `used` bytes of a run is used, of whose last granule the first
  // `backed` pages may have memory. Returns how many bytes at its end have to be purged for that.
  std::size_t cut_tail(std::uint32_t row, std::size_t used, std::uint8_t backed) {
    if (used == 0) return 0;
    const std::size_t pages = align_up(used, os::page_bytes()) >> kPageShift;
    const std::size_t before = (std::size_t{runs.rows[row].length} - 1) * kPagesPerGranule;
    runs.last_of(row).backed = static_cast<std::uint8_t>(pages - before);
    tails += tail_of(row);
    return backed > pages - before ? tail_of(row) << kPageShift : 0;
  }

  // --- spare runs

  std::uint32_t behind(std::uint32_t row) const { return row + runs.rows[row].length; }
  // Cuts a run after `granules`; what lies behind becomes its spare run, or is free again where it has pages.
  void set_room_aside(std::uint32_t row, std::size_t granules, bool zeroed) {
    const std::size_t room = runs.rows[row].length - granules;
    const auto second = row + static_cast<std::uint32_t>(granules);
    runs.mark_used(row, granules);
    if (!zeroed) return void(give(second, room, false));
    runs.spare(second, room);
    clean += room;
  }
  void use_spare(std::uint32_t row, std::size_t granules) {
    runs.use_spare(row, granules);
    clean -= granules;
  }
  void drop_spare(std::uint32_t row) {
    const std::size_t length = runs.spare_at(row);
    if (HZ_LIKELY(length == 0)) return;
    use_spare(row, length);
    give(row, length, true);
  }
  // Frees all of them, when addresses or memory are short. Returns false if there is none.
  bool drop_spares() {
    if (runs.spare_runs.first == 0) return false;
    while (runs.spare_runs.first != 0) drop_spare(runs.spare_runs.first);
    return true;
  }

 private:
  std::size_t tail_of(std::uint32_t row) { return std::size_t{kPagesPerGranule} - runs.last_of(row).backed; }
};

}  // namespace hz
