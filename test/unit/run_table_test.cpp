// SPDX-License-Identifier: Apache-2.0
//
// The book of runs against a model that colours every row.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "box/source/run_table.hpp"
#include "unit/region.hpp"

namespace hz_test {
namespace {

using hz::RunTable;

class RunTableTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kFirst = 7;
  static constexpr std::uint32_t kEnd = 3000;
  enum class Colour : char { kNever, kUsed, kClean, kDirty };

  RunTableTest()
      : memory_((kEnd + 1) * sizeof(RunTable::Row)),
        table_(std::make_unique<RunTable>()),
        rows_(kEnd, Colour::kNever) {
    table_->open(memory_.bytes());
  }

  // As the arena does it: from the free runs, or from the top.
  std::uint32_t Acquire(std::uint32_t length, std::uint32_t alignment, std::size_t bias) {
    std::uint32_t row = table_->find(length, alignment, bias);
    if (row != 0) {
      std::size_t dirty = 0;
      for (std::uint32_t i = row; i < row + length; ++i) {
        EXPECT_TRUE(rows_[i] == Colour::kClean || rows_[i] == Colour::kDirty)
            << "row " << i << " is not free";
        dirty += rows_[i] == Colour::kDirty ? 1 : 0;
      }
      EXPECT_EQ(dirty, table_->use(row, length));
    } else {
      if (top_ + length > kEnd || alignment != 1) return 0;
      row = top_;
      top_ += length;
      table_->mark_used(row, length);
    }
    EXPECT_EQ(0u, (row + bias) % alignment);
    Paint(row, length, Colour::kUsed);
    used_[row] = length;
    return row;
  }

  void Release(std::uint32_t row, bool dirty) {
    const std::uint32_t length = used_[row];
    used_.erase(row);
    table_->give(row, length, dirty ? length : 0);
    Paint(row, length, dirty ? Colour::kDirty : Colour::kClean);
  }

  // At most so many rows, of the oldest dirty run. The first of them; 0 if nothing is dirty.
  std::uint32_t Purge(std::size_t most) {
    const std::uint32_t oldest = table_->oldest_dirty();
    if (oldest == 0) return 0;
    const std::uint32_t row = table_->cut_dirty(oldest, most), length = table_->rows[row].length;
    EXPECT_LE(length, most);
    std::size_t dirty = 0;
    for (std::uint32_t i = row; i < row + length; ++i) dirty += rows_[i] == Colour::kDirty ? 1 : 0;
    EXPECT_NE(0u, dirty);
    EXPECT_EQ(dirty, table_->use(row, length));
    table_->give(row, length, 0);
    Paint(row, length, Colour::kClean);
    return row;
  }

  void Paint(std::uint32_t row, std::uint32_t length, Colour colour) {
    for (std::uint32_t i = row; i < row + length; ++i) rows_[i] = colour;
  }

  static bool Free(Colour colour) { return colour == Colour::kClean || colour == Colour::kDirty; }

  std::set<std::uint32_t> Listed(const RunTable::Lists& lists, bool dirty) const {
    std::set<std::uint32_t> runs;
    unsigned last = RunTable::kLists;
    for (unsigned i = 0; i < RunTable::kLists; ++i) {
      std::uint32_t previous = 0;
      if (lists.of[i].first != 0) last = i;
      EXPECT_EQ(lists.of[i].first != 0, lists.from(i) == i);
      for (std::uint32_t row = lists.of[i].first; row != 0; row = table_->rows[row].next) {
        EXPECT_EQ(i, RunTable::list_of(table_->rows[row].length));
        EXPECT_EQ(previous, table_->rows[row].previous);
        EXPECT_EQ(dirty, table_->rows[row].dirty != 0);
        EXPECT_TRUE(runs.insert(row).second);
        previous = row;
      }
      EXPECT_EQ(previous, lists.of[i].last);
    }
    EXPECT_EQ(last, lists.last());
    return runs;
  }

