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
#pragma once

#include <atomic>

#include "box/source/contract.hpp"
#include "box/source/run_table.hpp"
#include "os/lock.hpp"

namespace hz {

struct Arena {
  struct Global {
    std::uintptr_t base = 0;
    std::size_t bytes = 0;
    std::uintptr_t tables = 0;
    bool grows = false;            // extends its range instead of committing reserved space
    std::uintptr_t committed = 0;  // usable up to here
    RunTable runs;
    std::atomic<std::size_t> dirty{0};  // granules; written under the lock
    os::Lock lock;
  };

  static constexpr std::size_t kMinBytes = 4 * kMiB;
  static constexpr std::size_t kDefaultBytes = 64 * kGiB;
  static constexpr std::size_t kTiB = 1024 * kGiB;
  static constexpr std::size_t kMaxBytes = 16 * kTiB;
  static constexpr std::size_t kCommitStep = 4 * kMiB;

  static bool open(Global& g, std::size_t table_bytes_per_granule) {
    const std::size_t per_granule = table_bytes_per_granule + sizeof(RunTable::Row);
    const std::size_t limit = os::address_space_limit();
    g.grows = limit != SIZE_MAX;
    std::size_t bytes = kDefaultBytes;
    while (bytes < 4 * os::memory_bytes() && bytes < kMaxBytes) bytes *= 2;
    if (g.grows && bytes > limit) bytes = align_up(limit, kGranule);
    for (; bytes >= kMinBytes; bytes = align_up(bytes / 2, kGranule)) {
      if (place(g, bytes, align_up(bytes / kGranule * per_granule, kGranule), table_bytes_per_granule)) return true;
    }
    return false;
  }

  static std::uintptr_t base(const Global& g) { return g.base; }
  static std::size_t bytes(const Global& g) { return g.bytes; }
  static std::uintptr_t tables(const Global& g) { return g.tables; }

  static Run acquire(Global& g, std::size_t granules, std::size_t alignment) {
    const os::Guarded hold(g.lock);
    RunTable& t = g.runs;
    if (granules > t.end || alignment > t.end) return {};
    std::uint32_t row = t.find(granules, alignment, g.base >> kGranuleShift);
    const bool zeroed = row == 0 || use(g, row, granules) == 0;
    if (row == 0) row = grow(g, granules, alignment);
    if (row == 0) return {};
    t.rows[row].moved = false;
    return {at(g, row), zeroed};
  }

