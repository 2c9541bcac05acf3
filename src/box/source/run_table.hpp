// SPDX-License-Identifier: Apache-2.0
//
// The arena's book of runs: one row per granule, free runs in lists by length, dirty and clean ones apart.
// Plain data under the arena's lock; knows nothing of addresses or the operating system.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace hz {

struct RunTable {
  // A spare run is room for the run in use before it: addresses that have no memory.
  enum class State : std::uint8_t { kNone = 0, kUsed, kFree, kSpare };

  struct Row {
    std::uint32_t length;  // first row of every run, last row of free ones
    // Rows of runs in use (the first kLabelledRows): the first one. First and last row of free runs that are
    // dirty in part: so many rows at that end are clean, at least, and need no second look.
    std::uint32_t head;
    // First row of free and of spare runs: its list; of held ones: a ring of those of one holder.
    std::uint32_t next, previous;
    std::uint32_t dirty;  // first row of free runs: how many granules are; of runs in use: its holder
    State state;          // first and last row of every run
    std::uint8_t backed;  // of free rows, and of the last one of a run in use: its first pages, which may
                          // have memory
    std::uint8_t hole;    // of the same rows: how many of its last pages are not mapped (holes.hpp)
    bool boundary : 1;    // rows of runs in use: a mapping begins here that is not the arena's
    bool claimed : 1;     // first row of a run in use: a thread is freeing it
  };
  struct List {
    std::uint32_t first = 0, last = 0;
  };

  static constexpr std::uint8_t kAllPages = kPagesPerGranule;

  // Lengths 1 to 32 have a list each, then four lists per doubling.
  static constexpr unsigned kExact = 32;
  static constexpr unsigned kLists = kExact + 4 * 27;
  // Only diagnosis asks inner rows for their first one; beyond 256 MiB it is not worth the writes.
  static constexpr std::size_t kLabelledRows = 4096;

  // A list for each length, and a bit for each list that has a run. A search reads these three words instead
  // of the heads of 140 lists.
  struct Lists {
    static constexpr unsigned kWords = (kLists + 63) / 64;

    List of[kLists];
    std::uint64_t filled[kWords] = {};

    void note(unsigned list) {
      const std::uint64_t bit = std::uint64_t{1} << list % 64;
      filled[list / 64] = of[list].first != 0 ? filled[list / 64] | bit : filled[list / 64] & ~bit;
    }
    // Returns the first list from `list` on that has a run; kLists if none has.
    unsigned from(unsigned list) const {
      static_assert(kLists % 64 != 0, "kLists itself has a word");
      unsigned word = list / 64;
      std::uint64_t rest = filled[word] >> list % 64 << list % 64;
      while (rest == 0) {
        if (++word == kWords) return kLists;
        rest = filled[word];
      }
      return word * 64 + static_cast<unsigned>(__builtin_ctzll(rest));
    }
    // Returns the last list that has a run; kLists if none has.
    unsigned last() const {
      for (unsigned word = kWords; word-- > 0;)
        if (filled[word] != 0) return word * 64 + log2_floor(filled[word]);
      return kLists;
    }
  };

  // Zero at first. Every row that is used, and its neighbours, can be read; row 0 is never used.
  Row* rows = nullptr;
  Lists dirty_runs, clean_runs;
  List spare_runs;
  // No free run holds `length` rows at a multiple of `alignment`. A search that found none says so, until a
  // run comes that does.
  struct Lacking {
    std::size_t length = ~std::size_t{0}, alignment = 1, bias = 0;

    // Alignments are powers of two.
    bool covers(std::size_t wanted, std::size_t multiple, std::size_t from) const {
      return wanted >= length && multiple >= alignment && from == bias;
    }
    void added(std::uint32_t row, std::size_t run) {
      if (run >= length && aligned(row, alignment, bias) + length <= row + run) *this = {};
    }
  };
  Lacking lacking, lacking_aligned;

  void open(void* table) { rows = static_cast<Row*>(table); }