  // Maximal runs of free rows are exactly the runs in the lists, with length and dirty count.
  void ExpectAgreement() const {
    std::set<std::uint32_t> dirty_runs;
    std::set<std::uint32_t> clean_runs;
    for (std::uint32_t row = kFirst; row < top_;) {
      if (!Free(rows_[row])) {
        ++row;
        continue;
      }
      std::uint32_t length = 0;
      std::uint32_t dirty = 0;
      for (; row + length < top_ && Free(rows_[row + length]); ++length) {
        dirty += rows_[row + length] == Colour::kDirty ? 1 : 0;
      }
      ASSERT_EQ(length, table_->rows[row].length) << "not merged at " << row;
      ASSERT_EQ(length, table_->rows[row + length - 1].length);
      ASSERT_EQ(dirty, table_->rows[row].dirty);
      if (dirty != 0) {
        const std::uint32_t last = row + length - 1;
        for (std::uint32_t i = row; i < row + table_->rows[row].head; ++i)
          ASSERT_EQ(Colour::kClean, rows_[i]) << i << " of " << row;
        for (std::uint32_t i = last; i > last - table_->rows[last].head; --i)
          ASSERT_EQ(Colour::kClean, rows_[i]) << i << " of " << row;
      }
      ASSERT_LT(length, table_->lacking.length);
      (dirty != 0 ? dirty_runs : clean_runs).insert(row);
      row += length;
    }
    ASSERT_EQ(dirty_runs, Listed(table_->dirty_runs, true));
    ASSERT_EQ(clean_runs, Listed(table_->clean_runs, false));
    for (const auto& [row, length] : used_) ASSERT_EQ(length, table_->rows[row].length);
  }

  void ExpectHeads() const {
    for (std::uint32_t row = 0; row < kEnd; ++row) {
      std::uint32_t head = 0;
      auto after = used_.upper_bound(row);
      if (after != used_.begin() && row < std::prev(after)->first + std::prev(after)->second)
        head = std::prev(after)->first;
      ASSERT_EQ(head, table_->head_of(row)) << row;
    }
  }