  static void release(Global& g, std::uintptr_t start, bool fresh) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start);
    give(g, row, g.runs.rows[row].length, fresh);
  }

  static bool resize(Global& g, std::uintptr_t start, std::size_t granules) {
    const os::Guarded hold(g.lock);
    const std::uint32_t row = row_of(g, start);
    const std::size_t length = g.runs.rows[row].length;
    if (granules < length) {
      shrink(g, row, granules);
    } else if (granules > length) {
      const auto next = row + static_cast<std::uint32_t>(length);
      const std::size_t more = granules - length;
      if (g.runs.rows[row].moved) return false;  // or its pages would lie in two mappings
      if (next == g.runs.top) {
        if (grow(g, more, 1) == 0) return false;
      } else if (g.runs.rows[next].state == RunTable::State::kFree && g.runs.rows[next].length >= more) {
        use(g, next, more);
      } else {
        return false;
      }
      g.runs.mark_used(row, granules);
    }
    return true;
  }

  static void note_moved(Global& g, std::uintptr_t start) {
    const os::Guarded hold(g.lock);
    g.runs.rows[row_of(g, start)].moved = true;
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

  // The lock is not held while the system works: the run is in use meanwhile.
  static std::size_t purge(Global& g, std::size_t keep_bytes) {
    std::size_t purged = 0;
    g.lock.lock();
    while (dirty_bytes(g) > keep_bytes) {
      const std::uint32_t row = g.runs.oldest_dirty();
      if (row == 0) break;
      const std::size_t length = g.runs.rows[row].length;
      const std::size_t dirty = use(g, row, length);
      g.lock.unlock();
      const bool done = os::purge(pointer(at(g, row)), length << kGranuleShift);
      g.lock.lock();
      give(g, row, length, done);
      if (!done) break;
      purged += dirty << kGranuleShift;
    }
    g.lock.unlock();
    return purged;
  }

  static void free_locks(Global& g) { g.lock.reset(); }

 private:
  static std::uintptr_t at(const Global& g, std::uint32_t row) {
    return g.base + (std::uintptr_t{row} << kGranuleShift);
  }
  static std::uint32_t row_of(const Global& g, std::uintptr_t address) {
    return static_cast<std::uint32_t>((address - g.base) >> kGranuleShift);
  }

  static bool place(Global& g, std::size_t bytes, std::size_t table_bytes, std::size_t others_per_granule) {
    g.base = g.grows ? place_growing(table_bytes) : place_reserved(bytes, table_bytes);
    if (g.base == 0) return false;
    g.bytes = bytes;
    g.tables = g.base;
    g.committed = g.base + table_bytes;
    const std::size_t count = bytes >> kGranuleShift;
    g.runs.open(pointer(g.base + count * others_per_granule), table_bytes >> kGranuleShift, count);
    return true;
  }
  static std::uintptr_t place_reserved(std::size_t bytes, std::size_t table_bytes) {
    void* range = os::reserve(bytes, kGranule);
    if (range == nullptr) return 0;
    if (os::commit(range, table_bytes) && os::forbid_huge_pages(range, table_bytes)) return address(range);
    os::unmap(range, bytes);
    return 0;
  }
  // Somewhere far from where the system places its own mappings, so that there is room to grow; at random, so that the
  // place is no more predictable than any other mapping.
  static std::uintptr_t place_growing(std::size_t table_bytes) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::uintptr_t at = 16 * kTiB + os::random_word() % (16 * kTiB / kGranule) * kGranule;
      if (os::extend(pointer(at), table_bytes) && os::forbid_huge_pages(pointer(at), table_bytes)) return at;
    }
    return 0;
  }

  // A run in use from the top; 0 if the range or the system has no more.
  static std::uint32_t grow(Global& g, std::size_t granules, std::size_t alignment) {
    RunTable& t = g.runs;
    const std::size_t bias = g.base >> kGranuleShift;
    const std::size_t row = align_up(t.top + bias, alignment) - bias;
    const std::size_t end = row + granules;
    if (end > t.end || !commit_to(g, g.base + (end << kGranuleShift))) return 0;
    const std::uint32_t gap = t.top;
    t.top = static_cast<std::uint32_t>(end);
    t.mark_used(static_cast<std::uint32_t>(row), granules);
    if (row != gap) t.give(gap, row - gap, 0);
    return static_cast<std::uint32_t>(row);
  }

  // Takes a free run, or the first part of it, into use; how many of its granules were dirty.
  static std::size_t use(Global& g, std::uint32_t row, std::size_t granules) {
    const std::size_t dirty = g.runs.use(row, granules);
    g.dirty.store(g.dirty.load(std::memory_order_relaxed) - dirty, std::memory_order_relaxed);
    return dirty;
  }

  static bool commit_to(Global& g, std::uintptr_t end) {
    if (end <= g.committed) return true;
    std::uintptr_t generous = align_up(end - g.base, kCommitStep) + g.base;
    if (generous > g.base + g.bytes) generous = g.base + g.bytes;
    return commit_range(g, generous) || commit_range(g, end);
  }
  static bool commit_range(Global& g, std::uintptr_t end) {
    void* from = pointer(g.committed);
    const std::size_t bytes = end - g.committed;
    if (!(g.grows ? os::extend(from, bytes) : os::commit(from, bytes))) return false;
    g.committed = end;
    return true;
  }

  static void shrink(Global& g, std::uint32_t row, std::size_t granules) {
    const std::size_t length = g.runs.rows[row].length;
    const auto tail = row + static_cast<std::uint32_t>(granules);
    const std::size_t bytes = (length - granules) << kGranuleShift;
    g.runs.mark_used(row, granules);
    // What is left of a moved run is the arena's own mapping again.
    const bool fresh = g.runs.rows[row].moved && os::remap_fresh(pointer(at(g, tail)), bytes);
    give(g, tail, length - granules, fresh);
  }

  // Rows that are in use (or were a run's tail) become a free run, merged with free neighbours.
  static void give(Global& g, std::uint32_t row, std::size_t length, bool fresh) {
    if (!fresh) g.dirty.store(g.dirty.load(std::memory_order_relaxed) + length, std::memory_order_relaxed);
    g.runs.give(row, length, fresh ? 0 : length);
  }
};

}  // namespace hz