  // How many rows of the run in use at `row`, from its row number `from`, lie in one mapping.
  std::size_t piece(std::uint32_t row, std::size_t from) const {
    std::size_t to = from + 1;
    while (to < rows[row].length && !rows[row + to].boundary) ++to;
    return to - from;
  }

  // Returns the first row from `row` on at a multiple of `alignment`, counted from `-bias`.
  static std::size_t aligned(std::uint32_t row, std::size_t alignment, std::size_t bias) {
    return align_up(row + bias, alignment) - bias;
  }
  static unsigned list_of(std::size_t length) {
    if (length <= kExact) return static_cast<unsigned>(length) - 1;
    const unsigned b = log2_floor(length);
    return kExact + (b - 5) * 4 + static_cast<unsigned>((length >> (b - 2)) & 3);
  }

  // A free run that holds `length` rows at a multiple of `alignment` (rows counted from `-bias`), split so
  // that it starts there; 0 if there is none. It stays in the table until use(). `pages`: so many pages of
  // the last row will be used.
  std::uint32_t find(std::size_t length, std::size_t alignment, std::size_t bias,
                     unsigned pages = kAllPages) {
    Lacking& note = alignment == 1 ? lacking : lacking_aligned;
    if (note.covers(length, alignment, alignment == 1 ? 0 : bias)) return 0;
    if (alignment == 1) {
      if (const std::uint32_t row = find_fitting(length, pages)) return row;
    }
    if (const std::uint32_t row = find_among(length, alignment, bias, kRuns)) return row;
    const std::uint32_t row = find_among(length, alignment, bias, ~0U);
    if (row == 0) note = {length, alignment, alignment == 1 ? 0 : bias};
    return row;
  }

  // Takes the first `length` rows of the free run at `row` into use; the rest stays free. How many were
  // dirty.
  std::size_t use(std::uint32_t row, std::size_t length) {
    if (rows[row].length != length) split(row, length);
    remove(row);
    const std::size_t dirty = rows[row].dirty;
    mark_used(row, length);
    rows[row].dirty = 0;
    return dirty;
  }

  void mark_used(std::uint32_t row, std::size_t length) {
    const std::size_t labelled = length < kLabelledRows ? length : kLabelledRows;
    for (std::size_t i = row; i < row + labelled; ++i) {
      rows[i].state = State::kUsed;
      rows[i].head = row;
    }
    rows[row + length - 1].state = State::kUsed;
    rows[row + length - 1].head = row;
    rows[row + length - 1].backed = kAllPages;
    rows[row].claimed = false;
    rows[row].length = static_cast<std::uint32_t>(length);
  }

  // The last row of the run in use at `row`; and that of a free run's first `length` rows, if it may be
  // backed.
  Row& last_of(std::uint32_t row) { return rows[row + rows[row].length - 1]; }
  std::uint8_t backed_of(std::uint32_t row, std::size_t length) const {
    return rows[row].dirty == 0 ? 0 : rows[row + length - 1].backed;
  }

  // Makes rows in use a spare run. Requires: a run in use stands right before it.
  void spare(std::uint32_t row, std::size_t length) {
    rows[row].state = rows[row + length - 1].state = State::kSpare;
    rows[row].length = static_cast<std::uint32_t>(length);
    link(spare_runs, row);
  }
  // Takes the first `length` rows of a spare run out of it, as rows in use that no run has.
  void use_spare(std::uint32_t row, std::size_t length) {
    const std::size_t whole = rows[row].length;
    unlink(spare_runs, row);
    rows[row].state = State::kUsed;
    if (length < whole) spare(row + static_cast<std::uint32_t>(length), whole - length);
  }
  // Returns the length of the spare run that begins at `row`; 0 if none does.
  std::size_t spare_at(std::uint32_t row) const {
    return rows[row].state == State::kSpare ? rows[row].length : 0;
  }

  // The run in use at `row` has `length` rows from now on: those behind it were a run in use until now.
  void join(std::uint32_t row, std::size_t length) {
    rows[row + rows[row].length].head = row;  // which mark_used does not reach in a very long one
    mark_used(row, length);
  }

