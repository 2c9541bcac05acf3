// SPDX-License-Identifier: Apache-2.0
//
// The contract of a source: runs of granules.
#include "box/source/contract.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "contract/source_boxes.hpp"
#include "os/os.hpp"
#include "support/fork.hpp"
#include "support/pattern.hpp"
#include "support/raw_fork.hpp"
#include "support/sanitizers.hpp"

namespace hz_test {
namespace {

using hz::kGranule;

template <class S>
class SourceContract : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(S::open(source_, kTableShapes, kTables)); }
  void TearDown() override { S::close(source_); }

  hz::Run Acquire(std::size_t granules, std::size_t alignment = 1) {
    return S::acquire(source_, granules, alignment);
  }
  static char* At(const hz::Run& run) { return static_cast<char*>(hz::pointer(run.at)); }

  typename S::Global source_;
};
TYPED_TEST_SUITE(SourceContract, SourceBoxes);

TYPED_TEST(SourceContract, RunsLieWithinAndApartFromTheTables) {
  const std::uintptr_t base = TypeParam::base(this->source_);
  const std::size_t bytes = TypeParam::bytes(this->source_);
  EXPECT_EQ(0u, base % kGranule);
  EXPECT_EQ(base, TypeParam::table(this->source_, 0)) << "where the route looks for it";
  const hz::Run run = this->Acquire(3);
  ASSERT_NE(0u, run.at);
  EXPECT_EQ(0u, run.at % kGranule);
  EXPECT_GE(run.at, base);
  EXPECT_LE(run.at + 3 * kGranule, base + bytes);
  for (unsigned i = 0; i < kTables; ++i) {
    const std::uintptr_t table = TypeParam::table(this->source_, i);
    const std::size_t row_bytes = kTableShapes[i].row_bytes;
    EXPECT_TRUE(run.at >= table + bytes / kGranule * row_bytes || run.at + 3 * kGranule <= table);
    const std::uintptr_t rows = table + (run.at - base) / kGranule * row_bytes;
    EXPECT_TRUE(IsZero(hz::pointer(rows), 3 * row_bytes));
    std::memset(hz::pointer(rows), 1, 3 * row_bytes);
    if (i > 1) {
      EXPECT_EQ(table,
                TypeParam::table(this->source_, i - 1) + bytes / kGranule * kTableShapes[i - 1].row_bytes)
          << "side by side";
    }
  }
}

// The runs of a ring, which are dropped, but the one, and held again.
template <class S>
std::set<std::uintptr_t> Ring(typename S::Global& source, std::uintptr_t from) {
  std::set<std::uintptr_t> ring = {from};
  std::vector<hz::HeldRun> dropped;
  for (hz::HeldRun next; (next = S::drop_next(source, from)).at != 0;) {
    EXPECT_TRUE(ring.insert(next.at).second);
    EXPECT_EQ(S::holder(source, from), next.holder);
    EXPECT_EQ(0u, S::holder(source, next.at));
    dropped.push_back(next);
  }
  for (const hz::HeldRun& run : dropped) S::hold(source, run.at, run.holder, from);
  return ring;
}

TYPED_TEST(SourceContract, RunsOfOneHolderAreARing) {
  auto& source = this->source_;
  const std::uintptr_t mine = this->Acquire(1).at, another = this->Acquire(2).at, third = this->Acquire(3).at,
                       others = this->Acquire(1).at, free = this->Acquire(1).at;
  EXPECT_EQ(0u, TypeParam::holder(source, mine));
  TypeParam::hold(source, mine, 7, 0);
  TypeParam::hold(source, others, 8, 0);
  EXPECT_EQ(std::set{mine}, Ring<TypeParam>(source, mine));
  TypeParam::hold(source, another, 7, mine);
  TypeParam::join(source, third, another);
  TypeParam::join(source, free, this->Acquire(1).at);
  EXPECT_EQ(0u, TypeParam::holder(source, free)) << "beside one of nobody";
  EXPECT_EQ(7u, TypeParam::holder(source, third));
  EXPECT_EQ(8u, TypeParam::holder(source, others));
  EXPECT_EQ((std::set{mine, another, third}), Ring<TypeParam>(source, third));
  ASSERT_TRUE(TypeParam::resize(source, third, 2));
  EXPECT_EQ((std::set{mine, another, third}), Ring<TypeParam>(source, mine)) << "whatever its length";
  TypeParam::release(source, another, false);
  EXPECT_EQ((std::set{mine, third}), Ring<TypeParam>(source, mine));
  TypeParam::drop(source, mine);
  TypeParam::drop(source, mine);
  EXPECT_EQ(0u, TypeParam::holder(source, mine));
  EXPECT_EQ(std::set{third}, Ring<TypeParam>(source, third));
  const std::uintptr_t again = this->Acquire(2).at;
  EXPECT_EQ(another, again);
  EXPECT_EQ(0u, TypeParam::holder(source, again)) << "a run begins without";
}