  std::uint32_t top_ = kFirst;  // never used from here on
  Region memory_;
  std::unique_ptr<RunTable> table_;
  std::vector<Colour> rows_;
  std::map<std::uint32_t, std::uint32_t> used_;  // first row, length
};

TEST_F(RunTableTest, ListsPartitionAllLengths) {
  unsigned before = 0;
  for (std::size_t length = 1; length < (std::size_t{1} << 32); length += 1 + length / 1000) {
    const unsigned list = RunTable::list_of(length);
    ASSERT_GE(list, before) << length;
    ASSERT_LE(list, before + 1) << length;
    ASSERT_LT(list, RunTable::kLists) << length;
    before = list;
  }
}

TEST_F(RunTableTest, EmptyHasNothing) {
  EXPECT_EQ(0u, table_->find(1, 1, 0));
  EXPECT_EQ(0u, table_->oldest_dirty());
  EXPECT_EQ(0u, table_->head_of(kFirst));
}

TEST_F(RunTableTest, DirtyRunsAreFoundFirst) {
  const std::uint32_t a = Acquire(4, 1, 0);
  Acquire(1, 1, 0);
  const std::uint32_t b = Acquire(9, 1, 0);
  Acquire(1, 1, 0);
  Release(a, false);
  Release(b, true);
  EXPECT_EQ(b, table_->find(4, 1, 0)) << "no page fault there";
  EXPECT_EQ(b, table_->oldest_dirty());
}

TEST_F(RunTableTest, ARunIsFoundByThePagesOfItsLastRow) {
  // Three spans with tails of 4, 1 and no pages, and one of two rows, with used rows between them.
  const std::uint32_t runs[] = {Acquire(1, 1, 0), Acquire(1, 1, 0), Acquire(1, 1, 0), Acquire(1, 1, 0),
                                Acquire(1, 1, 0), Acquire(1, 1, 0), Acquire(2, 1, 0), Acquire(1, 1, 0)};
  table_->last_of(runs[0]).backed = 12;
  table_->last_of(runs[2]).backed = 15;
  table_->last_of(runs[6]).backed = 14;
  for (const unsigned i : {0U, 2U, 4U, 6U}) Release(runs[i], true);
  ExpectAgreement();
  EXPECT_EQ(runs[0], table_->find(1, 1, 0, 12));
  EXPECT_EQ(runs[2], table_->find(1, 1, 0, 15));
  EXPECT_EQ(runs[4], table_->find(1, 1, 0));
  EXPECT_EQ(runs[0], table_->find(1, 1, 0, 9)) << "the nearest";
  EXPECT_EQ(runs[6], table_->find(2, 1, 0)) << "the only one of that length";
  EXPECT_EQ(runs[6] + 1, table_->find(1, 1, 0, 14)) << "the end of a longer run";
  EXPECT_EQ(1u, table_->use(runs[6] + 1, 1));
  Paint(runs[6] + 1, 1, Colour::kUsed);
  used_[runs[6] + 1] = 1;
  ExpectAgreement();
  Release(runs[6] + 1, true);
  ExpectAgreement();
}

TEST_F(RunTableTest, NeighboursMergeOnBothSides) {
  const std::uint32_t a = Acquire(3, 1, 0);
  const std::uint32_t b = Acquire(4, 1, 0);
  const std::uint32_t c = Acquire(5, 1, 0);
  Acquire(1, 1, 0);
  Release(a, true);
  Release(c, false);
  ExpectAgreement();
  Release(b, true);
  ExpectAgreement();
  EXPECT_EQ(12u, table_->rows[a].length);
  EXPECT_EQ(7u, table_->rows[a].dirty);
  EXPECT_EQ(a, table_->find(12, 1, 0));
  EXPECT_EQ(0u, table_->find(13, 1, 0));
}

TEST_F(RunTableTest, RandomAgainstTheModel) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    std::mt19937 random(seed);
    const std::size_t bias = random() % 1000;
    for (int step = 0; step < 4000; ++step) {
      if (used_.empty() || random() % 100 < 52) {
        const auto length =
            static_cast<std::uint32_t>(1 + (random() % 8 == 0 ? random() % 200 : random() % 12));
        const std::uint32_t alignment = random() % 5 == 0 ? 1u << random() % 6 : 1u;
        Acquire(length, alignment, bias);
      } else {
        auto at = used_.lower_bound(static_cast<std::uint32_t>(random() % kEnd));
        Release((at == used_.end() ? used_.begin() : at)->first, random() % 2 == 0);
        if (random() % 3 == 0) Purge(1 + random() % 20);
      }
      if (step % 20 == 0) ExpectAgreement();
      if (step % 500 == 0) ExpectHeads();
      if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
    while (!used_.empty()) Release(used_.begin()->first, random() % 2 == 0);
    ExpectAgreement();
    EXPECT_EQ(top_ - kFirst, table_->rows[kFirst].length) << "all of it is one run again";
  }
}

// Or each step would walk over what all before it have purged.
TEST_F(RunTableTest, APurgeInStepsKnowsWhereItWas) {
  constexpr std::uint32_t kLength = 2000, kStep = 10;
  const std::uint32_t first = Acquire(kLength, 1, 0);
  ASSERT_NE(0u, Acquire(1, 1, 0));  // what lies behind is not free
  Release(first, true);
  for (std::uint32_t purged = 0; purged < kLength; purged += kStep) {
    EXPECT_EQ(first, table_->oldest_dirty());
    EXPECT_EQ(purged, table_->rows[first].head);
    const std::uint32_t row = table_->cut_dirty(first, kStep);
    EXPECT_EQ(first + purged, row);
    EXPECT_EQ(kStep, table_->use(row, kStep));
    table_->give(row, kStep, 0);
    Paint(row, kStep, Colour::kClean);
    ExpectAgreement();
  }
  EXPECT_EQ(0u, table_->oldest_dirty());
}

