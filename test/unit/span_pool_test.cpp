// SPDX-License-Identifier: Apache-2.0
//
// The span pool: its invariants after every step, how pages are carved. The contract of a pool covers the
// rest.
#include "box/pool/span_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "support/on_processors.hpp"
#include "unit/pool_hands.hpp"
#include "unit/region.hpp"

namespace hz_test {
namespace {

using hz::Bin;
using hz::SpanPool;

constexpr unsigned kMost = hz::kPage / hz::kMinAlign;

// The pool touches no slot, so its arena need not exist.
class SpanPoolTest : public ::testing::TestWithParam<Bin> {
 protected:
  static constexpr std::size_t kGranules = 512;
  static constexpr std::uintptr_t kBase = std::uintptr_t{1} << 40;

  SpanPoolTest()
      : table_(kGranules * SpanPool::kTableBytesPerGranule), pool_(std::make_unique<SpanPool::Global>()) {
    SpanPool::open(*pool_, kBase, table_.address(), kGranules);
  }

  static std::uintptr_t SpanAt(std::uint32_t row) { return kBase + row * hz::kGranule; }

  bool Listed(std::uint32_t row, Bin bin) const {
    std::uint32_t previous = 0;
    const auto& shelf = pool_->shelves.shards[pool_->table.spans[row].place >> 8].of_bin[bin];
    for (std::uint32_t at = shelf.head; at != 0; at = pool_->table.spans[at].next) {
      EXPECT_EQ(previous, pool_->table.spans[at].previous);
      if (at == row) return true;
      previous = at;
    }
    return false;
  }

  void ExpectInvariants(std::uint32_t row, Bin bin) const {
    const hz::Span& span = pool_->table.spans[row];
    unsigned bits = 0;
    for (Bin any : {Bin{1}, hz::SpanTable::Bits::kLastWide, Bin{hz::kBins - 1}}) {
      const hz::SpanTable::Rows rows = pool_->table.bits.of(any);
      for (unsigned w = 0; w < rows.words; ++w)
        bits += static_cast<unsigned>(__builtin_popcountll(rows.word(row, w)));
    }
    ASSERT_EQ(span.free, bits);
    if ((span.place & 0xff) == 0) {
      ASSERT_EQ(0u, bits) << "a bitmap is left clean";
      ASSERT_FALSE(Listed(row, bin));
      return;
    }
    ASSERT_EQ(bin, span.place & 0xffU);
    ASSERT_LE(span.carved, hz::bin_slots(bin));
    ASSERT_EQ(span.free > 0 || span.carved < hz::bin_slots(bin), Listed(row, bin));
    ASSERT_EQ(span.listed, Listed(row, bin));
    ASSERT_TRUE(span.carved == 0 || span.free < span.carved) << "a span that nobody holds a slot of has left";
  }

  Region table_;
  std::unique_ptr<SpanPool::Global> pool_;
  void* slots_[2 * kMost] = {};
};

class EveryBin : public SpanPoolTest {
 protected:
  void ExpectWholePages(bool zeroed);

