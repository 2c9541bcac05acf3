// SPDX-License-Identifier: Apache-2.0
//
// Where the arena and the tables beside it lie, and how far they are usable. Called by the arena under its
// lock; a step costs a system call for the arena and one for each table that needs another page.
//
//   [ tables of all boxes, the arena's rows ][ the first table | granules ... ]
//   lowest                                   base              first          rows
//
// Addresses are planned for far more than a machine has, and nothing is reserved: a table and the arena are
// mapped as far as they are used, each at its place. So a process is charged for what it uses, every limit is
// the system's to enforce, whenever it was set, and others may map what is left. Where the plan is not to be
// had (sanitizers and small address spaces have no such addresses) a range is reserved, and made usable in
// the same steps.
//
// What is used lies in stretches; most processes have one. Another begins where a foreign mapping is in the
// way, or where a large alignment would leave a large gap. They are so far apart that no page of a table
// serves two.
//
//   rows begin - 1 to ready of a table are usable: a row's neighbours can be read without asking
//   the first table can be read as far as `covered` says, without a gap; row 0 is never used
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>

#include "base/layout.hpp"
#include "box/source/contract.hpp"
#include "os/os.hpp"

namespace hz {

class AddressPlan {
 public:
  static constexpr std::size_t kTiB = 1024 * kGiB;
  static constexpr std::size_t kPlanned = 8 * kTiB;
  // Of the first table, which begins at base, so much at most tells of the table itself: less is planned
  // then.
  static constexpr std::size_t kMostOfItself = kMiB;
  // Above what others ask for with hints of 46 bits, below where programs are loaded.
  static constexpr std::uintptr_t kLowest = 66 * kTiB, kHighest = 84 * kTiB;
  static constexpr std::size_t kReserved = 64 * kGiB, kLeastReserved = 4 * kMiB;
  static constexpr std::size_t kHugePage = 2 * kMiB;  // what x86-64 and most arm64 systems have

  static constexpr unsigned kMostTables = 14, kMostStretches = 32;
  // Steps are multiples of huge pages, for the system gives one only where all of its addresses are usable at
  // the first touch. They grow with what is used. A stretch's first huge page becomes usable in steps that
  // double: a small process that locks its memory locks all that is usable.
  static constexpr std::size_t kStep = kHugePage >> kGranuleShift, kLongestStep = 64 * kMiB >> kGranuleShift;
  static constexpr std::size_t kStepShare = 8;
  // A gap up to here is used as well, and needs no further stretch.
  static constexpr std::size_t kMostGap = 64 * kMiB >> kGranuleShift;

  struct Stretch {
    std::uint32_t begin = 0, top = 0;           // rows from the one up to the other are, or were, in use
    std::uint32_t end = 0;                      // it grows no further
    std::uint32_t usable = 0;                   // in the arena and in every table
    std::uint32_t ready[kMostTables + 1] = {};  // the same by table, the arena last; 0: nothing is
  };
  struct Spot {
    unsigned stretch = kMostStretches;
    std::size_t row = 0;  // 0: there is none
  };
  enum class Growth : std::uint8_t { kDone, kTaken, kRefused };  // taken: there may be memory at another spot

  // Of the rows in use, by stretch: begin, top, and what is of no use outside.
  static constexpr auto words() {
    return layout::Words<2>{
        layout::Word("source.stretches", offsetof(AddressPlan, stretches_), sizeof(unsigned)),
        {"source.stretch", offsetof(AddressPlan, stretch_), sizeof(Stretch), kMostStretches}};
  }

  // False if the system refuses; then nothing is taken. `grows`: nothing is reserved unless it has to be.
  bool open(const TableShape* shapes, unsigned count, bool grows) {
    check(count <= kMostTables);
    tables_ = count;
    for (unsigned i = 0; i < count; ++i) places_[i].stride = shapes[i].row_bytes;
    return (grows && open_growing()) || open_reserved();
  }

  std::uintptr_t base() const { return base_; }
  std::size_t rows() const { return rows_; }
  std::uintptr_t table(unsigned i) const { return places_[i].at; }
  std::uintptr_t at(std::size_t row) const { return base_ + (row << kGranuleShift); }
  bool reserved() const { return reserved_; }
  // Bytes from base on that the first table can be asked about.
  std::size_t covered() const { return std::min(covered_table_ / places_[0].stride, rows_) << kGranuleShift; }

