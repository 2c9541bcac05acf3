// SPDX-License-Identifier: Apache-2.0
//
// Tables of other boxes whose rows mean nothing, and may read as zero, while their granules are free: their pages go
// back to the system with those of the granules. Called by the arena under its lock; a system call a table when a
// purged run completes a stretch of its rows.
#pragma once

#include "base/units.hpp"
#include "os/os.hpp"

namespace hz {

struct Shadows {
  static constexpr unsigned kMost = 8;
  struct Table {
    std::uintptr_t at;
    std::size_t stride;  // bytes of one granule's row
    bool has_ends;       // the first and the last row of a free run are of meaning, and all where it is not clean
  };

  Table tables[kMost] = {};
  unsigned count = 0;

  void add(std::uintptr_t at, std::size_t stride, bool has_ends = false) {
    check(count < kMost);
    tables[count++] = {at, stride, has_ends};
  }

  // Granules from `row` were purged and are part of the free run at `first`, which may be clean as a whole. Of the
  // stretches of table that hold rows of theirs, those go that lie in the run as a whole. A stretch is as long as a
  // granule: whole pages on every system.
  void purge(std::size_t first, std::size_t run_length, bool clean, std::size_t row, std::size_t length) const {
    for (unsigned i = 0; i < count; ++i) {
      const Table& table = tables[i];
      if (table.has_ends && !clean) continue;
      const std::size_t ends = table.has_ends ? 1 : 0;
      const std::uintptr_t begin = align_up(table.at + (first + ends) * table.stride, kGranule);
      const std::uintptr_t end = down(table.at + (first + run_length - ends) * table.stride);
      const std::uintptr_t from = larger(begin, down(table.at + row * table.stride));
      const std::uintptr_t to = smaller(end, align_up(table.at + (row + length) * table.stride, kGranule));
      if (from < to) os::purge(pointer(from), to - from);
    }
  }

 private:
  static std::uintptr_t down(std::uintptr_t at) { return at & ~(kGranule - 1); }
  static std::uintptr_t larger(std::uintptr_t a, std::uintptr_t b) { return a > b ? a : b; }
  static std::uintptr_t smaller(std::uintptr_t a, std::uintptr_t b) { return a < b ? a : b; }
};

}  // namespace hz
