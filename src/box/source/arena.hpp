// SPDX-License-Identifier: Apache-2.0
//
// One range of addresses per process, which grows in place and is dealt out in runs of granules. It joins the
// accounts of runs and limits (run_book.hpp) with the addresses (address_plan.hpp) and what of them is not
// mapped (holes.hpp).
// Called by: the boundary, and huge blocks. Cost: one lock, and a look-up in a table of free runs by length,
// dirty ones first, because memory that was touched costs no page fault.
#pragma once

#include <algorithm>
#include <atomic>

#include "box/source/address_plan.hpp"
#include "box/source/contract.hpp"
#include "box/source/holes.hpp"
#include "box/source/run_book.hpp"
#include "os/lock.hpp"

namespace hz {

struct Arena {
  struct Global {
    AddressPlan plan;
    RunBook book;
    Holes holes;
    void (*told)(std::size_t) = nullptr;
    os::LockOf<os::Rank::kSource> lock;
  };

  static constexpr auto words() {
    return layout::joined(layout::placed(RunBook::words(), layout::kNumber, offsetof(Global, book)),
                          layout::placed(AddressPlan::words(), layout::kNumber, offsetof(Global, plan)));
  }

  static constexpr unsigned kMostTables = AddressPlan::kMostTables - 1;  // its own rows are one, too
  static_assert(AddressPlan::kMostTables <= SideTables::kMost);
  static constexpr std::size_t kPurgedAtOnce = 8 * kMiB >> kGranuleShift;  // granules, by one system call

  // A separate frame: test/stack bounds it.
  HZ_COLD static bool open(Global& g, const TableShape* shapes, unsigned count, bool grows = true) {
    TableShape all[AddressPlan::kMostTables];
    for (unsigned i = 0; i < count; ++i) all[i] = shapes[i];
    all[count] = {.row_bytes = sizeof(RunTable::Row), .lasts = false, .counts = true};
    if (!g.plan.open(all, count + 1, grows)) return false;
    for (unsigned i = 0; i <= count; ++i) {
      if (!all[i].lasts) g.book.side_tables.add(g.plan.table(i), all[i].row_bytes, i == count);
      if (all[i].counts) g.book.per_granule += all[i].row_bytes;
    }
    g.book.runs.open(pointer(g.plan.table(count)));
    return true;
  }