  // Of some lines of slots below a line, no two in a row share one.
  void ExpectNoNeighboursInARow(unsigned count, std::size_t size) {
    constexpr std::size_t kLine = 64;
    for (unsigned i = 1; i < count && size < kLine && count * size >= 4 * kLine; ++i) {
      const auto [low, high] = std::minmax({hz::address(slots_[i - 1]), hz::address(slots_[i])});
      ASSERT_NE((low + size - 1) / kLine, high / kLine) << size << " bytes, number " << i << " of " << count;
    }
  }
};

void EveryBin::ExpectWholePages(bool zeroed) {
  const Bin bin = GetParam();
  const std::size_t size = hz::bin_size(bin);
  std::mt19937 random(bin);
  SpanPool::adopt(*pool_, SpanAt(3), bin, 2, zeroed);
  std::size_t carved = 0;
  unsigned pages_known = 0;
  while (carved < hz::bin_slots(bin)) {
    const unsigned want = 1 + static_cast<unsigned>(random() % kMost);
    const hz::Taken taken = TakeListed<SpanPool>(*pool_, bin, 2, slots_, want);
    ASSERT_EQ(SpanAt(3), taken.span);
    ASSERT_TRUE(taken.fresh);
    ASSERT_EQ(zeroed, taken.zeroed);
    ASSERT_GE(taken.slots, 1u);
    ASSERT_LE(taken.slots, std::max<std::size_t>(want, size < hz::kPage ? (hz::kPage + size - 1) / size : 1));
    ExpectNoNeighboursInARow(taken.slots, size);
    std::sort(slots_, slots_ + taken.slots);
    for (unsigned i = 0; i < taken.slots; ++i)
      ASSERT_EQ(SpanAt(3) + (carved + i) * size, hz::address(slots_[i]));
    carved += taken.slots;
    const auto last_page = static_cast<unsigned>((carved - 1) * size / hz::kPage);
    ASSERT_EQ(last_page, taken.first_page + taken.pages - 1);
    if (size >= hz::kPage) {
      ASSERT_TRUE(!zeroed || taken.slots == 1) << "untouched pages are touched by the user or not at all";
      continue;
    }
    ASSERT_LE(taken.first_page, pages_known) << "no page with a slot's start is left out";
    pages_known = last_page + 1;
    const bool all = carved == hz::bin_slots(bin);
    ASSERT_TRUE(all || carved * size >= pages_known * hz::kPage)
        << "every slot that starts in a known page is out";
    ExpectInvariants(3, bin);
  }
  EXPECT_EQ(0u, TakeListed<SpanPool>(*pool_, bin, 2, slots_, 1).slots);
}

TEST_P(EveryBin, CarvesWholePagesAndNamesThem) { ExpectWholePages(true); }

TEST_P(EveryBin, CarvesTouchedMemoryAlike) { ExpectWholePages(false); }

TEST_P(EveryBin, RandomRoundTripsKeepTheInvariants) {
  const Bin bin = GetParam();
  constexpr std::uint32_t kRows[] = {5, 80, 200};
  std::mt19937 random(bin);
  for (std::uint32_t row : kRows) SpanPool::adopt(*pool_, SpanAt(row), bin, 0, false);
  std::vector<void*> outside;
  std::set<void*> held;
  std::set<std::uint32_t> gone;
  for (int step = 0; step < 400; ++step) {
    const unsigned n = 1 + static_cast<unsigned>(random() % kMost);
    if (random() % 2 == 0) {
      const hz::Taken taken =
          TakeListed<SpanPool>(*pool_, bin, static_cast<unsigned>(random() % 3), slots_, n);
      for (unsigned i = 0; i < taken.slots; ++i) {
        ASSERT_TRUE(held.insert(slots_[i]).second) << "handed out twice";
        outside.push_back(slots_[i]);
      }
    } else {
      std::shuffle(outside.begin(), outside.end(), random);
      const std::size_t count = std::min<std::size_t>(n, outside.size());
      std::vector<void*> back(outside.end() - static_cast<std::ptrdiff_t>(count), outside.end());
      outside.resize(outside.size() - count);
      std::vector<std::uintptr_t> emptied;
      for (void* slot : back) held.erase(slot);
      const hz::Given given =
          GiveListed<SpanPool>(*pool_, bin, back.data(), static_cast<unsigned>(count), emptied);
      ASSERT_EQ(count, given.kept);
      ASSERT_EQ(0u, given.rejected);
      for (const std::uintptr_t span : emptied) {
        const auto row = static_cast<std::uint32_t>((span - kBase) / hz::kGranule);
        for (void* slot : outside)
          ASSERT_FALSE(hz::address(slot) - SpanAt(row) < hz::kGranule) << "emptied too early";
        ASSERT_TRUE(gone.insert(row).second);
      }
    }
    for (std::uint32_t row : kRows) ExpectInvariants(row, bin);
    for (std::uint32_t row : gone) SpanPool::adopt(*pool_, SpanAt(row), bin, 1, false);
    gone.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(SpanPool, EveryBin, ::testing::Range(Bin{1}, Bin{hz::kBins}),
                         [](const auto& info) { return std::to_string(hz::bin_size(info.param)); });

TEST_F(SpanPoolTest, TableHoldsARowAndABitmapPerGranule) {
  const auto* end = table_.bytes() + kGranules * SpanPool::kTableBytesPerGranule;
  EXPECT_EQ(end, reinterpret_cast<const char*>(&pool_->table.spans[kGranules]));
  std::set<const void*> words;
  for (Bin bin : {Bin{1}, hz::SpanTable::Bits::kLastWide, Bin{hz::kBins - 1}}) {
    const hz::SpanTable::Rows rows = pool_->table.bits.of(bin);
    for (std::uint32_t row = 0; row < kGranules; ++row)
      for (unsigned w = 0; w < rows.words; ++w) words.insert(&rows.word(row, w));
  }
  EXPECT_EQ(kGranules * (1 + 8 + 64), words.size());
  EXPECT_EQ(table_.bytes(), *words.begin());
  EXPECT_EQ(reinterpret_cast<const char*>(pool_->table.spans) - 8, *words.rbegin());
}

TEST_F(SpanPoolTest, BitsOfSlotsOf1KiBTake8BytesAGranuleAndThoseOf128Bytes64) {
  const auto place = [&](std::size_t size, unsigned w) {
    return reinterpret_cast<const char*>(&pool_->table.bits.of(hz::scan_bin(size)).word(7, w)) -
           table_.bytes();
  };
  EXPECT_EQ(7 * 8, place(1024, 0));
  EXPECT_EQ(kGranules * 8 + 7 * 64 + 7 * 8, place(128, 7));
  EXPECT_EQ(place(512, 0), place(128, 0));
  EXPECT_EQ(kGranules * (8 + 64) + 7 * 512, place(112, 0));
}

// As a change that was cut off may leave them: what is counted or linked wrongly, where the lock is held.
TEST_F(SpanPoolTest, CountsAndLinksAgainWhereTheLockIsHeld) {
  const OnProcessors processors;
  processors.go_to(0);
  const unsigned here = processors.number(0) % hz::Shelves::kShards;
  const Bin bin = hz::scan_bin(500), other = hz::scan_bin(100);
  for (std::uint32_t row = 1; row <= 3; ++row) SpanPool::adopt(*pool_, SpanAt(row), bin, 0, true);
  SpanPool::adopt(*pool_, SpanAt(4), other, 0, true);
  void* slots[kMost];
  const hz::Taken taken = TakeListed<SpanPool>(*pool_, bin, 0, slots, 5);
  SpanPool::give(*pool_, bin, slots, 2);
  hz::Span& span = pool_->table.spans[(taken.span - kBase) >> hz::kGranuleShift];
  span.free = 4;
  span.next = span.previous = 1;
  pool_->table.spans[2].listed = false;
  pool_->shelves.shards[here].of_bin[bin].head = 3;
  pool_->shelves.shards[here].of_bin[bin].lock.lock();
  SpanPool::make_whole(*pool_, [](auto visit) {
    for (std::uint32_t row = 1; row < kGranules; ++row) visit(row);
  });
  EXPECT_TRUE(pool_->shelves.shards[here].of_bin[bin].lock.try_lock()) << "it is free";
  for (std::uint32_t row = 1; row <= 3; ++row) ExpectInvariants(row, bin);
  ExpectInvariants(4, other);
}

TEST_F(SpanPoolTest, HomeComesBeforeCarving) {
  const Bin bin = hz::scan_bin(1024);
  SpanPool::adopt(*pool_, SpanAt(1), bin, 0, true);
  ASSERT_EQ(4u, TakeListed<SpanPool>(*pool_, bin, 0, slots_, 4).slots);
  std::vector<std::uintptr_t> emptied;
  void* back = slots_[2];
  GiveListed<SpanPool>(*pool_, bin, &back, 1, emptied);
  const hz::Taken taken = TakeListed<SpanPool>(*pool_, bin, 0, slots_, 4);
  EXPECT_EQ(1u, taken.slots) << "one kind of slot per take: fresh ones need no audit";
  EXPECT_FALSE(taken.fresh);
  EXPECT_FALSE(taken.zeroed);
  EXPECT_EQ(back, slots_[0]);
}

TEST_F(SpanPoolTest, ANewOwnerIsToldAllPagesCarvedSoFar) {
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    const auto row = static_cast<std::uint32_t>(bin * 3);
    ASSERT_LT(row, kGranules);
    SpanPool::adopt(*pool_, SpanAt(row), bin, 0, true);
    const unsigned first = TakeListed<SpanPool>(*pool_, bin, 0, slots_, 1).slots;
    if (first < hz::bin_slots(bin)) TakeListed<SpanPool>(*pool_, bin, 0, slots_ + first, 1);
    std::vector<std::uintptr_t> emptied;
    void* back = slots_[0];
    if (GiveListed<SpanPool>(*pool_, bin, &back, 1, emptied).emptied != 0) continue;  // its only slot
    const hz::Taken same = TakeListed<SpanPool>(*pool_, bin, 0, slots_, 1);
    ASSERT_EQ(0u, same.pages) << "the owner has not changed";
    back = slots_[0];
    GiveListed<SpanPool>(*pool_, bin, &back, 1, emptied);
    const hz::Taken taken = TakeListed<SpanPool>(*pool_, bin, 7, slots_, 1);
    ASSERT_EQ(1u, taken.slots);
    EXPECT_EQ(0u, taken.first_page);
    EXPECT_EQ((pool_->table.spans[row].carved - 1) * hz::bin_size(bin) / hz::kPage + 1, taken.pages)
        << hz::bin_size(bin);
    EXPECT_EQ(7u, pool_->table.spans[row].owner);
  }
}

// Or a thread that moves would map a span although it has one.
TEST_F(SpanPoolTest, AnOwnerFindsItsSpanOnAnotherProcessor) {
  const OnProcessors processors;
  if (processors.count() < 2) GTEST_SKIP() << "one processor";
  const Bin bin = hz::scan_bin(500);
  processors.go_to(0);
  SpanPool::adopt(*pool_, SpanAt(1), bin, 7, true);
  processors.go_to(1);
  SpanPool::adopt(*pool_, SpanAt(2), bin, 8, true);
  EXPECT_EQ(SpanAt(1), SpanPool::take(*pool_, bin, 7, slots_, 1, false).span);
  EXPECT_EQ(SpanAt(2), SpanPool::take(*pool_, bin, 8, slots_, 1, false).span);
  EXPECT_EQ(0u, SpanPool::take(*pool_, bin, 9, slots_, 1, false).slots);
}

TEST_F(SpanPoolTest, ASpanStandsOnTheShelfOfTheProcessorThatTookFromItLast) {
  const OnProcessors processors;
  if (processors.count() < 2) GTEST_SKIP() << "one processor";
  const Bin bin = hz::scan_bin(500);
  const auto listed_on = [&](unsigned processor) {
    return pool_->shelves.shards[processors.number(processor) % hz::Shelves::kShards].of_bin[bin].head.load();
  };
  processors.go_to(0);
  SpanPool::adopt(*pool_, SpanAt(1), bin, 0, true);
  EXPECT_EQ(1u, listed_on(0));
  processors.go_to(1);
  SpanPool::adopt(*pool_, SpanAt(2), bin, 0, true);
  EXPECT_EQ(SpanAt(2), TakeListed<SpanPool>(*pool_, bin, 0, slots_, 2).span) << "its own comes first";
  EXPECT_EQ(1u, listed_on(0));
  while (listed_on(0) != 0) ASSERT_NE(0u, TakeListed<SpanPool>(*pool_, bin, 0, slots_, 2).slots);
  EXPECT_EQ(1u, listed_on(1)) << "another one's before there is a new span";
  while (listed_on(1) != 0) TakeListed<SpanPool>(*pool_, bin, 0, slots_, 2);
  processors.go_to(0);
  std::vector<std::uintptr_t> emptied;
  ASSERT_EQ(1u, GiveListed<SpanPool>(*pool_, bin, slots_, 1, emptied).kept);
  EXPECT_EQ(0u, listed_on(0));
  EXPECT_EQ(1u, listed_on(1)) << "where its slots return to, whoever gives them";
  ExpectInvariants(1, bin);
  ExpectInvariants(2, bin);
}

TEST_F(SpanPoolTest, SixteenLinesAreHandedOutLineByLine) {
  for (const std::size_t size : {std::size_t{16}, std::size_t{32}}) {
    const Bin bin = hz::scan_bin(size);
    SpanPool::adopt(*pool_, SpanAt(bin), bin, 0, true);
    ASSERT_LE(16 * 64 / size,
              TakeListed<SpanPool>(*pool_, bin, 0, slots_, static_cast<unsigned>(16 * 64 / size)).slots);
    std::set<std::uintptr_t> lines;
    for (unsigned i = 0; i < 16; ++i) lines.insert(hz::address(slots_[i]) / 64);
    EXPECT_EQ(16U, lines.size()) << size;
  }
}

TEST_F(SpanPoolTest, TwiceInOneBatchIsRejectedOnce) {
  SpanPool::adopt(*pool_, SpanAt(1), 4, 0, true);
  const unsigned out = TakeListed<SpanPool>(*pool_, 4, 0, slots_, 1).slots;
  ASSERT_GT(out, 2u);
  void* back[] = {slots_[0], slots_[1], slots_[0], slots_[1]};
  std::vector<std::uintptr_t> emptied;
  const hz::Given given = GiveListed<SpanPool>(*pool_, 4, back, 4, emptied);
  EXPECT_EQ(2u, given.kept);
  EXPECT_EQ(2u, given.rejected);
  EXPECT_EQ(slots_[0], back[0]);
  EXPECT_EQ(slots_[1], back[1]);
  ExpectInvariants(1, 4);
}

TEST_F(SpanPoolTest, TwiceIsRejectedEvenIfTheFirstEmptiedTheSpan) {
  const Bin bin = hz::kLastBin;
  SpanPool::adopt(*pool_, SpanAt(1), bin, 0, true);
  ASSERT_EQ(1u, TakeListed<SpanPool>(*pool_, bin, 0, slots_, 1).slots);
  void* back[] = {slots_[0], slots_[0]};
  std::vector<std::uintptr_t> emptied;
  const hz::Given given = GiveListed<SpanPool>(*pool_, bin, back, 2, emptied);
  EXPECT_EQ(1u, emptied.size());
  EXPECT_EQ(1u, given.rejected);
  ExpectInvariants(1, bin);
}

TEST_F(SpanPoolTest, WhatWasNeverHandedOutOrIsOfAnotherClassIsRejected) {
  const Bin bin = hz::scan_bin(512);
  SpanPool::adopt(*pool_, SpanAt(1), bin, 0, true);
  const unsigned out = TakeListed<SpanPool>(*pool_, bin, 0, slots_, 1).slots;
  std::vector<std::uintptr_t> emptied;
  void* beyond = hz::pointer(SpanAt(1) + out * 512);
  EXPECT_EQ(1u, GiveListed<SpanPool>(*pool_, bin, &beyond, 1, emptied).rejected);
  void* other_span = hz::pointer(SpanAt(2));
  EXPECT_EQ(1u, GiveListed<SpanPool>(*pool_, bin, &other_span, 1, emptied).rejected);
  void* other_class = slots_[0];
  EXPECT_EQ(1u, GiveListed<SpanPool>(*pool_, bin + 4, &other_class, 1, emptied).rejected);
  ExpectInvariants(1, bin);
}

}  // namespace
}  // namespace hz_test