std::size_t told;

// Whoever is given memory may look it up, and anything may be looked up: the first table has no hole.
TYPED_TEST(SourceContract, TheFirstTableCoversWhatIsGiven) {
  told = 0;
  TypeParam::tell(this->source_, [](std::size_t bytes) {
    EXPECT_GE(bytes, told) << "it only grows";
    told = bytes;
  });
  const std::uintptr_t base = TypeParam::base(this->source_);
  for (const std::size_t granules : {1, 63, 64, 65, 3000, 1, 70000}) {
    for (const std::size_t alignment : {1, 16 * 1024}) {
      const std::uintptr_t run = this->Acquire(granules, alignment).at;
      ASSERT_NE(0u, run);
      EXPECT_LE(run + granules * kGranule, base + told) << granules;
    }
  }
  const auto* table = static_cast<const unsigned char*>(hz::pointer(base));
  for (std::size_t row = 0; row < told / kGranule; ++row) ASSERT_EQ(0, table[row]) << row;
  for (std::size_t at = 0; at < told; at += 777 * kGranule) TypeParam::start(this->source_, base + at);
}

TYPED_TEST(SourceContract, ZeroedIsTheTruth) {
  const hz::Run run = this->Acquire(4);
  ASSERT_TRUE(run.zeroed) << "memory that nobody had";
  ASSERT_TRUE(IsZero(this->At(run), 4 * kGranule));
  FillPattern(this->At(run), 4 * kGranule, 1);
  TypeParam::release(this->source_, run.at, false);
  for (int i = 0; i < 4; ++i) {
    const hz::Run again = this->Acquire(1);
    EXPECT_TRUE(!again.zeroed || IsZero(this->At(again), kGranule));
  }
}

TYPED_TEST(SourceContract, AlignmentIsKept) {
  for (std::size_t alignment = 1; alignment <= 16 * 1024; alignment *= 2) {
    const hz::Run run = this->Acquire(3, alignment);
    ASSERT_NE(0u, run.at);
    EXPECT_EQ(0u, run.at % (alignment * kGranule)) << alignment;
    FillPattern(this->At(run), 3 * kGranule, alignment);
  }
}

TYPED_TEST(SourceContract, KnowsLengthAndStart) {
  const hz::Run a = this->Acquire(5);
  const hz::Run b = this->Acquire(1);
  EXPECT_EQ(5u, TypeParam::granules(this->source_, a.at));
  EXPECT_EQ(1u, TypeParam::granules(this->source_, b.at));
  for (std::size_t at : {std::size_t{0}, std::size_t{1}, kGranule, 3 * kGranule + 77, 5 * kGranule - 1}) {
    EXPECT_EQ(a.at, TypeParam::start(this->source_, a.at + at)) << at;
  }
  EXPECT_EQ(b.at, TypeParam::start(this->source_, b.at + 100));
  TypeParam::release(this->source_, a.at, false);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(0u, TypeParam::start(this->source_, a.at + i * kGranule)) << i;
  EXPECT_EQ(0u, TypeParam::start(this->source_, TypeParam::base(this->source_)));
}