  // Runs in use may have a holder, a number that is not 0; those of one holder are a ring. A run becomes one
  // of its own, or the next of `beside`, which has the same holder. The way forward is whole at any moment: a
  // child that was made meanwhile may find the way back cut.
  void hold(std::uint32_t row, std::uint32_t holder, std::uint32_t beside) {
    if (beside == 0) beside = rows[row].next = row;
    rows[row].dirty = holder;
    rows[row].next = rows[beside].next;
    rows[row].previous = beside;
    rows[beside].next = row;
    rows[rows[row].next].previous = row;
  }
  std::uint32_t holder(std::uint32_t row) const { return rows[row].dirty; }
  std::uint32_t next_held(std::uint32_t row) const { return rows[row].next; }
  void drop(std::uint32_t row) {
    if (rows[row].dirty == 0) return;
    rows[row].dirty = 0;
    rows[rows[row].next].previous = rows[row].previous;
    rows[rows[row].previous].next = rows[row].next;
  }

  // First row of the run in use around `row`, which was used once; 0 if there is none (or `row` lies far
  // inside of a very long one).
  std::uint32_t head_of(std::uint32_t row) const {
    if (rows[row].state != State::kUsed) return 0;
    const std::uint32_t head = rows[row].head;
    // The inner rows of free runs are stale, so the head has to agree: in use, a head itself, and long
    // enough.
    const bool agrees =
        rows[head].state == State::kUsed && rows[head].head == head && row - head < rows[head].length;
    return agrees ? head : 0;
  }

  // Rows in use become free, all of them dirty or none, and merge with free neighbours. The first row of that
  // run. Of the last one the pages stay as they are known.
  std::uint32_t give(std::uint32_t row, std::size_t length, std::size_t dirty) {
    const std::uint8_t last = rows[row + length - 1].backed;
    for (std::size_t i = row; i < row + length; ++i) {
      rows[i].backed = dirty != 0 ? kAllPages : 0;
      rows[i].boundary = false;
    }
    if (dirty != 0 && last != 0) rows[row + length - 1].backed = last;
    return merge(row, length, dirty, {});
  }

  // A run that was taken into use becomes free as it was: `dirty` of its rows are so, of the last one the
  // first `backed` pages.
  void put_back(std::uint32_t row, std::size_t dirty, std::uint8_t backed) {
    last_of(row).backed = backed;
    merge(row, rows[row].length, dirty, {});
  }

  // A run that was found and is not used after all becomes one with what it was split from.
  void leave(std::uint32_t row) {
    remove(row);
    merge(row, rows[row].length, rows[row].dirty, clean_ends(row));
  }

  // Returns how many of the first `length` rows of a free run are dirty. Cost: reads the shorter one of the
  // two parts, up to its last dirty row.
  std::size_t dirty_of(std::uint32_t row, std::size_t length) const {
    const std::size_t dirty = rows[row].dirty, whole = rows[row].length;
    const Ends clean = clean_ends(row);
    if (dirty == 0 || length >= whole - clean.back) return dirty;
    if (dirty == whole) return length;
    if (length <= clean.front) return 0;
    const bool counts_front = length <= whole / 2;
    const std::size_t from = counts_front ? clean.front : length;
    const std::size_t to = counts_front ? length : whole - clean.back;
    std::size_t count = 0;
    for (std::size_t i = from; i < to && count < dirty; ++i) count += rows[row + i].backed != 0 ? 1U : 0U;
    return counts_front ? count : dirty - count;
  }

  // Forgets all free runs, in whatever state they are: their rows look as if in use, without a user. The
  // first of two steps; the second is lose() for all rows that were ever used.
  void lose_lists() {
    dirty_runs = clean_runs = {};
    spare_runs = {};
    lacking = lacking_aligned = {};
  }
  void lose(std::size_t row) {
    if (rows[row].state != State::kFree && rows[row].state != State::kSpare) return;
    rows[row].state = State::kUsed;
    rows[row].head = rows[row].dirty = 0;
  }

  // Returns true if a dirty run holds so many rows. Among those of more than kExact rows it may miss one.
  bool has_dirty(std::size_t length) const {
    return dirty_runs.from(list_of(length) + (length > kExact ? 1 : 0)) != kLists;
  }

