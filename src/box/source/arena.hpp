// SPDX-License-Identifier: Apache-2.0
//
// One range of addresses per process, which grows in place and is dealt out in runs of granules; called by
// the boundary and for huge blocks. One lock; an acquisition is a look-up in a table of free runs by length,
// dirty ones first, because memory that was touched costs no page fault. Where things lie is told in
// address_plan.hpp.
//
//   free runs never touch: neighbours are merged at release
//   a free run's first row holds its length and its number of dirty granules, its last row its length
//   every row of a run in use knows the first one
//   a spare run stands behind the run in use that may grow into it; its granules are clean
//
//   held = (reached - clean) granules - tails + tables of `reached`
//                                                                reached: granules that are or were in use
//                                                                clean: free granules without pages
//                                                                tails: pages of runs in use that are never
//                                                                used
//   Every change of it happens under the lock; past a limit (memory_limits.hpp) none goes upwards.
#pragma once

#include <algorithm>
#include <atomic>

#include "box/source/address_plan.hpp"
#include "box/source/contract.hpp"
#include "box/source/holes.hpp"
#include "box/source/memory_limits.hpp"
#include "box/source/run_table.hpp"
#include "box/source/side_tables.hpp"
#include "os/lock.hpp"
#include "os/probe.hpp"

namespace hz {

struct Arena {
  struct Global {
    AddressPlan plan;
    RunTable runs;
    Holes holes;
    void (*told)(std::size_t) = nullptr;
    std::size_t reached = 0;            // granules
    std::atomic<std::size_t> dirty{0};  // granules; written under the lock
    std::size_t clean = 0;              // granules
    std::size_t tails = 0;              // pages
    std::size_t leaving = 0;            // granules on their way to the system
    std::size_t per_granule = 0;        // bytes of all tables
    MemoryLimits limits;
    SideTables side_tables;
    os::Lock lock;
  };

  static constexpr auto words() {
    return layout::joined(
        layout::Words<2>{layout::Word("source.reached", offsetof(Global, reached), sizeof(std::size_t)),
                         {"source.dirty", offsetof(Global, dirty), sizeof(std::size_t)}},
        layout::placed(MemoryLimits::words(), layout::kNumber, offsetof(Global, limits)),
        layout::placed(AddressPlan::words(), layout::kNumber, offsetof(Global, plan)));
  }

  static constexpr unsigned kMostTables = AddressPlan::kMostTables - 1;  // its own rows are one, too
  static_assert(AddressPlan::kMostTables <= SideTables::kMost);
  static constexpr std::size_t kPurgedAtOnce = 8 * kMiB >> kGranuleShift;  // granules, by one system call