TYPED_TEST(SourceContract, DirtyUntilPurgedOrFresh) {
  const hz::Run a = this->Acquire(6);
  const hz::Run b = this->Acquire(2);
  EXPECT_EQ(0u, TypeParam::dirty_bytes(this->source_));
  FillPattern(this->At(a), 6 * kGranule, 1);
  TypeParam::release(this->source_, a.at, false);
  EXPECT_EQ(6 * kGranule, TypeParam::dirty_bytes(this->source_));
  TypeParam::release(this->source_, b.at, true);
  EXPECT_EQ(6 * kGranule, TypeParam::dirty_bytes(this->source_));
  EXPECT_EQ(0u, TypeParam::purge(this->source_, 6 * kGranule, SIZE_MAX)) << "that much may stay";
  EXPECT_GE(TypeParam::purge(this->source_, 5 * kGranule, SIZE_MAX), kGranule);
  EXPECT_LE(TypeParam::dirty_bytes(this->source_), 5 * kGranule);
  TypeParam::purge(this->source_, 0, SIZE_MAX);
  EXPECT_EQ(0u, TypeParam::dirty_bytes(this->source_));
  EXPECT_EQ(0u, TypeParam::purge(this->source_, 0, SIZE_MAX)) << "nothing is left";
  const hz::Run again = this->Acquire(8);
  ASSERT_TRUE(again.zeroed);
  EXPECT_TRUE(IsZero(this->At(again), 8 * kGranule));
}

TYPED_TEST(SourceContract, ResizesInPlaceOrNotAtAll) {
  const hz::Run run = this->Acquire(4);
  FillPattern(this->At(run), 4 * kGranule, 1);
  ASSERT_TRUE(TypeParam::resize(this->source_, run.at, 4));
  ASSERT_TRUE(TypeParam::resize(this->source_, run.at, 2));
  EXPECT_EQ(2u, TypeParam::granules(this->source_, run.at));
  EXPECT_EQ(2 * kGranule, TypeParam::dirty_bytes(this->source_)) << "the rest is free and was touched";
  EXPECT_EQ(0u, TypeParam::start(this->source_, run.at + 2 * kGranule));
  if (TypeParam::resize(this->source_, run.at, 9)) {
    EXPECT_EQ(9u, TypeParam::granules(this->source_, run.at));
    EXPECT_EQ(run.at, TypeParam::start(this->source_, run.at + 8 * kGranule));
    FillPattern(this->At(run) + 2 * kGranule, 7 * kGranule, 2);
  }
  EXPECT_TRUE(HasPattern(this->At(run), 2 * kGranule, 1));
  const hz::Run wall = this->Acquire(1);
  const std::size_t length = TypeParam::granules(this->source_, run.at);
  if (wall.at == run.at + length * kGranule) {
    EXPECT_FALSE(TypeParam::resize(this->source_, run.at, length + 1)) << "that belongs to somebody";
    EXPECT_EQ(length, TypeParam::granules(this->source_, run.at));
  }
}

TYPED_TEST(SourceContract, WhatIsNeverUsedHasNoPagesAndIsNotHeld) {
  const std::size_t used = kGranule + 3 * hz::os::page_bytes(), tail = 2 * kGranule - used;
  const hz::Run before = this->Acquire(2);
  std::memset(this->At(before), 1, 2 * kGranule);
  TypeParam::release(this->source_, before.at, false);
  const std::size_t held = TypeParam::held_bytes(this->source_);
  for (int times = 0; times < 2; ++times) {
    const hz::Run run = TypeParam::acquire(this->source_, 2, 1, {.used = used});
    ASSERT_EQ(before.at, run.at);
    EXPECT_FALSE(run.zeroed);
    EXPECT_EQ(times == 0 ? tail : 0, run.purged) << "the second one finds none there";
    EXPECT_TRUE(IsZero(this->At(run) + used, tail));
    EXPECT_EQ(held - tail, TypeParam::held_bytes(this->source_));
    TypeParam::release(this->source_, run.at, false);
    EXPECT_EQ(held, TypeParam::held_bytes(this->source_));
  }
}