  // The dirty run that was freed longest ago, of the longest ones, behind `skipped` others; 0 if there is
  // none.
  std::uint32_t oldest_dirty(unsigned skipped = 0) const {
    const unsigned longest = dirty_runs.last();
    if (longest == kLists) return 0;
    for (unsigned list = longest + 1; list-- != 0;)
      for (std::uint32_t row = dirty_runs.of[list].last; row != 0; row = rows[row].previous)
        if (skipped-- == 0) return row;
    return 0;
  }

  // Splits a free run so that at most `most` of its rows, the first one or the last one dirty, are a run.
  // Returns the first row of that. Cost: reads clean rows only where neither end is known.
  std::uint32_t cut_dirty(std::uint32_t row, std::size_t most) {
    const Ends clean = clean_ends(row);
    const std::size_t end = rows[row].length - clean.back;
    if (rows[row + clean.front].backed == 0 && rows[row + end - 1].backed != 0) {
      std::size_t begin = end - 1;
      while (end - begin < most && rows[row + begin - 1].backed != 0) --begin;
      if (clean.back != 0) split(row, end);
      return split(row, begin);
    }
    while (rows[row + rows[row].head].backed == 0) ++rows[row].head;
    if (const std::size_t front = rows[row].head) row = split(row, front);
    if (rows[row].length > most) split(row, most);
    return row;
  }

 private:
  // How many rows at each end of a free run are clean, as far as that is known; of a clean run all of them.
  struct Ends {
    std::uint32_t front = 0, back = 0;
  };
  Ends clean_ends(std::uint32_t row) const {
    const std::uint32_t length = rows[row].length;
    if (rows[row].dirty == 0) return {length, length};
    return {rows[row].head, rows[row + length - 1].head};
  }
  // Those of two runs that become one.
  static Ends joined(Ends one, std::uint32_t length, Ends other, std::uint32_t others_length) {
    return {one.front == length ? length + other.front : one.front,
            other.back == others_length ? others_length + one.back : other.back};
  }

  // `clean`: of a run that is dirty.
  std::uint32_t merge(std::uint32_t row, std::size_t granules, std::size_t dirty, Ends clean) {
    rows[row].state = State::kFree;  // also when it becomes an inner row: see head_of
    auto length = static_cast<std::uint32_t>(granules);
    if (dirty == 0) clean = {length, length};
    if (const std::uint32_t after = row + length; rows[after].state == State::kFree) {
      remove(after);
      clean = joined(clean, length, clean_ends(after), rows[after].length);
      dirty += rows[after].dirty;
      length += rows[after].length;
    }
    if (rows[row - 1].state == State::kFree) {
      const std::uint32_t before = row - rows[row - 1].length;
      remove(before);
      clean = joined(clean_ends(before), rows[before].length, clean, length);
      dirty += rows[before].dirty;
      length += rows[before].length;
      row = before;
    }
    insert(row, length, dirty, clean);
    check(row);
    return row;
  }

  // A free run: its two ends agree, no free run touches it, no more dirty granules than granules.
  void check(std::uint32_t row) const {
    if constexpr (kDebug) {
      const std::size_t after = std::size_t{row} + rows[row].length;
      hz::check(rows[row].state == State::kFree && rows[after - 1].length == rows[row].length);
      hz::check(rows[after].state != State::kFree && rows[row - 1].state != State::kFree);
      hz::check(rows[row].dirty <= rows[row].length);
    }
  }

  void insert(std::uint32_t row, std::size_t length, std::size_t dirty, Ends clean) {
    rows[row].state = rows[row + length - 1].state = State::kFree;
    rows[row].length = rows[row + length - 1].length = static_cast<std::uint32_t>(length);
    rows[row].dirty = static_cast<std::uint32_t>(dirty);
    rows[row].head = clean.front;
    rows[row + length - 1].head = clean.back;
    lacking.added(row, length);
    lacking_aligned.added(row, length);
    Lists& lists = lists_for(row);
    link(lists.of[list_of(length)], row);
    lists.note(list_of(length));
  }