  // A frame of its own: test/stack.
  HZ_COLD static bool open(Global& g, const TableShape* shapes, unsigned count, bool grows = true) {
    TableShape all[AddressPlan::kMostTables];
    for (unsigned i = 0; i < count; ++i) all[i] = shapes[i];
    all[count] = {.row_bytes = sizeof(RunTable::Row), .lasts = false, .counts = true};
    if (!g.plan.open(all, count + 1, grows)) return false;
    for (unsigned i = 0; i <= count; ++i) {
      if (!all[i].lasts) g.side_tables.add(g.plan.table(i), all[i].row_bytes, i == count);
      if (all[i].counts) g.per_granule += all[i].row_bytes;
    }
    g.runs.open(pointer(g.plan.table(count)));
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
    g.limits.set(soft, hard);
  }
  static Limits limits(Global& g) {
    const os::Guarded hold(g.lock);
    return g.limits.now();
  }
  static Run acquire(Global& g, std::size_t granules, std::size_t alignment, Demand demand = {}) {
    Run run = acquire_whole(g, granules, alignment, demand);
    const std::uintptr_t end = run.at + (granules << kGranuleShift);
    if (HZ_UNLIKELY(run.purged != 0) && !os::purge(pointer(end - run.purged), run.purged)) run.purged = 0;
    return run;
  }
  static void release(Global& g, std::uintptr_t start, bool fresh) {
    const os::Guarded hold(g.lock);
    g.tails -= tail_of(g, row_of(g, start));
    drop_spare(g, behind(g, row_of(g, start)));
    g.runs.drop(row_of(g, start));
    give(g, row_of(g, start), g.runs.rows[row_of(g, start)].length, fresh);
  }
  static void part(Global& g, std::uintptr_t start, std::size_t granules) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start), second = row + static_cast<std::uint32_t>(granules);
    const std::size_t length = g.runs.rows[row].length;
    const std::uint8_t backed = g.runs.last_of(row).backed;
    g.runs.mark_used(second, length - granules);
    g.runs.last_of(second).backed = backed;
    g.runs.rows[second].dirty = 0;
    g.runs.mark_used(row, granules);
  }
  static void without_pages(Global& g, std::ptrdiff_t granules) {
    const os::Guarded hold(g.lock);
    g.clean += static_cast<std::size_t>(granules);
  }
  static bool claim(Global& g, std::uintptr_t start, bool claimed) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start);
    if (!g.plan.in_use(row) || g.runs.head_of(row) != row || g.runs.rows[row].claimed == claimed)
      return false;
    g.runs.rows[row].claimed = claimed;
    return true;
  }
  static void hold(Global& g, std::uintptr_t start, unsigned holder, std::uintptr_t beside) {
    const os::Guarded hold(g.lock);
    g.runs.hold(row_of(g, start), holder, beside == 0 ? 0 : row_of(g, beside));
  }
  static void join(Global& g, std::uintptr_t start, std::uintptr_t beside) {
    const os::Guarded hold(g.lock);
    const unsigned holder = g.runs.holder(row_of(g, beside));
    if (holder != 0) g.runs.hold(row_of(g, start), holder, row_of(g, beside));
  }
  static void drop(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    g.runs.drop(row_of(g, start));
  }
  static unsigned holder(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    return g.runs.holder(row_of(g, start));
  }
  static HeldRun drop_next(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start), next = g.runs.next_held(row);
    if (next == row) return {0, 0};
    const HeldRun dropped = {g.plan.at(next), g.runs.holder(next)};
    g.runs.drop(next);
    return dropped;
  }
  static bool resize(Global& g, std::uintptr_t start, std::size_t granules) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start);
    const std::size_t length = g.runs.rows[row].length;
    if (granules == length) return true;
    if (granules > length && !os::promises((granules - length) << kGranuleShift)) return false;
    const bool into_spare = g.runs.spare_at(behind(g, row)) >= granules - length && granules > length;
    if (!into_spare) drop_spare(g, behind(g, row));
    if (granules < length) return shrink(g, row, granules);
    // Its pages would lie in two mappings, but where those of its spare run do so already.
    if (g.runs.rows[row].boundary && !into_spare) return false;
    Demand demand = {.force = true};
    for (;;) {
      const Room room = extend(g, row + static_cast<std::uint32_t>(length), granules - length, demand);
      if (room == Room::kEnough) break;
      if (!made(g, room, demand)) return false;
    }
    g.runs.join(row, granules);
    return true;
  }
  static void note_mapping_boundary(Global& g, std::uintptr_t inside) {
    const os::Guarded hold(g.lock);
    g.runs.rows[row_of(g, inside)].boundary = true;
  }
  static bool in_pieces(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    return g.runs.rows[row_of(g, start)].boundary;
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
    const std::uint32_t row = row_of(g, address);
    const std::uint32_t head = g.plan.in_use(row) ? g.runs.head_of(row) : 0;
    return head == 0 ? 0 : g.plan.at(head);
  }
  static std::size_t reached_bytes(Global& g) {
    const os::Guarded hold(g.lock);
    return g.reached << kGranuleShift;
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
    return os::Guarded(&g.lock, milliseconds).has_lock();
  }
  static std::size_t dirty_bytes(const Global& g) {
    return g.dirty.load(std::memory_order_relaxed) << kGranuleShift;
  }
  static std::size_t held_bytes(Global& g) {
    const os::Guarded hold(g.lock);
    return held(g);
  }
  static bool has_room(Global& g, std::size_t more) {
    const os::Guarded hold(g.lock);
    return held(g) + more <= g.limits.soft;
  }
  static bool took_recall(Global& g) { return g.limits.took_recall(); }
  static std::size_t thread_share(const Global& g) {
    return g.limits.thread_share.load(std::memory_order_relaxed);
  }
  static std::size_t purge(Global& g, std::size_t keep_bytes, std::size_t most_bytes) {
    const os::Guarded hold(g.lock);
    std::size_t purged = 0;
    unsigned refused = 0;
    for (std::size_t one = 1; one != 0 && purged < most_bytes && dirty_bytes(g) > keep_bytes; purged += one)
      one = purge_one(g, std::min(((most_bytes - purged - 1) >> kGranuleShift) + 1, kPurgedAtOnce), refused);
    return purged;
  }

  static void free_locks(Global& g) {
    g.lock.reset();
    g.leaving = 0;
  }
  static void make_whole(Global& g) {
    g.leaving = 0;
    if (!g.lock.reset()) return;
    g.dirty.store(0, std::memory_order_relaxed);
    g.runs.lose_lists();
    for_each_row(g, [&](std::size_t row) { g.runs.lose(row); });
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

  static std::size_t held(const Global& g) {
    return ((g.reached - g.clean) << kGranuleShift) - (g.tails << kPageShift) + g.reached * g.per_granule;
  }

  // Returns how many pages of a run's last granule will be used. `used`: bytes of the run; 0: all.
  static unsigned last_pages(std::size_t used) {
    const std::size_t pages = align_up(used, os::page_bytes()) >> kPageShift;
    return static_cast<unsigned>((pages + kPagesPerGranule - 1) % kPagesPerGranule) + 1;
  }
  // Notes that no page behind the first `used` bytes of a run is used, of whose last granule the first
  // `backed` pages may have memory. Returns how many bytes at its end have to be purged for that.
  static std::size_t cut_tail(Global& g, std::uint32_t row, std::size_t used, std::uint8_t backed) {
    if (used == 0) return 0;
    const std::size_t pages = align_up(used, os::page_bytes()) >> kPageShift;
    const std::size_t before = (std::size_t{g.runs.rows[row].length} - 1) * kPagesPerGranule;
    g.runs.last_of(row).backed = static_cast<std::uint8_t>(pages - before);
    g.tails += tail_of(g, row);
    return backed > pages - before ? tail_of(g, row) << kPageShift : 0;
  }
  // Cuts a run after `granules`; what lies behind becomes its spare run, or is free again where it has pages.
  static void set_room_aside(Global& g, std::uint32_t row, std::size_t granules, bool zeroed) {
    const std::size_t room = g.runs.rows[row].length - granules;
    const auto second = row + static_cast<std::uint32_t>(granules);
    g.runs.mark_used(row, granules);
    if (!zeroed) return void(give(g, second, room, false));
    g.runs.spare(second, room);
    g.clean += room;
  }
  static std::uint32_t behind(const Global& g, std::uint32_t row) { return row + g.runs.rows[row].length; }
  static void drop_spare(Global& g, std::uint32_t row) {
    const std::size_t length = g.runs.spare_at(row);
    if (HZ_LIKELY(length == 0)) return;
    g.runs.use_spare(row, length);
    g.clean -= length;
    give(g, row, length, true);
  }
  // All of them, when there are no addresses, or the system refuses more. False: there is none.
  static bool drop_spares(Global& g) {
    if (g.runs.spare_runs.first == 0) return false;
    while (g.runs.spare_runs.first != 0) drop_spare(g, g.runs.spare_runs.first);
    return true;
  }
  static std::size_t tail_of(Global& g, std::uint32_t row) {
    return std::size_t{kPagesPerGranule} - g.runs.last_of(row).backed;
  }

  static Run acquire_whole(Global& g, std::size_t granules, std::size_t alignment, Demand& demand) {
    const os::Guarded hold(g.lock);
    const std::size_t bias = g.plan.base() >> kGranuleShift, least = granules;
    if (granules >= g.plan.rows() || alignment >= g.plan.rows()) return {};
    if (held(g) + ((granules + demand.room) << kGranuleShift) <= g.limits.soft) granules += demand.room;
    for (;;) {
      const unsigned pages = granules == least ? last_pages(demand.used) : RunTable::kAllPages;
      std::uint32_t row = g.runs.find(granules, alignment, bias, pages);
      // The system has promised what is free here.
      if (row == 0 && !os::promises(granules << kGranuleShift)) {
        if (granules == least) return {};
        granules = least;
        continue;
      }
      const AddressPlan::Spot spot = row != 0 ? AddressPlan::Spot() : g.plan.spot(granules, alignment);
      const Room room = row != 0 ? room_for_part(g, row, granules, demand)
                                 : room_for(g, fresh_bytes(g, spot, granules), demand);
      if (room == Room::kEnough && (row == 0 || is_mapped(g, row, granules, pages))) {
        const std::uint8_t backed = row == 0 ? 0 : g.runs.backed_of(row, granules);
        const bool zeroed = row == 0 || use(g, row, granules) == 0;
        if (row == 0) row = grow(g, granules, alignment);
        if (row != 0 && granules != least) set_room_aside(g, row, least, zeroed);
        if (row != 0) return {g.plan.at(row), zeroed, cut_tail(g, row, demand.used, backed)};
      } else if (row != 0) {
        g.runs.leave(row);
      }
      if (granules != least) {
        granules = least;
      } else if (!made(g, room, demand) && !drop_spares(g) &&
                 !(room == Room::kEnough && cut_holes(g, least))) {
        return {};
      }
    }
  }

  // Makes the system's limits spare some granules. The rows of free runs, which know their holes, stay then.
  HZ_COLD static bool cut_holes(Global& g, std::size_t granules) {
    g.side_tables.keep_rows();
    return g.holes.cut(g.plan, g.runs, granules, g.tails, g.clean);
  }
  // Fills the holes of the first part of a free run. Returns false if the system refuses.
  static bool is_mapped(Global& g, std::uint32_t row, std::size_t granules, unsigned pages) {
    return HZ_LIKELY(!g.holes.exist()) ||
           g.holes.fill(g.plan, g.runs, row, granules, pages) == AddressPlan::Growth::kDone;
  }

  using Room = MemoryLimits::Room;
  static constexpr std::size_t kUnpayable = SIZE_MAX;  // the system takes nothing back

  // Whether the heap may have `more` bytes than it holds. What is free goes back to the system first.
  static Room room_for(Global& g, std::size_t more, const Demand& demand) {
    MemoryLimits& r = g.limits;
    const std::size_t next = held(g) + more;
    if (HZ_LIKELY(next <= r.soft)) return Room::kEnough;
    const std::size_t credit = demand.instead_of << kGranuleShift;
    const std::size_t hard = r.hard > MemoryLimits::kNone - credit ? MemoryLimits::kNone : r.hard + credit;
    if (next - dirty_bytes(g) - (g.leaving << kGranuleShift) > hard)
      return refused(os::probe::Limit::kHard, more);
    // Past the soft limit growth is paid with free pages, byte for byte; past the hard one with all that it
    // takes.
    const bool unpaid = next > hard ? demand.paid != kUnpayable : next > r.soft && demand.paid < more;
    if (unpaid && dirty_bytes(g) != 0) return Room::kAfterPurge;
    if (next > hard) return g.leaving != 0 ? Room::kWhenOthersPurged : refused(os::probe::Limit::kHard, more);
    if (demand.force || !r.recall_due(next)) return Room::kEnough;
    r.recalled(held(g));
    return refused(os::probe::Limit::kSoft, more);
  }
  static Room refused(os::probe::Limit limit, std::size_t more) {
    os::probe::limit(limit, more);
    return Room::kNone;
  }
  // What room there is for has to be looked for again afterwards: the lock was open. False: there is none.
  // Enough, and still no place for it: a run may be on its way to the system, and free again soon.
  static bool made(Global& g, Room room, Demand& demand) {
    if (room == Room::kNone || (room == Room::kEnough && g.leaving == 0)) return false;
    if (room == Room::kAfterPurge) {
      unsigned refused = 0;
      const std::size_t purged = purge_one(g, SIZE_MAX, refused);
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
    if (HZ_LIKELY(held(g) + (granules << kGranuleShift) <= g.limits.soft)) return Room::kEnough;
    const std::size_t clean = granules - g.runs.dirty_of(row, granules);
    return clean == 0 ? Room::kEnough : room_for(g, clean << kGranuleShift, demand);
  }

  // What a run of never used granules would add to what is held.
  static std::size_t fresh_bytes(const Global& g, const AddressPlan::Spot& spot, std::size_t granules) {
    return (granules << kGranuleShift) + (granules + g.plan.gap(spot)) * g.per_granule;
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
    g.reached += gap + granules;
    g.runs.mark_used(row_of(spot), granules);
    if (gap != 0) {
      g.runs.give(static_cast<std::uint32_t>(spot.row - gap), gap, 0);
      g.clean += gap;
    }
    return growth;
  }
  static std::uint32_t row_of(const AddressPlan::Spot& spot) { return static_cast<std::uint32_t>(spot.row); }

  // The rows behind a run in use, for the run; kNone where caches have to be returned first, too: then it
  // moves.
  static Room extend(Global& g, std::uint32_t next, std::size_t more, const Demand& demand) {
    if (g.runs.spare_at(next) >= more) {
      const Room room = g.limits.recall_due(held(g) + (more << kGranuleShift))
                            ? Room::kNone
                            : room_for(g, more << kGranuleShift, demand);
      if (room != Room::kEnough) return room;
      g.runs.use_spare(next, more);
      g.clean -= more;
      return room;
    }
    const RunTable::Row& row = g.runs.rows[next];
    const AddressPlan::Spot spot = g.plan.behind(next, more);
    if (spot.row == 0 && (row.state != RunTable::State::kFree || row.length < more)) return Room::kNone;
    // All of it, as if it were clean: who is refused for that moves, at no great cost.
    const std::size_t bytes = spot.row != 0 ? fresh_bytes(g, spot, more) : more << kGranuleShift;
    if (g.limits.recall_due(held(g) + bytes)) return Room::kNone;
    const Room room = spot.row != 0 ? room_for(g, bytes, demand) : room_for_part(g, next, more, demand);
    if (room != Room::kEnough) return room;
    if (spot.row != 0)
      return grow_at(g, spot, more) == AddressPlan::Growth::kDone ? Room::kEnough : Room::kNone;
    if (!is_mapped(g, next, more, RunTable::kAllPages)) return Room::kNone;
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

  // Gives back the pages of one free run, or of so many granules of it. Of locked memory the system takes
  // none, so it passes over a few runs that it refuses, which `refused` counts. Returns the bytes; 0 if there
  // is no other dirty run, or too many were refused.
  static std::size_t purge_one(Global& g, std::size_t most, unsigned& refused) {
    constexpr unsigned kMostRefused = 8;
    for (; refused < kMostRefused; ++refused) {
      const std::uint32_t oldest = g.runs.oldest_dirty(refused);
      if (oldest == 0) return 0;
      if (const std::size_t bytes = purge_run(g, g.runs.cut_dirty(oldest, most))) return bytes;
    }
    return 0;
  }
  // Purges a free run, which is in use meanwhile: the lock is open while the system works. Returns the bytes
  // that were dirty; 0 if the system refuses, and then the run is as before.
  static std::size_t purge_run(Global& g, std::uint32_t row) {
    const std::size_t length = g.runs.rows[row].length;
    const std::uint8_t backed = g.runs.backed_of(row, length);
    const std::size_t dirty = use(g, row, length);
    g.leaving += dirty;
    g.clean += length - dirty;  // the others are no more held than before
    const bool with_holes = g.holes.exist();
    g.lock.unlock();
    const bool done = HZ_UNLIKELY(with_holes) ? Holes::purge(g.plan, g.runs, row, length)
                                              : os::purge(pointer(g.plan.at(row)), length << kGranuleShift);
    g.lock.lock();
    g.leaving -= dirty;
    if (done) {
      g.clean -= length - dirty;
      const std::uint32_t first = give(g, row, length, true);
      const RunTable::Row& run = g.runs.rows[first];
      if (run.dirty == 0)
        os::purged_within(g.plan.at(first), g.plan.at(first) + (std::size_t{run.length} << kGranuleShift),
                          g.plan.at(row), g.plan.at(row) + (length << kGranuleShift));
      return dirty << kGranuleShift;
    }
    g.dirty.store(g.dirty.load(std::memory_order_relaxed) + dirty, std::memory_order_relaxed);
    g.runs.put_back(row, dirty, backed);
    return 0;
  }

  // What is left of a moved run has to become the arena's own mapping again.
  static bool shrink(Global& g, std::uint32_t row, std::size_t granules) {
    const std::size_t left = g.runs.rows[row].length - granules;
    const auto tail = row + static_cast<std::uint32_t>(granules);
    const bool moved = g.runs.rows[row].boundary;
    if (moved && !os::remap_fresh(pointer(g.plan.at(tail)), left << kGranuleShift)) return false;
    g.runs.mark_used(row, granules);
    return give(g, tail, left, moved), true;
  }

  // Rows that are in use (or were a run's tail) become a free run, merged with free neighbours. Returns the
  // first row of that.
  static std::uint32_t give(Global& g, std::uint32_t row, std::size_t length, bool fresh) {
    if (fresh) {
      g.clean += length;
      g.limits.fell(held(g));
    } else {
      g.dirty.store(g.dirty.load(std::memory_order_relaxed) + length, std::memory_order_relaxed);
    }
    const std::uint32_t first = g.runs.give(row, length, fresh ? 0 : length);
    const RunTable::Row& run = g.runs.rows[first];
    if (fresh) g.side_tables.purge(first, run.length, run.dirty == 0, row, length);
    return first;
  }
};

}  // namespace hz