  unsigned stretches() const { return stretches_; }
  const Stretch& stretch(unsigned i) const { return stretch_[i]; }
  bool in_use(std::size_t row) const {
    for (unsigned i = 0; i < stretches_; ++i)
      if (stretch_[i].begin <= row && row < stretch_[i].top) return true;
    return false;
  }

  // Where a run of granules that were never used would begin. Alignment in granules, of addresses.
  Spot spot(std::size_t granules, std::size_t alignment) const {
    const Spot near = within(granules, alignment, kMostGap);
    if (near.row != 0) return near;
    if (stretches_ < kMostStretches) {
      const std::size_t row = aligned(std::max(beyond_all() + wall_, avoid_), std::max(alignment, kStep));
      if (row + granules < rows_) return {stretches_, row};
    }
    return within(granules, alignment, rows_);
  }
  // The spot right behind the used part of a stretch; none if no stretch ends there.
  Spot behind(std::size_t row, std::size_t granules) const {
    for (unsigned i = 0; i < stretches_; ++i)
      if (stretch_[i].top == row && row + granules <= end_of(i)) return {i, row};
    return {};
  }
  // How many rows before a spot become used with it.
  std::size_t gap(const Spot& spot) const {
    return spot.stretch < stretches_ ? spot.row - stretch_[spot.stretch].top : 0;
  }

  // A run there, and the gap before it, become part of their stretch.
  Growth grow(const Spot& spot, std::size_t granules) {
    if (spot.stretch == stretches_) begin_stretch(spot.row);
    Stretch& s = stretch_[spot.stretch];
    const std::size_t end = spot.row + granules;
    const Growth growth = make_usable(s, end, end_of(spot.stretch));
    if (growth == Growth::kDone) {
      s.top = static_cast<std::uint32_t>(end);
      distance_ = wall_;
    } else if (growth == Growth::kTaken) {
      s.end = std::max(s.top, s.ready[tables_]);
      avoid_ = std::max(avoid_, spot.row + distance_);
      distance_ *= 2;  // its length is unknown
    }
    if (s.top == s.begin && untouched(s)) --stretches_;
    return growth;
  }

  // In a child that a change was cut off in: undoes a mapping that is not recorded, for the child would find
  // its place taken.
  void make_whole() {
    if (adding_ != 0 && !is_recorded(adding_from_ + adding_)) os::unmap(pointer(adding_from_), adding_);
    adding_ = 0;
  }

  // Undoes open().
  void close() {
    if (reserved_) return os::unmap(pointer(lowest_), at(rows_) - lowest_), void();
    for (unsigned i = 0; i < stretches_; ++i) {
      const Stretch& s = stretch_[i];
      for (unsigned table = 1; table <= tables_; ++table)
        if (s.ready[table] != 0)
          os::unmap(pointer(start_of(s, table)), end_at(table, s.ready[table]) - start_of(s, table));
    }
    if (covered_table_ != 0) os::unmap(pointer(base_), covered_table_);
  }

 private:
  struct Place {
    std::uintptr_t at = 0;
    std::size_t stride = 0;
  };

  // --- the place

  // Granules. At least four times the machine's memory, as in a range that is reserved.
  std::size_t planned() const {
    const std::size_t stride = places_[0].stride;
    const std::size_t small_table = kMostOfItself / stride * kGranule / stride;
    const std::size_t memory = 4 * os::memory_bytes() >> kGranuleShift;
    return std::min(std::max(small_table, memory), kPlanned >> kGranuleShift);
  }
  bool open_growing() {
    lay_out(kLowest, planned());
    const std::size_t places = (kHighest - at(rows_)) / kHugePage;
    for (int attempt = 0; attempt < 8; ++attempt) {
      // At random, so that it is no more predictable than any other mapping.
      lay_out(kLowest + os::random_word() % places * kHugePage, rows_);
      if (!os::may_have(pointer(base_))) continue;
      if (first_step()) return true;
      close();
    }
    return false;
  }

