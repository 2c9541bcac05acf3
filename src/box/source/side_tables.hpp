// SPDX-License-Identifier: Apache-2.0
//
// Tables of other boxes whose rows mean nothing, and may read as zero, while their granules are free: their
// pages go back to the system with those of the granules. Called by the arena under its lock; a system call a
// table when a purged run completes a page of its rows.
#pragma once

#include <algorithm>

#include "base/units.hpp"
#include "os/os.hpp"

namespace hz {

struct SideTables {
  static constexpr unsigned kMost = 14;
  struct Table {
    std::uintptr_t at;
    std::size_t stride;  // bytes of one granule's row
    bool has_ends;  // the first and the last row of a free run are of meaning, and all where it is not clean
  };

  Table tables[kMost] = {};
  unsigned count = 0;

  void add(std::uintptr_t at, std::size_t stride, bool has_ends = false) {
    check(count < kMost);
    tables[count++] = {at, stride, has_ends};
  }

  // Keeps the table whose rows have ends from now on. Requires: it is the last one.
  void keep_rows() {
    if (count != 0 && tables[count - 1].has_ends) --count;
  }

  // Granules from `row` were purged and are part of the free run at `first`, which may be clean as a whole.
  // Of the pages of table that hold rows of theirs, those go that lie in the run as a whole; where only clean
  // runs count, all of a run that has become one, because it may have been purged in steps.
  void purge(std::size_t first, std::size_t run_length, bool clean, std::size_t row,
             std::size_t length) const {
    const std::size_t page = os::page_bytes();
    for (unsigned i = 0; i < count; ++i) {
      const Table& table = tables[i];
      if (table.has_ends && !clean) continue;
      const std::size_t ends = table.has_ends ? 1 : 0;
      const std::uintptr_t begin = align_up(table.at + (first + ends) * table.stride, page);
      const std::uintptr_t end = (table.at + (first + run_length - ends) * table.stride) & ~(page - 1);
      std::uintptr_t from = begin, to = end;
      if (!table.has_ends) {
        from = std::max(begin, (table.at + row * table.stride) & ~(page - 1));
        to = std::min(end, align_up(table.at + (row + length) * table.stride, page));
      }
      if (from < to) os::purge(pointer(from), to - from, os::Use::kTables);
    }
  }
};

}  // namespace hz