TYPED_TEST(SourceContract, ARunGrowsIntoItsRoomAndNobodyElseHasIt) {
  const std::size_t before = TypeParam::held_bytes(this->source_);
  const hz::Run run = TypeParam::acquire(this->source_, 4, 1, {.room = 4});
  const std::size_t held = TypeParam::held_bytes(this->source_);
  EXPECT_LT(held - before, 5 * kGranule) << "room is no memory";
  const hz::Run next = this->Acquire(2);
  EXPECT_GE(next.at, run.at + 8 * kGranule);
  EXPECT_EQ(4u, TypeParam::granules(this->source_, run.at));
  EXPECT_EQ(0u, TypeParam::start(this->source_, run.at + 5 * kGranule)) << "it is in nobody's use";
  TypeParam::note_mapping_boundary(this->source_, run.at);
  EXPECT_TRUE(TypeParam::resize(this->source_, run.at, 7));
  EXPECT_GE(TypeParam::held_bytes(this->source_), held + 5 * kGranule) << "three of its own, and two";
  EXPECT_FALSE(TypeParam::resize(this->source_, run.at, 9));
  TypeParam::release(this->source_, run.at, true);
  TypeParam::release(this->source_, next.at, true);
  EXPECT_EQ(0u, TypeParam::dirty_bytes(this->source_));
}

TYPED_TEST(SourceContract, ReachedBytesCoverAllThatIsOut) {
  EXPECT_EQ(0u, TypeParam::reached_bytes(this->source_));
  std::size_t out = 0;
  for (std::size_t n = 1; n < 40; ++n) {
    this->Acquire(n);
    out += n * kGranule;
    EXPECT_GE(TypeParam::reached_bytes(this->source_), out);
  }
}

TYPED_TEST(SourceContract, RowsFromAnywhereAreAllThatWereUsed) {
  std::set<std::size_t> used;
  for (std::size_t n = 1; n < 20; ++n) {
    const hz::Run run = this->Acquire(n);
    const std::size_t row = (run.at - TypeParam::base(this->source_)) / kGranule;
    for (std::size_t i = 0; i < n; ++i) used.insert(row + i);
  }
  std::set<std::size_t> told;
  hz::Rows rows;
  for (std::size_t from = 0; rows = TypeParam::rows_from(this->source_, from, 7), rows.begin != rows.end;
       from = rows.end) {
    ASSERT_GE(rows.begin, from);
    ASSERT_LE(rows.end - rows.begin, 7u);
    for (std::size_t row = rows.begin; row < rows.end; ++row) told.insert(row);
  }
  EXPECT_TRUE(std::includes(told.begin(), told.end(), used.begin(), used.end()));
  EXPECT_EQ(TypeParam::reached_bytes(this->source_), told.size() * kGranule);
  EXPECT_EQ(0u, rows.end);
}

TYPED_TEST(SourceContract, TooMuchIsRefusedAndTheRestGoesOn) {
  EXPECT_EQ(0u, this->Acquire(TypeParam::bytes(this->source_) / kGranule + 1).at);
  EXPECT_EQ(0u, this->Acquire(SIZE_MAX / kGranule).at);
  EXPECT_NE(0u, this->Acquire(1).at);
}

// A thread that only looked when the process forked stays behind with the lock.
TYPED_TEST(SourceContract, ChildOfAForkFreesItsLocks) {
  if (!kForks) GTEST_SKIP() << "there are no forks";
  const std::uintptr_t run = this->Acquire(1).at;
  std::atomic<bool> stop{false};
  std::thread looker([&] {
    while (!stop) TypeParam::granules(this->source_, run);
  });
  int failures = 0;
  for (int i = 0; i < 100 && failures == 0; ++i) {
    failures += InAFork([&] {
                  TypeParam::free_locks(this->source_);
                  return TypeParam::acquire(this->source_, 1, 1).at != 0 ? 0 : 1;
                }) != 0;
  }
  stop = true;
  looker.join();
  EXPECT_EQ(0, failures);
}

