// SPDX-License-Identifier: Apache-2.0
//
// One reserved address range per process, dealt out in runs of granules; called by the boundary and for huge blocks.
// One lock; an acquisition is a look-up in a table of free runs by length, dirty ones first, because memory that was
// touched costs no page fault.
//
//   [ tables: route | other boxes | rows ][ granules in use and free ... top ][ never used ... ]
//   free runs never touch: neighbours are merged at release
//   a free run's first row holds its length and its number of dirty granules, its last row its length
//   every row of a run in use knows the first one
//
// Under an address-space limit nothing is reserved ahead: the range grows in place as it is needed.
//
//   held = (top - first - clean) granules + tables of (top - first)      clean: free granules without pages
//   Every change of it happens under the lock, and past a limit (ration.hpp) there is no change upwards.
#pragma once

#include <atomic>

#include "box/source/address_range.hpp"
#include "box/source/contract.hpp"
#include "box/source/ration.hpp"
#include "box/source/run_table.hpp"
#include "box/source/shadows.hpp"
#include "os/lock.hpp"

namespace hz {

struct Arena {
  struct Global {
    AddressRange range;
    RunTable runs;
    std::atomic<std::size_t> dirty{0};  // granules; written under the lock
    std::size_t clean = 0;              // granules
    std::size_t leaving = 0;            // granules on their way to the system
    std::size_t per_granule = 0;        // bytes of all tables
    Ration ration;
    Shadows shadows;
    os::Lock lock;
  };

  static constexpr std::size_t kMinBytes = 4 * kMiB;
  static constexpr std::size_t kDefaultBytes = 64 * kGiB;
  static constexpr std::size_t kMaxBytes = 16 * AddressRange::kTiB;

  static bool open(Global& g, std::size_t table_bytes_per_granule) {
    const std::size_t limit = os::address_space_limit();
    g.range.grows = limit != SIZE_MAX;
    g.per_granule = table_bytes_per_granule + sizeof(RunTable::Row);
    std::size_t bytes = kDefaultBytes;
    while (bytes < 4 * os::memory_bytes() && bytes < kMaxBytes) bytes *= 2;
    if (g.range.grows && bytes > limit) bytes = align_up(limit, kGranule);
    for (; bytes >= kMinBytes; bytes = align_up(bytes / 2, kGranule)) {
      const std::size_t count = bytes >> kGranuleShift;
      const std::size_t table_bytes = align_up(count * g.per_granule, kGranule);
      if (!g.range.open(bytes, table_bytes)) continue;
      const std::uintptr_t rows = g.range.base + count * table_bytes_per_granule;
      g.runs.open(pointer(rows), table_bytes >> kGranuleShift, count);
      return g.shadows.add(rows, sizeof(RunTable::Row), true), true;
    }
    return false;
  }