  Lists& lists_for(std::uint32_t row) { return rows[row].dirty != 0 ? dirty_runs : clean_runs; }

  void remove(std::uint32_t row) {
    Lists& lists = lists_for(row);
    const unsigned list = list_of(rows[row].length);
    unlink(lists.of[list], row);
    lists.note(list);
  }
  void link(List& list, std::uint32_t row) {
    rows[row].previous = 0;
    rows[row].next = list.first;
    (list.first != 0 ? rows[list.first].previous : list.last) = row;
    list.first = row;
  }
  void unlink(List& list, std::uint32_t row) {
    (rows[row].next != 0 ? rows[rows[row].next].previous : list.last) = rows[row].previous;
    (rows[row].previous != 0 ? rows[rows[row].previous].next : list.first) = rows[row].next;
  }

  // A list may hold many runs that are too short, or that have no multiple of the alignment. A search reads
  // so many of them before it goes on to longer ones.
  static constexpr unsigned kRuns = 16;

  // The same as find(), of the first `most` runs of each list.
  std::uint32_t find_among(std::size_t length, std::size_t alignment, std::size_t bias, unsigned most) {
    for (const Lists* lists : {&dirty_runs, &clean_runs}) {
      for (unsigned i = lists->from(list_of(length)); i != kLists; i = lists->from(i + 1)) {
        unsigned left = most;
        for (std::uint32_t row = lists->of[i].first; row != 0 && left != 0; row = rows[row].next, --left) {
          const std::size_t start = aligned(row, alignment, bias);
          if (start + length > row + std::size_t{rows[row].length}) continue;
          return start == row ? row : split(row, start - row);
        }
      }
    }
    return 0;
  }

  // A part of a dirty run, and by how many pages its last row differs from what is wanted.
  struct Fit {
    std::uint32_t run = 0, start = 0;
    unsigned differs = ~0U;
  };
  void compare(Fit& best, std::uint32_t run, std::size_t start, std::size_t length, unsigned pages) const {
    const unsigned backed = rows[start + length - 1].backed;
    const unsigned differs = backed < pages ? pages - backed : backed - pages;
    if (differs < best.differs) best = {run, static_cast<std::uint32_t>(start), differs};
  }
  // Returns an end of a dirty run whose last row has about as many pages with memory as will be used, split
  // so that it starts there; 0 if there is none. One that was a span with such a tail fits: no page behind
  // the last slot has to be purged, and none before it faults. Cost: reads up to kRuns runs.
  std::uint32_t find_fitting(std::size_t length, unsigned pages) {
    Fit best;
    unsigned seen = 0;
    for (unsigned i = dirty_runs.from(list_of(length)); i != kLists; i = dirty_runs.from(i + 1)) {
      for (std::uint32_t run = dirty_runs.of[i].first; run != 0; run = rows[run].next) {
        if (best.differs == 0 || seen++ == kRuns) return begun(best);
        if (rows[run].length < length) continue;
        compare(best, run, run, length, pages);
        compare(best, run, run + rows[run].length - length, length, pages);
      }
    }
    return begun(best);
  }
  std::uint32_t begun(const Fit& fit) {
    return fit.start == fit.run ? fit.run : split(fit.run, fit.start - fit.run);
  }

  // Splits a free run after `granules` rows; the second part's first row.
  std::uint32_t split(std::uint32_t row, std::size_t granules) {
    remove(row);
    const auto length = static_cast<std::uint32_t>(granules);
    const std::uint32_t rest = rows[row].length - length, second = row + length;
    const std::size_t dirty = rows[row].dirty, dirty_before = dirty_of(row, length);
    const Ends clean = clean_ends(row);
    insert(second, rest, dirty - dirty_before,
           {clean.front > length ? clean.front - length : 0, clean.back < rest ? clean.back : rest});
    insert(row, length, dirty_before,
           {clean.front < length ? clean.front : length, clean.back > rest ? clean.back - rest : 0});
    return second;
  }
};

}  // namespace hz