#if defined(__x86_64__) && defined(__linux__)
// A child that is cut off from a change, anywhere in it: what was free may be lost, what somebody has stays
// his.
TYPED_TEST(SourceContract, AChildThatIsCutOffIsWhole) {
  if (kUnderTool) GTEST_SKIP() << "a sanitizer's own state is not whole in such a child";
  constexpr unsigned kRuns = 12;
  std::uintptr_t held[kRuns];
  const auto mark = [](std::uintptr_t run) -> char& {
    return *static_cast<char*>(hz::pointer(run + kGranule));
  };
  for (std::uintptr_t& run : held) mark(run = this->Acquire(2).at) = 1;
  for (unsigned i = 1; i < kRuns; i += 4)
    TypeParam::release(this->source_, std::exchange(held[i], 0), i == 5);
  const auto in_child = [&] {
    TypeParam::make_whole(this->source_);
    for (unsigned i = 0; i < kRuns; i += 4)
      TypeParam::release(this->source_, std::exchange(held[i], 0), false);
    for (unsigned i = 0; i < 2 * kRuns; ++i) {
      const std::uintptr_t run = this->Acquire(2 + i % 5).at;
      if (run == 0) return 1;
      mark(run) = 2;
      if (i % 3 == 0) TypeParam::release(this->source_, run, false);
    }
    for (const std::uintptr_t run : held)
      if (run != 0 && mark(run) != 1) return 2;
    return 0;
  };
  unsigned steps = 0, all = 0;
  std::uintptr_t run = 0;
  const std::function<void()> changes[] = {
      [&] { TypeParam::release(this->source_, std::exchange(held[6], 0), false); },  // beside a free one
      [&] { run = this->Acquire(1).at; },                                            // a part of it
      [&] { TypeParam::release(this->source_, run, false); },
      [&] { TypeParam::resize(this->source_, held[7], 1); },
      [&] { run = this->Acquire(7, 4).at; },
      [&] { TypeParam::purge(this->source_, 0, kGranule); },
      [&] { run = this->Acquire(600).at; },  // new addresses, and longer tables
  };
  for (const auto& change : changes) {
    ASSERT_EQ(0u, ForkAfterEachInstruction(change, in_child, steps)) << "change " << &change - changes;
    all += steps;
  }
  EXPECT_GT(all, 300u) << "no changes have so few instructions";
}
#endif

// Every granule of a run carries the mark of its holder: an overlap would show.
TYPED_TEST(SourceContract, RunsNeverOverlap) {
  constexpr unsigned kThreads = 3;
  std::atomic<bool> failed{false};
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      struct Mine {
        std::uintptr_t at;
        std::size_t granules;
        std::uint64_t mark;
      };
      std::mt19937_64 random(id);
      std::vector<Mine> mine;
      const auto each = [](const Mine& m, auto&& what) {
        for (std::size_t i = 0; i < m.granules; ++i)
          what(*static_cast<std::uint64_t*>(hz::pointer(m.at + i * kGranule)));
      };
      const auto write = [&](const Mine& m) { each(m, [&](std::uint64_t& word) { word = m.mark; }); };
      const auto verify = [&](const Mine& m) {
        each(m, [&](std::uint64_t& word) {
          if (word != m.mark) failed = true;
        });
      };
      for (int step = 0; step < 3000 && !failed.load(); ++step) {
        const unsigned what = random() % 10;
        if (mine.size() < 20 && what < 5) {
          const std::size_t granules = 1 + random() % 20;
          const hz::Run run = TypeParam::acquire(this->source_, granules, std::size_t{1} << random() % 4);
          mine.push_back({run.at, granules, random()});
          if (run.zeroed) {
            each(mine.back(), [&](std::uint64_t& word) {
              if (word != 0) failed = true;
            });
          }
          write(mine.back());
        } else if (!mine.empty() && what < 9) {
          const std::size_t i = random() % mine.size();
          verify(mine[i]);
          if (what == 8) {
            const std::size_t granules = 1 + random() % 20;
            if (TypeParam::resize(this->source_, mine[i].at, granules)) mine[i].granules = granules;
            write(mine[i]);
          } else {
            TypeParam::release(this->source_, mine[i].at, false);
            mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(i));
          }
        } else if (what == 9) {
          TypeParam::purge(this->source_, random() % 64 * kGranule, SIZE_MAX);
        }
      }
      for (const Mine& m : mine) {
        verify(m);
        TypeParam::release(this->source_, m.at, false);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(failed);
  const std::size_t reached = TypeParam::reached_bytes(this->source_);
  EXPECT_NE(0u, this->Acquire(reached / kGranule).at);
  EXPECT_EQ(reached, TypeParam::reached_bytes(this->source_)) << "all that was free is one run again";
  EXPECT_EQ(0u, TypeParam::dirty_bytes(this->source_));
}

}  // namespace
}  // namespace hz_test