  static std::uintptr_t base(const Global& g) { return g.range.base; }
  static std::size_t bytes(const Global& g) { return g.range.bytes; }
  static std::uintptr_t tables(const Global& g) { return g.range.base; }
  static void shadow(Global& g, std::uintptr_t table, std::size_t stride, bool counts) {
    g.shadows.add(table, stride);
    if (!counts) g.per_granule -= stride;
  }
  static void limit(Global& g, MemoryLimit soft, MemoryLimit hard) {
    const os::Guarded hold(g.lock);
    g.ration.set(soft, hard);
  }
  static Run acquire(Global& g, std::size_t granules, std::size_t alignment, Demand demand = {}) {
    const os::Guarded hold(g.lock);
    RunTable& t = g.runs;
    const std::size_t bias = g.range.base >> kGranuleShift;
    if (granules > t.end || alignment > t.end) return {};
    for (;;) {
      std::uint32_t row = t.find(granules, alignment, bias);
      const Room room = row != 0 ? room_for_part(g, row, granules, demand)
                                 : room_for(g, top_bytes(g, granules, t.first_fit(alignment, bias)), demand);
      if (room == Room::kEnough) {
        const bool zeroed = row == 0 || use(g, row, granules) == 0;
        if (row == 0) row = grow(g, granules, t.first_fit(alignment, bias));
        if (row != 0) return {at(g, row), zeroed};
      } else if (row != 0) {
        t.leave(row);
      }
      if (!made(g, room, demand)) return {};
    }
  }
  static void release(Global& g, std::uintptr_t start, bool fresh) {
    const os::Guarded hold(g.lock);
    give(g, row_of(g, start), g.runs.rows[row_of(g, start)].length, fresh);
  }
  static bool resize(Global& g, std::uintptr_t start, std::size_t granules) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start);
    const std::size_t length = g.runs.rows[row].length;
    if (granules <= length) return granules == length || shrink(g, row, granules);
    if (g.runs.rows[row].seam) return false;  // or its pages would lie in two mappings
    Demand demand = {.insists = true};
    for (;;) {
      const Room room = extend(g, row + static_cast<std::uint32_t>(length), granules - length, demand);
      if (room == Room::kEnough) break;
      if (!made(g, room, demand)) return false;
    }
    g.runs.mark_used(row, granules);
    return true;
  }
  static void note_seam(Global& g, std::uintptr_t inside) {
    const os::Guarded hold(g.lock);
    g.runs.rows[row_of(g, inside)].seam = true;
  }
  static bool in_pieces(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    return g.runs.rows[row_of(g, start)].seam;
  }
  static std::size_t piece(Global& g, std::uintptr_t start, std::size_t offset) {
    const os::Guarded hold(g.lock);
    return g.runs.piece(row_of(g, start), offset >> kGranuleShift) << kGranuleShift;
  }
  static std::size_t granules(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    return g.runs.rows[row_of(g, start)].length;
  }
  static std::uintptr_t start(Global& g, std::uintptr_t address) {
    const os::Guarded hold(g.lock);
    const std::uint32_t head = g.runs.head_of(row_of(g, address));
    return head == 0 ? 0 : at(g, head);
  }
  static std::size_t reached_bytes(Global& g) {
    const os::Guarded hold(g.lock);
    return std::size_t{g.runs.top - g.runs.first} << kGranuleShift;
  }
  static std::size_t dirty_bytes(const Global& g) { return g.dirty.load(std::memory_order_relaxed) << kGranuleShift; }
  static std::size_t held_bytes(Global& g) {
    const os::Guarded hold(g.lock);
    return held(g);
  }
  static bool has_room(Global& g) {
    const os::Guarded hold(g.lock);
    return held(g) <= g.ration.trigger;
  }
  static std::size_t thread_share(const Global& g) { return g.ration.thread_share.load(std::memory_order_relaxed); }
  static std::size_t purge(Global& g, std::size_t keep_bytes) {
    const os::Guarded hold(g.lock);
    std::size_t purged = 0;
    for (std::size_t one = 1; one != 0 && dirty_bytes(g) > keep_bytes; purged += one) one = purge_one(g);
    return purged;
  }

  static void free_locks(Global& g) {
    g.lock.reset();
    g.leaving = 0;
  }

 private:
  static std::uintptr_t at(const Global& g, std::uint32_t row) {
    return g.range.base + (std::uintptr_t{row} << kGranuleShift);
  }
  static std::uint32_t row_of(const Global& g, std::uintptr_t address) {
    return static_cast<std::uint32_t>((address - g.range.base) >> kGranuleShift);
  }

  static std::size_t held(const Global& g) {
    const std::size_t reached = g.runs.top - g.runs.first;
    return ((reached - g.clean) << kGranuleShift) + reached * g.per_granule;
  }

  using Room = Ration::Room;
  static constexpr std::size_t kUnpayable = SIZE_MAX;  // the system takes nothing back

  // Whether the heap may have `more` bytes than it holds. What is free goes back to the system first.
  static Room room_for(Global& g, std::size_t more, const Demand& demand) {
    Ration& r = g.ration;
    const std::size_t next = held(g) + more;
    if (HZ_LIKELY(next <= r.trigger)) return Room::kEnough;
    if (!r.looked) r.look();
    const std::size_t credit = demand.instead_of << kGranuleShift;
    const std::size_t hard = r.hard > Ration::kNone - credit ? Ration::kNone : r.hard + credit;
    if (next - dirty_bytes(g) - (g.leaving << kGranuleShift) > hard) return Room::kNone;
    // Past the soft limit growth is paid with free pages, byte for byte; past the hard one with all that it takes.
    const bool unpaid = next > hard ? demand.paid != kUnpayable : next > r.soft && demand.paid < more;
    if (unpaid && dirty_bytes(g) != 0) return Room::kAfterPurge;
    if (next > hard) return g.leaving != 0 ? Room::kWhenOthersPurged : Room::kNone;
    if (demand.insists || !r.recall_due(next)) return Room::kEnough;
    r.recalled(held(g));
    return Room::kNone;
  }
  // What room there is for has to be looked for again afterwards: the lock was open. False: there is none. Enough, and
  // still no place for it: a run may be on its way to the system, and free again soon.
  static bool made(Global& g, Room room, Demand& demand) {
    if (room == Room::kNone || (room == Room::kEnough && g.leaving == 0)) return false;
    if (room == Room::kAfterPurge) {
      const std::size_t purged = purge_one(g);
      demand.paid = purged == 0 ? kUnpayable : demand.paid + purged;
      return true;
    }
    g.lock.unlock();
    os::give_way();
    g.lock.lock();
    return true;
  }
  // The same for the first part of a free run: what is dirty there is held already.
  static Room room_for_part(Global& g, std::uint32_t row, std::size_t granules, const Demand& demand) {
    if (HZ_LIKELY(held(g) + (granules << kGranuleShift) <= g.ration.trigger)) return Room::kEnough;
    const std::size_t clean = granules - g.runs.dirty_of(row, granules);
    return clean == 0 ? Room::kEnough : room_for(g, clean << kGranuleShift, demand);
  }

  // What a run from the top would add to what is held.
  static std::size_t top_bytes(const Global& g, std::size_t granules, std::size_t row) {
    return (granules << kGranuleShift) + (row + granules - g.runs.top) * g.per_granule;
  }

  // A run in use from the top; 0 if the range or the system has no more.
  static std::uint32_t grow(Global& g, std::size_t granules, std::size_t row) {
    RunTable& t = g.runs;
    const std::size_t end = row + granules;
    if (end > t.end || !g.range.commit_to(g.range.base + (end << kGranuleShift))) return 0;
    const std::uint32_t gap = t.top;
    t.top = static_cast<std::uint32_t>(end);
    t.mark_used(static_cast<std::uint32_t>(row), granules);
    if (row != gap) {
      t.give(gap, row - gap, 0);
      g.clean += row - gap;
    }
    return static_cast<std::uint32_t>(row);
  }

  // The rows behind a run in use, for the run; kNone where caches have to be returned first, too: then it moves.
  static Room extend(Global& g, std::uint32_t next, std::size_t more, const Demand& demand) {
    const RunTable& t = g.runs;
    const bool at_top = next == t.top;
    if (!at_top && (t.rows[next].state != RunTable::State::kFree || t.rows[next].length < more)) return Room::kNone;
    // All of it, as if it were clean: who is refused for that moves, at no great cost.
    const std::size_t bytes = at_top ? top_bytes(g, more, next) : more << kGranuleShift;
    if (g.ration.recall_due(held(g) + bytes)) return Room::kNone;
    const Room room = at_top ? room_for(g, bytes, demand) : room_for_part(g, next, more, demand);
    if (room != Room::kEnough) return room;
    if (at_top) return grow(g, more, next) != 0 ? Room::kEnough : Room::kNone;
    use(g, next, more);
    return Room::kEnough;
  }

  // Takes a free run, or the first part of it, into use; how many of its granules were dirty.
  static std::size_t use(Global& g, std::uint32_t row, std::size_t granules) {
    const std::size_t dirty = g.runs.use(row, granules);
    g.dirty.store(g.dirty.load(std::memory_order_relaxed) - dirty, std::memory_order_relaxed);
    g.clean -= granules - dirty;
    return dirty;
  }

  // Gives back the pages of one free run, which is in use meanwhile: the lock is open while the system works. How many
  // bytes; 0 if none is dirty, or the system refuses.
  static std::size_t purge_one(Global& g) {
    const std::uint32_t row = g.runs.oldest_dirty();
    if (row == 0) return 0;
    const std::size_t length = g.runs.rows[row].length;
    const std::size_t dirty = use(g, row, length);
    g.leaving += dirty;
    g.clean += length - dirty;  // the others are no more held than before
    g.lock.unlock();
    const bool done = os::purge(pointer(at(g, row)), length << kGranuleShift);
    g.lock.lock();
    g.leaving -= dirty;
    g.clean -= length - dirty;
    give(g, row, length, done);
    return done ? dirty << kGranuleShift : 0;
  }

  // What is left of a moved run has to become the arena's own mapping again.
  static bool shrink(Global& g, std::uint32_t row, std::size_t granules) {
    const std::size_t left = g.runs.rows[row].length - granules;
    const auto tail = row + static_cast<std::uint32_t>(granules);
    const bool moved = g.runs.rows[row].seam;
    if (moved && !os::remap_fresh(pointer(at(g, tail)), left << kGranuleShift)) return false;
    g.runs.mark_used(row, granules);
    return give(g, tail, left, moved), true;
  }

  // Rows that are in use (or were a run's tail) become a free run, merged with free neighbours.
  static void give(Global& g, std::uint32_t row, std::size_t length, bool fresh) {
    if (fresh) {
      g.clean += length;
      g.ration.fell(held(g));
    } else {
      g.dirty.store(g.dirty.load(std::memory_order_relaxed) + length, std::memory_order_relaxed);
    }
    const std::uint32_t first = g.runs.give(row, length, fresh ? 0 : length);
    const RunTable::Row& run = g.runs.rows[first];
    if (fresh) g.shadows.purge(first, run.length, run.dirty == 0, row, length);
  }
};

}  // namespace hz
