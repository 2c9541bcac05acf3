// SPDX-License-Identifier: Apache-2.0
//
// Unmaps pages of the arena that no block needs, where the system refuses more addresses, and maps them again
// before they are used. These pages lie behind what a run in use will ever touch (a slot of 40 KiB leaves 24
// of its granule), or are free granules without memory. Limits of the system (`ulimit -v`, `ulimit -d`, the
// commit limit) count what is mapped, so a hole makes room for a run elsewhere.
// Called by: the arena, under its lock. Cost: a system call for each hole that is cut or filled; a process
// whose growth was never refused has none.
//
//   a row's `hole`: so many pages at the end of its granule are not mapped; all of them only in free runs
#pragma once

#include <algorithm>

#include "box/source/address_plan.hpp"
#include "box/source/run_table.hpp"

namespace hz {

class Holes {
 public:
  static constexpr std::size_t kCutAtOnce = 2 * kMiB >> kPageShift;  // pages, at least
  // A hole of a part of a granule costs the process a mapping. Linux allows 65,530 by default, and the
  // program needs some of them.
  static constexpr std::size_t kMostParts = 1U << 15;

  bool exist() const { return pages_ != 0; }

  // Unmaps the pages of `granules` granules, or more. `tails`: pages behind runs in use; `clean`: free
  // granules without memory; holes are among both. Returns false if that is too little, or the system
  // refuses.
  HZ_COLD bool cut(const AddressPlan& plan, RunTable& runs, std::size_t granules, std::size_t tails,
                   std::size_t clean) {
    const std::size_t wanted = granules * kPagesPerGranule;
    if (plan.reserved() || os::forbids_uncommitted()) return false;
    if (tails + clean * kPagesPerGranule < pages_ + wanted) return false;
    const std::size_t most = std::max(wanted, kCutAtOnce), before = pages_;
    cut_free_runs(plan, runs, before + most);
    cut_behind_runs(plan, runs, before + most);
    return pages_ != before;
  }

  // Maps the holes of the first `length` rows of a free run, but for one that begins behind the last row's
  // first `pages` pages. Returns kDone; otherwise nothing has changed.
  HZ_COLD AddressPlan::Growth fill(const AddressPlan& plan, RunTable& runs, std::uint32_t row,
                                   std::size_t length, unsigned pages) {
    const auto end = row + static_cast<std::uint32_t>(length);
    std::uint8_t& last = runs.rows[end - 1].hole;
    const std::uint8_t kept = last == kPagesPerGranule - pages ? last : std::uint8_t{0};
    if (kept != 0) last = 0;
    const AddressPlan::Growth growth = map_holes(plan, runs, row, end);
    for (std::uint32_t i = row; i < end && growth == AddressPlan::Growth::kDone; ++i)
      set_hole(runs.rows[i], 0);
    if (kept != 0) last = kept;
    return growth;
  }

  // Purges the mapped pages of some rows. Returns false if the system refuses.
  HZ_COLD static bool purge(const AddressPlan& plan, const RunTable& runs, std::uint32_t row,
                            std::size_t length) {
    bool done = true;
    for (Part part = {row, row}; next_mapped(runs, part, row + static_cast<std::uint32_t>(length));)
      done &= os::purge(pointer(plan.at(part.begin)), mapped_end(plan, runs, part) - plan.at(part.begin));
    return done;
  }

 private:
  struct Part {
    std::uint32_t begin, end;  // rows
  };

  // Finds the next rows behind `part` and before `end` whose mapped pages touch each other.
  static bool next_mapped(const RunTable& runs, Part& part, std::uint32_t end) {
    std::uint32_t begin = part.end;
    while (begin < end && runs.rows[begin].hole == kPagesPerGranule) ++begin;
    if (begin == end) return false;
    part = {begin, begin + 1};
    while (part.end < end && runs.rows[part.end - 1].hole == 0 &&
           runs.rows[part.end].hole != kPagesPerGranule)
      ++part.end;
    return true;
  }
  static std::uintptr_t mapped_end(const AddressPlan& plan, const RunTable& runs, const Part& part) {
    return hole_at(plan, runs, part.end - 1);
  }
  // The same of rows whose holes touch each other.
  static bool next_hole(const RunTable& runs, Part& part, std::uint32_t end) {
    std::uint32_t begin = part.end;
    while (begin < end && runs.rows[begin].hole == 0) ++begin;
    if (begin == end) return false;
    part = {begin, begin + 1};
    while (part.end < end && runs.rows[part.end].hole == kPagesPerGranule) ++part.end;
    return true;
  }
  static std::uintptr_t hole_at(const AddressPlan& plan, const RunTable& runs, std::uint32_t row) {
    return plan.at(row + 1) - (std::size_t{runs.rows[row].hole} << kPageShift);
  }