  bool open_reserved() {
    reserved_ = true;
    std::size_t bytes = kReserved;
    while (bytes < 4 * os::memory_bytes() && bytes < kPlanned) bytes *= 2;
    for (; bytes >= kLeastReserved; bytes = align_up(bytes / 2, kGranule)) {
      lay_out(0, bytes >> kGranuleShift);
      void* range = os::reserve(at(rows_), kHugePage);
      if (range == nullptr) continue;
      lay_out(address(range), rows_);
      os::forbid_huge_pages(range, at(stretch_[0].begin) - lowest_);
      if (first_step()) return true;
      close();
    }
    return false;
  }

  // The first table begins at base, where the route looks for it, and the others stand before it.
  void lay_out(std::uintptr_t lowest, std::size_t rows) {
    rows_ = rows;
    lowest_ = lowest;
    for (unsigned i = 1; i < tables_; ++i) {
      places_[i].at = lowest;
      lowest += rows * places_[i].stride;
    }
    places_[0].at = base_ = align_up(lowest, kHugePage);
    wall_ = distance_ = 2 * os::page_bytes() / kLeastStride;
    stretches_ = 0;
    begin_stretch(align_up(rows * places_[0].stride, kHugePage) >> kGranuleShift);
    covered_table_ = 0;
  }

  bool first_step() { return make_usable(stretch_[0], stretch_[0].begin + 1, end_of(0)) == Growth::kDone; }

  // --- stretches

  static constexpr std::size_t kLeastStride = 8;  // of all tables but the first, which has no gaps

  void begin_stretch(std::size_t row) {
    Stretch& s = stretch_[stretches_++];
    s = {};
    s.begin = s.top = static_cast<std::uint32_t>(row);
    s.end = static_cast<std::uint32_t>(rows_ - 1);
  }
  std::size_t end_of(unsigned i) const {
    const std::size_t end = stretch_[i].end;
    return i + 1 < stretches_ ? std::min(end, stretch_[i + 1].begin - wall_) : end;
  }
  std::size_t beyond_all() const {
    const Stretch& last = stretch_[stretches_ - 1];
    return std::max(last.top, *std::max_element(last.ready, last.ready + tables_ + 1));
  }
  bool untouched(const Stretch& s) const { return *std::max_element(s.ready, s.ready + tables_ + 1) == 0; }

  std::size_t aligned(std::size_t row, std::size_t alignment) const {
    const std::size_t bias = base_ >> kGranuleShift;
    return align_up(row + bias, alignment) - bias;
  }
  Spot within(std::size_t granules, std::size_t alignment, std::size_t most_gap) const {
    for (unsigned i = 0; i < stretches_; ++i) {
      const std::size_t row = aligned(stretch_[i].top, alignment);
      if (row - stretch_[i].top <= most_gap && row + granules <= end_of(i)) return {i, row};
    }
    return {};
  }

  // --- how far it is usable

  Growth make_usable(Stretch& s, std::size_t end, std::size_t most) {
    if (HZ_LIKELY(end <= s.usable)) return Growth::kDone;
    const std::size_t more = std::min((end - s.begin) / kStepShare, kLongestStep);
    const std::size_t step = std::min(std::bit_floor(end - s.begin), kStep);
    const std::size_t generous = std::min(align_up(end + more, step), most);
    return reach(s, generous) == Growth::kDone ? Growth::kDone : reach(s, end);
  }

  // The arena first, which is most of it.
  Growth reach(Stretch& s, std::size_t end) {
    const std::uint32_t before = s.ready[tables_];
    const Growth growth = extend(s, tables_, end);
    if (growth != Growth::kDone) return growth;
    bool done = cover(s, end);
    for (unsigned i = 1; i < tables_ && done; ++i) done = extend(s, i, end) == Growth::kDone;
    if (done) return s.usable = static_cast<std::uint32_t>(end), Growth::kDone;
    const std::uintptr_t from = at(before != 0 ? before : s.begin);
    if (!reserved_ && s.ready[tables_] != before && os::unmap(pointer(from), at(s.ready[tables_]) - from))
      s.ready[tables_] = before;
    return Growth::kRefused;
  }

  // Where the usable part of a table or of the arena begins, and where it ends.
  std::uintptr_t start_of(const Stretch& s, unsigned i) const {
    if (i == tables_) return at(s.begin);
    return (places_[i].at + (s.begin - 1) * places_[i].stride) & ~(os::page_bytes() - 1);
  }
  std::uintptr_t end_at(unsigned i, std::size_t row) const {
    return i == tables_ ? at(row) : align_up(places_[i].at + (row + 1) * places_[i].stride, os::page_bytes());
  }