  static std::uintptr_t base(const Global& g) { return g.plan.base(); }
  static std::size_t bytes(const Global& g) { return g.plan.rows() << kGranuleShift; }
  static std::uintptr_t table(const Global& g, unsigned i) { return g.plan.table(i); }
  static void tell(Global& g, void (*told)(std::size_t)) {
    const os::Guarded hold(g.lock);
    g.told = told;
    told(g.plan.covered());
  }
  static void close(Global& g) { g.plan.close(); }  // tests alone
  static void limit(Global& g, MemoryLimit soft, MemoryLimit hard) {
    const os::Guarded hold(g.lock);
    g.book.limits.set(soft, hard);
  }
  static Limits limits(Global& g) {
    const os::Guarded hold(g.lock);
    return g.book.limits.now();
  }
  static Run acquire(Global& g, std::size_t granules, std::size_t alignment, Demand demand = {}) {
    Run run = acquire_whole(g, granules, alignment, demand);
    if (HZ_UNLIKELY(run.purged != 0) && g.plan.reserved()) purge_tail(run, granules);
    return run;
  }
  static void release(Global& g, std::uintptr_t start, bool fresh) {
    const os::Guarded hold(g.lock);
    g.book.release(row_of(g, start), fresh);
  }
  static void part(Global& g, std::uintptr_t start, std::size_t granules) {
    const os::Guarded hold(g.lock);
    g.book.part(row_of(g, start), granules);
  }
  static void without_pages(Global& g, std::ptrdiff_t granules) {
    const os::Guarded hold(g.lock);
    g.book.clean += static_cast<std::size_t>(granules);
  }
  static bool claim(Global& g, std::uintptr_t start, bool claimed) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start);
    if (!g.plan.in_use(row) || g.book.runs.head_of(row) != row || g.book.runs.rows[row].claimed == claimed)
      return false;
    g.book.runs.rows[row].claimed = claimed;
    return true;
  }
  static void hold(Global& g, std::uintptr_t start, unsigned holder, std::uintptr_t beside) {
    const os::Guarded hold(g.lock);
    g.book.runs.hold(row_of(g, start), holder, beside == 0 ? 0 : row_of(g, beside));
  }
  static void join(Global& g, std::uintptr_t start, std::uintptr_t beside) {
    const os::Guarded hold(g.lock);
    const unsigned holder = g.book.runs.holder(row_of(g, beside));
    if (holder != 0) g.book.runs.hold(row_of(g, start), holder, row_of(g, beside));
  }
  static void drop(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    g.book.runs.drop(row_of(g, start));
  }
  static unsigned holder(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    return g.book.runs.holder(row_of(g, start));
  }
  static HeldRun drop_next(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start), next = g.book.runs.next_held(row);
    if (next == row) return {0, 0};
    const HeldRun dropped = {g.plan.at(next), g.book.runs.holder(next)};
    g.book.runs.drop(next);
    return dropped;
  }
  static bool resize(Global& g, std::uintptr_t start, std::size_t granules,
                     RunResize how = RunResize::kUsual) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start);
    const std::size_t length = g.book.runs.rows[row].length;
    if (granules == length) return true;
    if (granules > length && !os::promises((granules - length) << kGranuleShift)) return false;
    const bool into_spare =
        g.book.runs.spare_at(g.book.behind(row)) >= granules - length && granules > length;
    if (!into_spare) g.book.drop_spare(g.book.behind(row));
    if (granules < length) return shrink(g, row, granules, how == RunResize::kPurged);
    // Its pages would lie in two mappings, but where those of its spare run do so already.
    if (g.book.runs.rows[row].boundary && !into_spare) return false;
    if (how == RunResize::kReuses && granules > length && g.book.runs.has_dirty(granules) &&
        is_fresh(g, row + static_cast<std::uint32_t>(length), granules - length))
      return false;
    Demand demand = {.force = true};
    for (;;) {
      const Room room = extend(g, row + static_cast<std::uint32_t>(length), granules - length, demand);
      if (room == Room::kEnough) break;
      if (!made(g, room, demand)) return false;
    }
    g.book.runs.join(row, granules);
    return true;
  }
  static void note_mapping_boundary(Global& g, std::uintptr_t inside) {
    const os::Guarded hold(g.lock);
    g.book.runs.rows[row_of(g, inside)].boundary = true;
  }
  static bool in_pieces(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    return g.book.runs.rows[row_of(g, start)].boundary;
  }
  static std::size_t piece(Global& g, std::uintptr_t start, std::size_t offset) {
    const os::Guarded hold(g.lock);
    return g.book.runs.piece(row_of(g, start), offset >> kGranuleShift) << kGranuleShift;
  }
  static std::size_t granules(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    return g.book.runs.rows[row_of(g, start)].length;
  }
  static std::uintptr_t start(Global& g, std::uintptr_t address) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, address);
    const std::uint32_t head = g.plan.in_use(row) ? g.book.runs.head_of(row) : 0;
    return head == 0 ? 0 : g.plan.at(head);
  }
  static std::size_t reached_bytes(Global& g) {
    const os::Guarded hold(g.lock);
    return g.book.reached << kGranuleShift;
  }
  static Rows rows_from(Global& g, std::size_t row, std::size_t most) {
    const os::Guarded hold(g.lock);
    Rows rows;
    for (unsigned i = 0; i < g.plan.stretches(); ++i) {
      const AddressPlan::Stretch& s = g.plan.stretch(i);
      if (s.top <= row || (rows.begin != rows.end && s.begin >= rows.begin)) continue;
      rows.begin = std::max<std::size_t>(s.begin, row);
      rows.end = std::min<std::size_t>(s.top, rows.begin + most);
    }
    return rows;
  }
  static bool answers(Global& g, unsigned milliseconds) {
    return os::Guarded(&g.lock, os::Rank::kSource, milliseconds).has_lock();
  }
  static std::size_t dirty_bytes(const Global& g) { return g.book.dirty_bytes(); }
  static std::size_t held_bytes(Global& g) {
    const os::Guarded hold(g.lock);
    return g.book.held();
  }
  static bool has_room(Global& g, std::size_t more) {
    const os::Guarded hold(g.lock);
    return g.book.held() + more <= g.book.limits.soft;
  }
  static bool owes_recall(const Global& g) {
    return g.book.limits.owes_recall.load(std::memory_order_relaxed);
  }
  static bool took_recall(Global& g) { return g.book.limits.took_recall(); }
  static std::size_t thread_share(const Global& g) {
    return g.book.limits.thread_share.load(std::memory_order_relaxed);
  }
  static std::size_t purge(Global& g, std::size_t keep_bytes, std::size_t most_bytes) {
    const os::Guarded hold(g.lock);
    std::size_t purged = 0;
    unsigned refused = 0;
    for (std::size_t one = 1; one != 0 && purged < most_bytes && g.book.dirty_bytes() > keep_bytes;
         purged += one)
      one = purge_one(g, std::min(((most_bytes - purged - 1) >> kGranuleShift) + 1, kPurgedAtOnce), refused);
    return purged;
  }

  static void free_locks(Global& g) {
    g.lock.reset();
    if (g.book.leaving != 0) g.book.leaving = 0;
  }
  static void make_whole(Global& g) {
    g.book.leaving = 0;
    if (!g.lock.reset()) return;
    g.plan.make_whole();
    g.book.dirty.store(0, std::memory_order_relaxed);
    g.book.runs.lose_lists();
    for_each_row(g, [&](std::size_t row) { g.book.runs.lose(row); });
  }
  // Of all granules that were ever used.
  template <class Visit>
  static void for_each_row(const Global& g, Visit visit) {
    for (unsigned i = 0; i < g.plan.stretches(); ++i)
      for (std::size_t row = g.plan.stretch(i).begin; row < g.plan.stretch(i).top; ++row) visit(row);
  }

 private:
  static std::uint32_t row_of(const Global& g, std::uintptr_t address) {
    return static_cast<std::uint32_t>((address - g.plan.base()) >> kGranuleShift);
  }

  static Run acquire_whole(Global& g, std::size_t granules, std::size_t alignment, Demand& demand) {
    const os::Guarded hold(g.lock);
    const std::size_t bias = g.plan.base() >> kGranuleShift, least = granules;
    if (granules >= g.plan.rows() || alignment >= g.plan.rows()) return {};
    if (g.book.held() + ((granules + demand.room) << kGranuleShift) <= g.book.limits.soft)
      granules += demand.room;
    for (;;) {
      const unsigned pages = granules == least ? RunBook::last_pages(demand.used) : RunTable::kAllPages;
      std::uint32_t row = g.book.runs.find(granules, alignment, bias, pages);
      // The system has promised what is free here.
      if (row == 0 && !os::promises(granules << kGranuleShift)) {
        if (granules == least) return {};
        granules = least;
        continue;
      }
      const AddressPlan::Spot spot = row != 0 ? AddressPlan::Spot() : g.plan.spot(granules, alignment);
      const Room room = row != 0 ? g.book.room_for_part(row, granules, demand)
                                 : g.book.room_for(fresh_bytes(g, spot, granules), demand);
      if (room == Room::kEnough && (row == 0 || is_mapped(g, row, granules, pages))) {
        const std::uint8_t backed = row == 0 ? 0 : g.book.runs.backed_of(row, granules);
        const bool zeroed = row == 0 || g.book.use(row, granules) == 0;
        if (row == 0) row = grow(g, granules, alignment);
        if (row != 0 && granules != least) g.book.set_room_aside(row, least, zeroed);
        if (row != 0) {
          Run run = {g.plan.at(row), zeroed, g.book.cut_tail(row, demand.used, backed)};
          // Under the lock, where another thread may unmap the tail, and the system map something else there.
          if (HZ_UNLIKELY(run.purged != 0) && !g.plan.reserved()) purge_tail(run, least);
          return run;
        }
      } else if (row != 0 && room == Room::kEnough && has_lost_holes(g, row, granules, pages)) {
        continue;
      } else if (row != 0) {
        g.book.runs.leave(row);
      }
      if (granules != least) {
        granules = least;
      } else if (!made(g, room, demand) && !g.book.drop_spares() &&
                 !(room == Room::kEnough && cut_holes(g, least))) {
        return {};
      }
    }
  }

  static void purge_tail(Run& run, std::size_t granules) {
    const std::uintptr_t end = run.at + (granules << kGranuleShift);
    if (!os::purge(pointer(end - run.purged), run.purged)) run.purged = 0;
  }
  // Makes the system's limits spare some granules. The rows of free runs, which know their holes, stay then.
  HZ_COLD static bool cut_holes(Global& g, std::size_t granules) {
    g.book.side_tables.keep_rows();
    return g.holes.cut(g.plan, g.book.runs, granules, g.book.tails, g.book.clean);
  }
  // Fills the holes of the first part of a free run. Returns false if the system refuses.
  static bool is_mapped(Global& g, std::uint32_t row, std::size_t granules, unsigned pages) {
    return HZ_LIKELY(!g.holes.exist()) ||
           g.holes.fill(g.plan, g.book.runs, row, granules, pages) == AddressPlan::Growth::kDone;
  }

  // Returns true if others mapped memory in holes of the first part of a free run. That part then counts as
  // in use, without a user, so that no later call finds it again.
  HZ_COLD static bool has_lost_holes(Global& g, std::uint32_t row, std::size_t granules, unsigned pages) {
    if (g.holes.fill(g.plan, g.book.runs, row, granules, pages) != AddressPlan::Growth::kTaken) return false;
    g.book.use(row, granules);
    return true;
  }

  using Room = MemoryLimits::Room;

  // What room there is for has to be looked for again afterwards: the lock was open. False: there is none.
  // Enough, and still no place for it: a run may be on its way to the system, and free again soon.
  static bool made(Global& g, Room room, Demand& demand) {
    if (room == Room::kNone || (room == Room::kEnough && g.book.leaving == 0)) return false;
    if (room == Room::kAfterPurge) {
      unsigned refused = 0;
      const std::size_t purged = purge_one(g, SIZE_MAX, refused);
      demand.paid = purged == 0 ? MemoryLimits::kUnpayable : demand.paid + purged;
      return true;
    }
    g.lock.unlock();
    os::give_way();
    g.lock.lock();
    return true;
  }

  // What a run of never used granules would add to what is held.
  static std::size_t fresh_bytes(const Global& g, const AddressPlan::Spot& spot, std::size_t granules) {
    return (granules << kGranuleShift) + (granules + g.plan.gap(spot)) * g.book.per_granule;
  }

  // A run of never used granules; 0 if there are no more addresses, or the system has no more memory.
  static std::uint32_t grow(Global& g, std::size_t granules, std::size_t alignment) {
    for (;;) {
      const AddressPlan::Spot spot = g.plan.spot(granules, alignment);
      if (spot.row == 0) return 0;
      const AddressPlan::Growth growth = grow_at(g, spot, granules);
      if (growth != AddressPlan::Growth::kTaken)
        return growth == AddressPlan::Growth::kDone ? row_of(spot) : 0;
    }
  }
  static AddressPlan::Growth grow_at(Global& g, const AddressPlan::Spot& spot, std::size_t granules) {
    const std::size_t gap = g.plan.gap(spot), covered = g.plan.covered();
    const AddressPlan::Growth growth = g.plan.grow(spot, granules);
    if (g.told != nullptr && g.plan.covered() != covered) g.told(g.plan.covered());
    if (growth != AddressPlan::Growth::kDone) return growth;
    g.book.grown(row_of(spot), granules, gap);
    return growth;
  }
  static std::uint32_t row_of(const AddressPlan::Spot& spot) { return static_cast<std::uint32_t>(spot.row); }

  // Returns true if a run in use that gets `more` rows behind it gets pages without memory alone.
  static bool is_fresh(const Global& g, std::uint32_t next, std::size_t more) {
    if (g.plan.behind(next, more).row != 0 || g.book.runs.spare_at(next) >= more) return true;
    const RunTable::Row& row = g.book.runs.rows[next];
    return row.state == RunTable::State::kFree && row.dirty == 0;
  }
  // The rows behind a run in use, for the run; kNone where caches have to be returned first, too: then it
  // moves.
  static Room extend(Global& g, std::uint32_t next, std::size_t more, const Demand& demand) {
    if (g.book.runs.spare_at(next) >= more) {
      const Room room = g.book.recall_due(more << kGranuleShift)
                            ? Room::kNone
                            : g.book.room_for(more << kGranuleShift, demand);
      if (room != Room::kEnough) return room;
      g.book.use_spare(next, more);
      return room;
    }
    const RunTable::Row& row = g.book.runs.rows[next];
    const AddressPlan::Spot spot = g.plan.behind(next, more);
    if (spot.row == 0 && (row.state != RunTable::State::kFree || row.length < more)) return Room::kNone;
    // Counts all of it as if it were clean: a block that is refused for that moves, at no great cost.
    const std::size_t bytes = spot.row != 0 ? fresh_bytes(g, spot, more) : more << kGranuleShift;
    if (g.book.recall_due(bytes)) return Room::kNone;
    const Room room =
        spot.row != 0 ? g.book.room_for(bytes, demand) : g.book.room_for_part(next, more, demand);
    if (room != Room::kEnough) return room;
    if (spot.row != 0)
      return grow_at(g, spot, more) == AddressPlan::Growth::kDone ? Room::kEnough : Room::kNone;
    if (!is_mapped(g, next, more, RunTable::kAllPages)) return Room::kNone;
    g.book.use(next, more);
    return Room::kEnough;
  }

  // Gives back the pages of one free run, or of so many granules of it. Of locked memory the system takes
  // none, so it passes over a few runs that it refuses, which `refused` counts. Returns the bytes; 0 if there
  // is no other dirty run, or too many were refused.
  static std::size_t purge_one(Global& g, std::size_t most, unsigned& refused) {
    constexpr unsigned kMostRefused = 8;
    for (; refused < kMostRefused; ++refused) {
      const std::uint32_t oldest = g.book.runs.oldest_dirty(refused);
      if (oldest == 0) return 0;
      if (const std::size_t bytes = purge_run(g, g.book.runs.cut_dirty(oldest, most))) return bytes;
    }
    return 0;
  }
  // Purges a free run, which is in use meanwhile: the lock is open while the system works. Returns the bytes
  // that were dirty; 0 if the system refuses, and then the run is as before.
  static std::size_t purge_run(Global& g, std::uint32_t row) {
    const RunBook::Purge purge = g.book.begin_purge(row);
    const std::size_t bytes = purge.length << kGranuleShift;
    const std::uintptr_t at = g.plan.at(row);
    const bool with_holes = g.holes.exist();
    g.lock.unlock();
    const bool done = HZ_UNLIKELY(with_holes) ? Holes::purge(g.plan, g.book.runs, row, purge.length)
                                              : os::purge(pointer(at), bytes);
    g.lock.lock();
    if (!done) return g.book.undo_purge(purge), 0;
    const std::uint32_t first = g.book.end_purge(purge);
    const RunTable::Row& run = g.book.runs.rows[first];
    if (run.dirty == 0)
      os::purged_within(g.plan.at(first), g.plan.at(first) + (std::size_t{run.length} << kGranuleShift), at,
                        at + bytes);
    return purge.dirty << kGranuleShift;
  }

  // What is left of a moved run has to become the arena's own mapping again. `purged`: what it loses is
  // clean.
  static bool shrink(Global& g, std::uint32_t row, std::size_t granules, bool purged) {
    const std::size_t left = g.book.runs.rows[row].length - granules;
    const auto tail = row + static_cast<std::uint32_t>(granules);
    const bool moved = g.book.runs.rows[row].boundary;
    if (moved && !os::remap_fresh(pointer(g.plan.at(tail)), left << kGranuleShift)) return false;
    g.book.runs.mark_used(row, granules);
    return g.book.give(tail, left, moved || purged), true;
  }
};

}  // namespace hz