// Or each purge would read the clean rows between the two ends: blocks that are freed from the last to the
// first leave such a run.
TEST_F(RunTableTest, APurgeBeginsAtTheEndThatIsKnown) {
  constexpr std::uint32_t kBlock = 100, kBlocks = 10, kStep = 25;
  std::vector<std::uint32_t> blocks(kBlocks);
  for (std::uint32_t& block : blocks) block = Acquire(kBlock, 1, 0);
  ASSERT_NE(0u, Acquire(1, 1, 0));
  Release(blocks.back(), true);
  for (unsigned i = 1; i < kBlocks - 1; ++i) Release(blocks[i], false);
  Release(blocks.front(), true);
  const std::uint32_t first = blocks.front(), end = blocks.back() + kBlock;
  for (std::uint32_t purged = 0; purged < kBlock; purged += kStep) {
    ASSERT_EQ(first + purged, Purge(kStep)) << "the front, which is dirty";
    ExpectAgreement();
  }
  EXPECT_EQ(kBlock, table_->rows[first].dirty);
  EXPECT_EQ(kBlock, table_->rows[first].head) << "what lies behind was not read";
  for (std::uint32_t purged = kStep; purged < kBlock; purged += kStep) {
    ASSERT_EQ(end - purged, Purge(kStep)) << "the end, which is dirty";
    EXPECT_EQ(purged, table_->rows[end - 1].head);
    EXPECT_EQ(kBlock, table_->rows[first].head);
    ExpectAgreement();
  }
}

// A list beyond 32 rows holds runs of several lengths. What no run holds is not sought again until a longer
// one comes.
TEST_F(RunTableTest, WhatIsLackingIsSoughtOnce) {
  constexpr std::uint32_t kShort = 68, kLong = 69, kRuns = 20;
  static_assert(RunTable::kExact < kShort);
  ASSERT_EQ(RunTable::list_of(kShort), RunTable::list_of(kLong));
  std::vector<std::uint32_t> runs(kRuns);
  for (std::uint32_t& run : runs) {
    run = Acquire(kShort, 1, 0);
    ASSERT_NE(0u, Acquire(1, 1, 0));
  }
  const std::uint32_t longer = Acquire(kLong, 1, 0);
  ASSERT_NE(0u, Acquire(1, 1, 0));
  Release(longer, false);
  for (const std::uint32_t run : runs) Release(run, false);
  EXPECT_EQ(longer, table_->find(kLong, 1, 0)) << "behind more runs than a first search reads";
  EXPECT_EQ(0u, table_->find(kLong + 1, 1, 0));
  EXPECT_EQ(kLong + 1, table_->lacking.length);
  EXPECT_EQ(longer, table_->find(kLong, 1, 0));
  table_->use(longer, kLong);
  EXPECT_EQ(0u, table_->find(kLong, 1, 0));
  EXPECT_EQ(kLong, table_->lacking.length);
  table_->give(longer, kLong, 0);
  EXPECT_LT(kLong, table_->lacking.length);
  EXPECT_EQ(longer, table_->find(kLong, 1, 0));
}

// A run that is long enough, but holds no multiple of the alignment, is not read again either.
TEST_F(RunTableTest, AnAlignedPlaceThatIsLackingIsSoughtOnce) {
  constexpr std::uint32_t kRows = 4, kAlignment = 4;
  while (Acquire(1, 1, 0) % kAlignment != 0) continue;
  const std::uint32_t run = Acquire(kRows, 1, 0);
  const std::uint32_t behind = Acquire(3, 1, 0);
  ASSERT_EQ(run + kRows, behind);
  ASSERT_NE(0u, Acquire(1, 1, 0));
  Release(run, false);
  EXPECT_EQ(0u, table_->find(kRows, kAlignment, 0));
  EXPECT_TRUE(table_->lacking_aligned.covers(kRows, 2 * kAlignment, 0));
  EXPECT_FALSE(table_->lacking_aligned.covers(kRows, kAlignment / 2, 0));
  EXPECT_FALSE(table_->lacking_aligned.covers(kRows, kAlignment, 1));
  Release(behind, false);
  EXPECT_FALSE(table_->lacking_aligned.covers(kRows, kAlignment, 0)) << "seven rows hold one";
  EXPECT_EQ(run + 3, table_->find(kRows, kAlignment, 0));
}