  Growth extend(Stretch& s, unsigned i, std::size_t end) {
    if (end <= s.ready[i]) return Growth::kDone;
    const std::uintptr_t start = start_of(s, i);
    const std::uintptr_t from = s.ready[i] != 0 ? end_at(i, s.ready[i]) : start;
    const Growth growth = add(from, end_at(i, end), i == tables_ ? os::Use::kBlocks : os::Use::kTables);
    if (growth != Growth::kDone) return growth;
    if (i != tables_) keep_small(start, end_at(i, end));
    s.ready[i] = static_cast<std::uint32_t>(end);
    recorded();
    return Growth::kDone;
  }

  // The first table has no gaps, for any address may be looked up. What lies between stretches can be read
  // only, and so is not charged.
  bool cover(Stretch& s, std::size_t end) {
    if (end <= s.ready[0]) return true;
    const std::uintptr_t from = s.ready[0] != 0 ? end_at(0, s.ready[0]) : start_of(s, 0), to = end_at(0, end);
    if (from > base_ + covered_table_ && !add_cover(from, os::Use::kReading)) return false;
    const std::uintptr_t known = std::min(base_ + covered_table_, to);
    if (from < known && !os::commit(pointer(from), known - from)) return false;
    if (to > base_ + covered_table_ && !add_cover(to, os::Use::kTables)) return false;
    s.ready[0] = static_cast<std::uint32_t>(end);
    return true;
  }
  bool add_cover(std::uintptr_t to, os::Use use) {
    if (add(base_ + covered_table_, to, use) != Growth::kDone) return false;
    covered_table_ = to - base_;
    recorded();
    keep_small(base_, to);
    return true;
  }

  Growth add(std::uintptr_t from, std::uintptr_t to, os::Use use) {
    if (from >= to) return Growth::kDone;
    if (reserved_) return add_reserved(from, to - from);
    adding_from_ = from;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    adding_ = to - from;
    const os::Placed placed = os::extend(pointer(from), to - from, use);
    if (placed != os::Placed::kHere) recorded();
    return placed == os::Placed::kHere    ? Growth::kDone
           : placed == os::Placed::kTaken ? Growth::kTaken
                                          : Growth::kRefused;
  }
  // Returns true if a table or the arena ends there.
  bool is_recorded(std::uintptr_t end) const {
    if (base_ + covered_table_ == end) return true;
    for (unsigned i = 0; i < stretches_; ++i)
      for (unsigned table = 1; table <= tables_; ++table)
        if (stretch_[i].ready[table] != 0 && end_at(table, stretch_[i].ready[table]) == end) return true;
    return false;
  }
  // What add() mapped is in the plan, or was not mapped. A fork may come between any two stores of this
  // thread.
  void recorded() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    adding_ = 0;
  }
  // The system counts what is reserved; a limit is meant for what is used.
  Growth add_reserved(std::uintptr_t from, std::size_t bytes) {
    if (committed_ + bytes > os::address_space_limit() || !os::commit(pointer(from), bytes))
      return Growth::kRefused;
    committed_ += bytes;
    return Growth::kDone;
  }

  // No huge page in tables, once there is room for one.
  void keep_small(std::uintptr_t from, std::uintptr_t to) const {
    if (!reserved_ && align_up(from, kHugePage) + kHugePage <= to)
      os::forbid_huge_pages(pointer(from), to - from);
  }

  bool reserved_ = false;
  unsigned tables_ = 0;
  Place places_[kMostTables] = {};
  std::uintptr_t lowest_ = 0, base_ = 0;
  std::size_t rows_ = 0;
  std::size_t covered_table_ = 0;         // bytes of the first table that can be read
  std::size_t committed_ = 0;             // of what is reserved
  std::uintptr_t adding_from_ = 0;        // the mapping that add() is at, until it is recorded ...
  std::size_t adding_ = 0;                // ... and its bytes; 0: there is none
  std::size_t wall_ = 0;                  // rows between stretches
  std::size_t avoid_ = 0, distance_ = 0;  // no stretch begins before; how far to skip the next time
  unsigned stretches_ = 0;
  Stretch stretch_[kMostStretches] = {};
};

}  // namespace hz