  AddressPlan::Growth map_holes(const AddressPlan& plan, const RunTable& runs, std::uint32_t row,
                                std::uint32_t end) {
    for (Part part = {row, row}; next_hole(runs, part, end);) {
      const std::uintptr_t from = hole_at(plan, runs, part.begin);
      const os::Placed placed = os::extend(pointer(from), plan.at(part.end) - from);
      if (placed == os::Placed::kHere) continue;
      for (Part mapped = {row, row}; next_hole(runs, mapped, part.begin);) {
        const std::uintptr_t at = hole_at(plan, runs, mapped.begin);
        os::unmap(pointer(at), plan.at(mapped.end) - at);
      }
      return placed == os::Placed::kTaken ? AddressPlan::Growth::kTaken : AddressPlan::Growth::kRefused;
    }
    return AddressPlan::Growth::kDone;
  }

  // The longest runs first, until there are `most` pages of holes.
  void cut_free_runs(const AddressPlan& plan, RunTable& runs, std::size_t most) {
    for (unsigned list = RunTable::kLists; list-- != 0;)
      for (std::uint32_t row = runs.clean_runs.of[list].first; row != 0; row = runs.rows[row].next)
        for (Part part = {row, row}; pages_ < most && next_mapped(runs, part, row + runs.rows[row].length);) {
          const std::size_t wanted = (most - pages_ + kPagesPerGranule - 1) / kPagesPerGranule;
          if (part.end - part.begin > wanted) part.end = part.begin + static_cast<std::uint32_t>(wanted);
          const std::uintptr_t from = plan.at(part.begin), to = mapped_end(plan, runs, part);
          if (!os::unmap(pointer(from), to - from))
            return;  // a child that sees this half done loses free runs
          for (std::uint32_t i = part.begin; i < part.end; ++i) set_hole(runs.rows[i], kPagesPerGranule);
        }
  }

  // From the row on where the last call ended, once around, until there are `most` pages of holes.
  void cut_behind_runs(const AddressPlan& plan, RunTable& runs, std::size_t most) {
    const std::uint32_t start = cursor_;
    for (const bool before : {false, true})
      for (unsigned i = 0; i < plan.stretches(); ++i) {
        const AddressPlan::Stretch& s = plan.stretch(i);
        const std::uint32_t end = before ? std::min(s.top, start) : s.top;
        for (cursor_ = before ? s.begin : std::max(s.begin, start); cursor_ < end; ++cursor_)
          if (pages_ >= most || parts_ >= kMostParts || !cut_behind(plan, runs, cursor_)) return;
      }
  }
  // Returns false if the system refuses.
  bool cut_behind(const AddressPlan& plan, RunTable& runs, std::uint32_t row) {
    RunTable::Row& last = runs.rows[row];
    const std::uint32_t head = runs.head_of(row);
    if (head == 0 || row - head + 1 != runs.rows[head].length || last.hole != 0) return true;
    const unsigned tail = kPagesPerGranule - last.backed;
    if (tail == 0) return true;
    set_hole(last, tail);  // first: the child of a fork may see this half done
    const bool done = os::unmap(pointer(hole_at(plan, runs, row)), tail << kPageShift);
    if (!done) set_hole(last, 0);
    return done;
  }

  void set_hole(RunTable::Row& row, unsigned pages) {
    const auto is_part = [](unsigned hole) { return hole % kPagesPerGranule != 0 ? 1U : 0U; };
    pages_ = pages_ + pages - row.hole;
    parts_ = parts_ + is_part(pages) - is_part(row.hole);
    row.hole = static_cast<std::uint8_t>(pages);
  }

  std::size_t pages_ = 0;  // of all holes
  std::size_t parts_ = 0;  // holes that are parts of granules
  std::uint32_t cursor_ = 0;
};

}  // namespace hz