// Of very long runs only the first rows are labelled: what others left in the rest is no answer.
TEST(RunTableOfManyRows, NoRowInsideOfARunIsAHeadOfItsOwn) {
  constexpr std::uint32_t kLong = RunTable::kLabelledRows + 10, kFirst = 7, kLast = kFirst + kLong - 1;
  const Region memory((kLong + 30) * sizeof(RunTable::Row));
  const auto table = std::make_unique<RunTable>();
  table->open(memory.bytes());
  table->mark_used(kFirst, kLong - 1);
  table->mark_used(kLast, 1);
  table->mark_used(kLast + 1, 5);
  EXPECT_EQ(kLast, table->head_of(kLast));

  table->give(kFirst, kLong - 1, kLong - 1);
  table->give(kLast, 1, 1);
  EXPECT_EQ(kLong, table->use(kFirst, kLong));
  EXPECT_EQ(kFirst, table->head_of(kLast)) << "it was a run once";

  table->join(kFirst, kLong + 5);
  EXPECT_EQ(kFirst, table->head_of(kLast + 1)) << "it was a run until the one before grew";
  EXPECT_EQ(0u, table->head_of(kLast + 2)) << "far inside";
  EXPECT_EQ(kFirst, table->head_of(kLast + 5));
  table->give(kFirst, kLong + 5, 0);
  for (const std::uint32_t row : {kFirst, kLast, kLast + 1, kLast + 5}) EXPECT_EQ(0u, table->head_of(row));
}

TEST_F(RunTableTest, TheOldestOfTheLongestIsPurgedFirst) {
  std::vector<std::uint32_t> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(Acquire(i == 3 ? 6 : 3, 1, 0));
    Acquire(1, 1, 0);
  }
  for (std::uint32_t row : runs) Release(row, true);
  for (std::uint32_t expected : {runs[3], runs[0], runs[1], runs[2]}) {
    const std::uint32_t row = table_->oldest_dirty();
    ASSERT_EQ(expected, row);
    table_->use(row, table_->rows[row].length);
  }
  EXPECT_EQ(0u, table_->oldest_dirty());
}

// What the system refused to purge is as before, and others are purged meanwhile.
TEST_F(RunTableTest, ARunThatIsPutBackIsAsItWas) {
  const std::uint32_t long_one = Acquire(10, 1, 0);
  Acquire(1, 1, 0);
  const std::uint32_t other = Acquire(3, 1, 0);
  Acquire(1, 1, 0);
  Release(long_one, true);
  Release(other, true);
  EXPECT_EQ(4u, table_->use(long_one, 4));
  table_->give(long_one, 4, 0);
  Paint(long_one, 4, Colour::kClean);
  ExpectAgreement();

  const std::uint8_t backed = table_->backed_of(long_one, 10);
  EXPECT_EQ(6u, table_->use(long_one, 10));
  EXPECT_EQ(other, table_->oldest_dirty()) << "the other one is in use";
  table_->put_back(long_one, 6, backed);
  ExpectAgreement();
  EXPECT_EQ(6u, table_->rows[long_one].dirty);
  EXPECT_EQ(0u, table_->dirty_of(long_one, 4)) << "its first rows are clean still";
  EXPECT_EQ(long_one, table_->oldest_dirty());
  EXPECT_EQ(other, table_->oldest_dirty(1));
  EXPECT_EQ(0u, table_->oldest_dirty(2));
}

}  // namespace
}  // namespace hz_test
