// SPDX-License-Identifier: Apache-2.0
//
// The contract of a pool: slots that are free in their spans. No slot is touched, so the arena need not
// exist.
#include "box/pool/contract.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "contract/pool_boxes.hpp"
#include "support/on_processors.hpp"
#include "support/raw_fork.hpp"
#include "support/sanitizers.hpp"
#include "unit/pool_hands.hpp"
#include "unit/region.hpp"

namespace hz_test {
namespace {

using hz::Bin;

template <class P>
class PoolContract : public ::testing::Test {
 protected:
  static constexpr unsigned kMost = hz::kPage / hz::kMinAlign;
  static constexpr std::size_t kGranules = 512;
  static constexpr std::uintptr_t kBase = std::uintptr_t{1} << 40;

  PoolContract()
      : table_(kGranules * P::kTableBytesPerGranule), pool_(std::make_unique<typename P::Global>()) {
    P::open(*pool_, kBase, table_.address(), kGranules);
  }

  static std::uintptr_t SpanAt(std::size_t row) { return kBase + row * hz::kGranule; }

  hz::Taken Take(Bin bin, unsigned owner, unsigned want) {
    return TakeListed<P>(*pool_, bin, owner, slots_, want);
  }
  // Everything the spans of a class have, as one owner.
  std::vector<void*> TakeAll(Bin bin, unsigned owner) {
    std::vector<void*> all;
    for (hz::Taken taken = Take(bin, owner, 100); taken.slots != 0; taken = Take(bin, owner, 100)) {
      all.insert(all.end(), slots_, slots_ + taken.slots);
    }
    return all;
  }
  hz::Given Give(Bin bin, std::vector<void*> slots) {
    rejected_ = std::move(slots);
    const hz::Given given =
        GiveListed<P>(*pool_, bin, rejected_.data(), static_cast<unsigned>(rejected_.size()), emptied_);
    rejected_.resize(given.rejected);
    return given;
  }

  Region table_;
  std::unique_ptr<typename P::Global> pool_;
  void* slots_[kMost] = {};
  std::vector<std::uintptr_t> emptied_;
  std::vector<void*> rejected_;
};
TYPED_TEST_SUITE(PoolContract, PoolBoxes);

TYPED_TEST(PoolContract, WithoutASpanThereIsNoSlot) {
  for (Bin bin = 1; bin < hz::kBins; ++bin) EXPECT_EQ(0u, this->Take(bin, 0, 1).slots);
}

TYPED_TEST(PoolContract, TellsWhatIsOut) {
  const Bin bin = 3;
  EXPECT_EQ(0u, TypeParam::bin_in(*this->pool_, 1));
  EXPECT_EQ(0u, TypeParam::slots_out(*this->pool_, 1).bin);
  TypeParam::adopt(*this->pool_, this->SpanAt(1), bin, 1, true);
  EXPECT_EQ(bin, TypeParam::bin_in(*this->pool_, 1));
  EXPECT_EQ(0u, TypeParam::slots_out(*this->pool_, 1).count);
  std::vector<void*> all = this->TakeAll(bin, 1);
  EXPECT_EQ(bin, TypeParam::slots_out(*this->pool_, 1).bin);
  EXPECT_EQ(hz::bin_slots(bin), TypeParam::slots_out(*this->pool_, 1).count);
  void* const last = all.back();
  all.pop_back();
  this->Give(bin, {last});
  EXPECT_EQ(hz::bin_slots(bin) - 1, TypeParam::slots_out(*this->pool_, 1).count);
  hz::OutOfSpan out;
  TypeParam::note_slots_out(*this->pool_, this->SpanAt(1), out);
  EXPECT_EQ(bin, out.bin);
  EXPECT_EQ(hz::bin_slots(bin), out.slots);
  for (unsigned i = 0; i < out.slots; ++i) {
    const bool is_last = hz::address(last) == this->SpanAt(1) + i * hz::bin_size(bin);
    EXPECT_EQ(is_last ? 0u : 1u, out.bits[i / 64] >> i % 64 & 1) << i;
  }
  this->Give(bin, all);
  EXPECT_EQ(0u, TypeParam::bin_in(*this->pool_, 1)) << "it is empty and has left";
  EXPECT_EQ(0u, TypeParam::slots_out(*this->pool_, 1).count);
}

TYPED_TEST(PoolContract, ASpanGivesEverySlotOnce) {
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    const std::uintptr_t span = this->SpanAt(1 + bin);
    TypeParam::adopt(*this->pool_, span, bin, 1, bin % 2 == 0);
    std::set<std::uintptr_t> starts;
    for (hz::Taken taken = this->Take(bin, 1, 5); taken.slots != 0; taken = this->Take(bin, 1, 5)) {
      ASSERT_EQ(span, taken.span);
      ASSERT_TRUE(taken.fresh);
      ASSERT_EQ(bin % 2 == 0, taken.zeroed);
      for (unsigned i = 0; i < taken.slots; ++i) {
        const std::uintptr_t offset = hz::address(this->slots_[i]) - span;
        ASSERT_EQ(0u, offset % hz::bin_size(bin));
        ASSERT_LT(offset / hz::bin_size(bin), hz::bin_slots(bin));
        ASSERT_TRUE(starts.insert(offset).second);
        ASSERT_GE(offset >> hz::kPageShift, taken.first_page) << "the route would not know of it";
        ASSERT_LT(offset >> hz::kPageShift, taken.first_page + taken.pages);
      }
    }
    EXPECT_EQ(hz::bin_slots(bin), starts.size()) << hz::bin_size(bin);
  }
}

// Whatever other spans have: else the new one might never have a slot out, and never be emptied.
TYPED_TEST(PoolContract, WhoAdoptsASpanGetsSlotsOfIt) {
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    const std::uintptr_t other = this->SpanAt(2 * bin), span = this->SpanAt(2 * bin + 1);
    TypeParam::adopt(*this->pool_, other, bin, 1, true);
    std::vector<void*> slots;
    const hz::Taken taken = TypeParam::adopt(*this->pool_, span, bin, 1, true, 3);
    ASSERT_GE(taken.slots, 1u);
    EXPECT_EQ(span, taken.span);
    EXPECT_TRUE(taken.fresh && taken.zeroed);
    EXPECT_EQ(0u, taken.begin);
    for (unsigned i = 0; i < taken.slots; ++i)
      slots.push_back(hz::pointer(taken.span + i * hz::bin_size(bin)));
    this->Give(bin, slots);
    ASSERT_EQ(1u, this->emptied_.size()) << hz::bin_size(bin);
    EXPECT_EQ(span, this->emptied_[0]);
    this->emptied_.clear();
  }
}

TYPED_TEST(PoolContract, EmptiedExactlyWhenTheLastSlotIsHome) {
  std::mt19937 random(3);
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    const std::uintptr_t span = this->SpanAt(1 + bin);
    TypeParam::adopt(*this->pool_, span, bin, 1, true);
    std::vector<void*> all = this->TakeAll(bin, 1);
    std::shuffle(all.begin(), all.end(), random);
    while (all.size() > 1) {
      const std::size_t n = std::min<std::size_t>(1 + random() % 200, all.size() - 1);
      const hz::Given given = this->Give(bin, {all.end() - static_cast<std::ptrdiff_t>(n), all.end()});
      all.resize(all.size() - n);
      ASSERT_EQ(n, given.kept);
      ASSERT_TRUE(this->emptied_.empty());
    }
    this->Give(bin, all);
    ASSERT_EQ(1u, this->emptied_.size());
    EXPECT_EQ(span, this->emptied_[0]);
    EXPECT_EQ(0u, this->Take(bin, 1, 1).slots) << "it is no longer the pool's";
    EXPECT_EQ(0u, TypeParam::bin_at(*this->pool_, span, span));
  }
}

// What is free there, was never carved, or comes twice is told from what is out, and nothing has changed
// afterwards.
TYPED_TEST(PoolContract, SiftsWhatCannotBeOut) {
  for (Bin bin : {Bin{1}, hz::scan_bin(64), hz::kLastSmallBin, hz::scan_bin(5000)}) {
    const std::uintptr_t span = this->SpanAt(bin);
    TypeParam::adopt(*this->pool_, span, bin, 1, true);
    this->Take(bin, 1, 4);
    std::vector<void*> out = this->TakeAll(bin, 1);
    void* const inside = out.back();
    out.pop_back();
    this->Give(bin, {inside});
    std::vector<void*> held = out;
    held.insert(held.begin() + 1, {inside, out[2], out[2]});
    for (int round = 0; round < 2; ++round) {
      const unsigned good =
          TypeParam::sift(*this->pool_, bin, held.data(), static_cast<unsigned>(held.size()));
      ASSERT_EQ(out.size(), good) << hz::bin_size(bin);
      EXPECT_EQ(std::set<void*>(out.begin(), out.end()), std::set<void*>(held.begin(), held.begin() + good));
      std::vector<void*> bad(held.begin() + good, held.end());
      EXPECT_EQ((std::multiset<void*>{inside, out[2], out[2]}), std::multiset<void*>(bad.begin(), bad.end()));
    }
    EXPECT_EQ(out.size(), this->Give(bin, out).kept) << "they were out all the time";
  }
}

TYPED_TEST(PoolContract, SiftsWhatWasNeverCarved) {
  const Bin bin = hz::scan_bin(5000);
  TypeParam::adopt(*this->pool_, this->SpanAt(1), bin, 1, true);
  ASSERT_GE(this->Take(bin, 1, 1).slots, 1u);
  void* slots[] = {hz::pointer(this->SpanAt(1) + 11 * hz::bin_size(bin)), this->slots_[0]};
  void* const good = this->slots_[0];
  ASSERT_EQ(1u, TypeParam::sift(*this->pool_, bin, slots, 2));
  EXPECT_EQ(good, slots[0]);
}

TYPED_TEST(PoolContract, ReturnedSlotsAreTakenAgain) {
  for (Bin bin : {Bin{1}, hz::kLastSmallBin, hz::scan_bin(5000)}) {
    TypeParam::adopt(*this->pool_, this->SpanAt(bin), bin, 1, true);
    std::vector<void*> all = this->TakeAll(bin, 1);
    const std::set<void*> some(all.begin() + 1, all.end());
    this->Give(bin, {all.begin() + 1, all.end()});
    const hz::Taken taken = this->Take(bin, 1, 1);
    EXPECT_EQ(1u, taken.slots);
    EXPECT_FALSE(taken.fresh) << "it was handed out before";
    this->Give(bin, {this->slots_[0]});
    const std::vector<void*> again = this->TakeAll(bin, 1);
    EXPECT_EQ(some, std::set<void*>(again.begin(), again.end()));
    EXPECT_EQ(some.size(), again.size());
  }
}

// Whoever wants no slots of spans that another owner had last gets none.
TYPED_TEST(PoolContract, SpansOfAnOwnerServeOthersOnlyWhenAskedTo) {
  for (Bin bin : {Bin{1}, hz::scan_bin(200), hz::scan_bin(5000)}) {
    TypeParam::adopt(*this->pool_, this->SpanAt(1), bin, 1, true);
    EXPECT_EQ(0u, TypeParam::take(*this->pool_, bin, 2, this->slots_, 1, false).slots);
    const std::vector<void*> out = this->TakeAll(bin, 1);
    this->Give(bin, {out[0], out[1]});
    EXPECT_EQ(0u, TypeParam::take(*this->pool_, bin, 2, this->slots_, 1, false).slots);
    EXPECT_NE(0u, TypeParam::take(*this->pool_, bin, 1, this->slots_, 1, false).slots);
    EXPECT_NE(0u, TypeParam::take(*this->pool_, bin, 2, this->slots_, 1, true).slots);
    this->Give(bin, out);
  }
}

// Of three spans of which 4, 1 and 2 slots are out the first is where the next slot comes from, and from
// where nothing moves.
TYPED_TEST(PoolContract, PrefersAFullerSpan) {
  for (Bin bin : {Bin{3}, hz::scan_bin(200), hz::scan_bin(5000)}) {
    constexpr std::size_t kLeft[] = {4, 1, 2};
    std::vector<std::vector<void*>> out;
    for (std::size_t i = 0; i < std::size(kLeft); ++i) {
      TypeParam::adopt(*this->pool_, this->SpanAt(i + 1), bin, 1, true);
      out.push_back(this->TakeAll(bin, 1));
    }
    EXPECT_FALSE(TypeParam::prefer_fuller(*this->pool_, bin, this->SpanAt(2), 1, true)) << "none has a slot";
    for (std::size_t i = 0; i < std::size(kLeft); ++i)
      this->Give(bin, {out[i].begin() + kLeft[i], out[i].end()});
    for (const unsigned owner : {1u, 2u}) {
      const auto prefers = [&](std::size_t row, bool anybodys) {
        return TypeParam::prefer_fuller(*this->pool_, bin, this->SpanAt(row), owner, anybodys);
      };
      EXPECT_TRUE(prefers(2, true));
      EXPECT_TRUE(prefers(3, true));
      EXPECT_FALSE(prefers(1, true));
      EXPECT_EQ(owner == 1, prefers(2, false));
      EXPECT_FALSE(TypeParam::prefer_fuller(*this->pool_, bin + 1, this->SpanAt(2), owner, true));
      EXPECT_FALSE(TypeParam::prefer_fuller(*this->pool_, bin, this->SpanAt(9), owner, true)) << "no span";
    }
    ASSERT_TRUE(TypeParam::prefer_fuller(*this->pool_, bin, this->SpanAt(2), 1, true));
    EXPECT_EQ(this->SpanAt(1), TypeParam::take(*this->pool_, bin, 1, this->slots_, 1, true).span);
    this->Give(bin, {this->slots_[0]});
    for (std::size_t i = 0; i < std::size(kLeft); ++i)
      this->Give(bin, {out[i].begin(), out[i].begin() + kLeft[i]});
  }
}

TYPED_TEST(PoolContract, DoubleGivesAreRejected) {
  const Bin bin = 2;
  TypeParam::adopt(*this->pool_, this->SpanAt(9), bin, 1, true);
  const std::vector<void*> all = this->TakeAll(bin, 1);
  EXPECT_EQ(0u, this->Give(bin, {all[0], all[1]}).rejected);
  const hz::Given given = this->Give(bin, {all[2], all[0], all[3], all[1], all[2]});
  EXPECT_EQ(2u, given.kept);
  ASSERT_EQ(3u, given.rejected);
  EXPECT_EQ((std::vector<void*>{all[0], all[1], all[2]}), this->rejected_);
  EXPECT_EQ(4u, this->TakeAll(bin, 1).size()) << "each came back once";
}

TYPED_TEST(PoolContract, AChangeOfOwnerTellsTheRouteOfEverySlot) {
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    const std::uintptr_t span = this->SpanAt(1 + bin);
    if (hz::bin_slots(bin) < 2) continue;  // a span with its only slot back is emptied
    TypeParam::adopt(*this->pool_, span, bin, 1, true);
    std::vector<void*> all = this->TakeAll(bin, 1);
    this->Give(bin, {all[0]});
    const hz::Taken taken = this->Take(bin, 3, 10);
    ASSERT_EQ(1u, taken.slots);
    const std::size_t last_start = (hz::bin_slots(bin) - 1) * hz::bin_size(bin);
    EXPECT_EQ(0u, taken.first_page);
    EXPECT_GT(taken.first_page + taken.pages, last_start >> hz::kPageShift) << hz::bin_size(bin);
    this->Give(bin, {all[0]});
    EXPECT_EQ(0u, this->Take(bin, 3, 10).pages) << "the route knows already";
  }
}

TYPED_TEST(PoolContract, TellsTheClassOfWhatWasHandedOut) {
  const Bin bin = hz::scan_bin(3000);
  const std::uintptr_t span = this->SpanAt(4);
  TypeParam::adopt(*this->pool_, span, bin, 1, true);
  EXPECT_EQ(0u, TypeParam::bin_at(*this->pool_, span, span));
  const unsigned out = this->Take(bin, 1, 1).slots;
  EXPECT_EQ(bin, TypeParam::bin_at(*this->pool_, span, span));
  EXPECT_EQ(bin, TypeParam::bin_at(*this->pool_, span, span + out * hz::bin_size(bin) - 1));
  EXPECT_EQ(0u, TypeParam::bin_at(*this->pool_, span, span + out * hz::bin_size(bin)));
  EXPECT_EQ(0u, TypeParam::bin_at(*this->pool_, this->SpanAt(5), this->SpanAt(5)));
}

TYPED_TEST(PoolContract, ThreadsShareSpans) {
  constexpr unsigned kThreads = 4;
  const Bin bin = hz::scan_bin(100);
  constexpr std::size_t kSpans = 8;
  for (std::size_t i = 1; i <= kSpans; ++i) TypeParam::adopt(*this->pool_, this->SpanAt(i), bin, 0, true);
  std::vector<std::atomic<bool>> held(kSpans * hz::bin_slots(bin));
  std::atomic<bool> failed{false};
  std::atomic<unsigned> emptied_spans{0};
  const auto index = [&](void* slot) {
    const std::uintptr_t at = hz::address(slot) - this->SpanAt(1);
    return (at >> hz::kGranuleShift) * hz::bin_slots(bin) + (at & (hz::kGranule - 1)) / hz::bin_size(bin);
  };
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      std::mt19937 random(id);
      void* slots[3 * TestFixture::kMost];
      std::vector<std::uintptr_t> emptied;
      const OnProcessors processors;
      for (int round = 0; round < 2000; ++round) {
        // Of several spans, which may be on shelves of several processors.
        unsigned count = 0;
        for (unsigned takes = 0; takes < 3; ++takes) {
          if (random() % 16 == 0) processors.go_to(random());
          count += TakeListed<TypeParam>(*this->pool_, bin, id, slots + count, 1 + random() % 60).slots;
        }
        for (unsigned i = 0; i < count; ++i) {
          if (held[index(slots[i])].exchange(true)) failed = true;
        }
        for (unsigned i = 0; i < count; ++i) held[index(slots[i])] = false;
        if (count == 0) continue;
        std::shuffle(slots, slots + count, random);
        if (TypeParam::sift(*this->pool_, bin, slots, count) != count) failed = true;
        const hz::Given given = GiveListed<TypeParam>(*this->pool_, bin, slots, count, emptied);
        if (given.kept != count || given.rejected != 0) failed = true;
        for (const std::uintptr_t span : emptied) TypeParam::adopt(*this->pool_, span, bin, id, false);
        emptied_spans += emptied.size();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(failed) << "a slot in two hands, or one refused";
  EXPECT_EQ(held.size(), this->TakeAll(bin, 0).size());
}

#if defined(__x86_64__) && defined(__linux__)
// A child that is cut off from a change, anywhere in it: only slots that were in hand there may be lost.
TYPED_TEST(PoolContract, AChildThatIsCutOffIsWhole) {
  if (kUnderTool) GTEST_SKIP() << "a sanitizer's own state is not whole in such a child";
  constexpr std::size_t kSpans = 3;
  const OnProcessors processors;
  processors.go_to(0);
  const Bin bin = hz::scan_bin(5000);
  const std::size_t slots = kSpans * hz::bin_slots(bin);
  for (std::size_t i = 1; i <= kSpans; ++i) TypeParam::adopt(*this->pool_, this->SpanAt(i), bin, 0, true);
  std::vector<void*> held = this->TakeAll(bin, 0), in_hand;
  ASSERT_EQ(slots, held.size());
  const auto to_hand = [&](std::size_t count) {
    in_hand.insert(in_hand.end(), held.end() - static_cast<std::ptrdiff_t>(count), held.end());
    held.resize(held.size() - count);
  };
  bool empties = false;  // spans, which leave the pool then
  const auto in_child = [&] {
    TypeParam::make_whole(*this->pool_, [](auto visit) {
      for (std::size_t row = 1; row < TestFixture::kGranules; ++row) visit(row);
    });
    std::set<void*> out(held.begin(), held.end());
    for (unsigned round = 0; round < 2; ++round) {
      // Every second one goes back, so that no span comes to be empty; then all that is there is taken.
      unsigned number = 0;
      for (auto slot = out.begin(); slot != out.end(); ++number)
        slot = number % 2 == 0 && this->Give(bin, {*slot}).kept == 1 ? out.erase(slot) : std::next(slot);
      for (hz::Taken taken = this->Take(bin, 0, 5); taken.slots != 0; taken = this->Take(bin, 0, 5)) {
        for (unsigned i = 0; i < taken.slots; ++i)
          if (!out.insert(this->slots_[i]).second) return 2;
      }
    }
    const std::size_t all = out.size();
    return empties || all + in_hand.size() >= slots ? 0 : 3;
  };
  unsigned steps = 0, all = 0;
  const auto give = [&](std::size_t count) {
    to_hand(count);
    const unsigned wrong = ForkAfterEachInstruction(
        [&] { TypeParam::give(*this->pool_, bin, in_hand.data(), static_cast<unsigned>(count)); }, in_child,
        steps);
    in_hand.clear();
    all += steps;
    return wrong;
  };
  EXPECT_EQ(0u, give(6)) << "of full spans";
  for (const bool discarded : {false, true}) {
    const unsigned wrong = ForkAfterEachInstruction(
        [&] {
          for (std::size_t row = 1; row <= kSpans; ++row) {
            hz::FreePages pages = TypeParam::claim_pages(*this->pool_, row, false);
            if (!discarded) pages.pages = 0;
            if (pages.span != 0) TypeParam::settle_pages(*this->pool_, pages);
          }
        },
        in_child, steps);
    EXPECT_EQ(0u, wrong) << "pages that nobody has";
    all += steps;
  }
  for (const unsigned number : {0U, 1U}) {  // where it was given back, and from elsewhere
    processors.go_to(number);
    in_hand.resize(in_hand.size() + 2);
    EXPECT_EQ(
        0u, ForkAfterEachInstruction(
                [&] { TypeParam::take(*this->pool_, bin, number, this->slots_, 2, true); }, in_child, steps))
        << number;
    all += steps;
  }
  in_hand.clear();
  empties = true;
  EXPECT_EQ(0u, give(held.size()));
  EXPECT_GT(all, 300u) << "no changes have so few instructions";
}
#endif

// Pages of which no slot is out are named once, until slots of them were handed out again.
TYPED_TEST(PoolContract, FreePagesAreThoseWithoutASlotThatIsOut) {
  constexpr unsigned kPages = hz::kGranule >> hz::kPageShift;
  std::mt19937 random(5);
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    if (hz::is_large(bin)) continue;
    const std::size_t row = 1 + bin, size = hz::bin_size(bin);
    const std::uintptr_t span = this->SpanAt(row);
    TypeParam::adopt(*this->pool_, span, bin, 1, true);
    EXPECT_EQ(0u, TypeParam::claim_pages(*this->pool_, row, false).span) << "nothing was touched";
    std::vector<void*> out = this->TakeAll(bin, 1);
    EXPECT_EQ(0u, TypeParam::claim_pages(*this->pool_, row, false).span) << "all of them are out";
    std::shuffle(out.begin(), out.end(), random);
    const auto keep = static_cast<std::ptrdiff_t>(1 + random() % (out.size() / 8 + 1));
    this->Give(bin, {out.begin() + keep, out.end()});
    out.resize(static_cast<std::size_t>(keep));

    unsigned free = 0;
    const std::size_t end = hz::bin_slots(bin) * size;
    for (unsigned page = 0; page < kPages; ++page) {
      const std::uintptr_t at = span + page * hz::kPage;
      const bool is_out = std::any_of(out.begin(), out.end(), [&](const void* slot) {
        return hz::address(slot) < at + hz::kPage && hz::address(slot) + size > at;
      });
      if (!is_out && page * hz::kPage < end) free |= 1U << page;
    }
    hz::FreePages pages = TypeParam::claim_pages(*this->pool_, row, false);
    ASSERT_EQ(free == 0 ? 0 : span, pages.span) << size;
    if (free == 0) continue;
    ASSERT_EQ(free, pages.pages & free) << size;
    EXPECT_EQ(0u, this->Take(bin, 1, 1).slots) << "the span is nobody's for the moment";
    EXPECT_EQ(0u, TypeParam::claim_pages(*this->pool_, row, false).span);
    // Half of them go. What comes home meanwhile is welcome, and a second time it is not.
    pages.pages &= 0x5555;
    const hz::Given given = this->Give(bin, {out[0], out[0]});
    EXPECT_EQ(1u, given.kept);
    EXPECT_EQ(1u, given.rejected);
    EXPECT_EQ(0u, given.emptied);
    out.erase(out.begin());
    const std::uintptr_t emptied = TypeParam::settle_pages(*this->pool_, pages);
    EXPECT_EQ(out.empty() ? span : 0, emptied);
    if (out.empty()) continue;
    const hz::FreePages others = TypeParam::claim_pages(*this->pool_, row, false);
    EXPECT_EQ(0u, others.pages & pages.pages) << "they went already";
    if (others.span != 0) {
      EXPECT_EQ(0u, TypeParam::settle_pages(*this->pool_, {others.span, bin, 0}));
    }
    // Handed out again, and home again: they are there again.
    const std::vector<void*> again = this->TakeAll(bin, 1);
    EXPECT_EQ(hz::bin_slots(bin), again.size() + out.size());
    this->Give(bin, again);
    const hz::FreePages back = TypeParam::claim_pages(*this->pool_, row, false);
    EXPECT_EQ(pages.pages, back.pages & pages.pages);
    EXPECT_EQ(0u, TypeParam::settle_pages(*this->pool_, back));
    this->Give(bin, out);
    EXPECT_EQ(std::vector<std::uintptr_t>{span}, this->emptied_);
  }
}

// A span from which slots went, or to which they came, is passed over once.
TYPED_TEST(PoolContract, FreePagesOfASpanInUseAreNotNamed) {
  const Bin bin = hz::bin_for_size(hz::kPage / 2);
  const std::size_t row = 1;
  const std::uintptr_t span = this->SpanAt(row);
  TypeParam::adopt(*this->pool_, span, bin, 1, true);
  std::vector<void*> out = this->TakeAll(bin, 1);
  const auto names = [&](bool unused_only) {
    const hz::FreePages pages = TypeParam::claim_pages(*this->pool_, row, unused_only);
    if (pages.span != 0) TypeParam::settle_pages(*this->pool_, {pages.span, bin, 0});
    return std::pair{pages.pages != 0, pages.in_use};
  };
  using Named = std::pair<bool, bool>;
  const std::size_t most = out.size() / 2;
  while (out.size() > most) this->Give(bin, {out.back()}), out.pop_back();
  EXPECT_EQ(Named(false, true), names(true)) << "slots came home";
  EXPECT_EQ(Named(true, false), names(true));
  const hz::Taken taken = this->Take(bin, 1, 1);
  ASSERT_EQ(1u, taken.slots);
  out.push_back(this->slots_[0]);
  EXPECT_EQ(Named(true, false), names(false)) << "whoever asks for all of them gets them";
  EXPECT_EQ(Named(false, true), names(true)) << "a slot went";
  EXPECT_EQ(Named(true, false), names(true));
  this->Give(bin, out);
}

// What was discarded comes last: a slot that has memory goes out before one that must be given some.
TYPED_TEST(PoolContract, SlotsWithMemoryGoOutFirst) {
  const Bin bin = hz::bin_for_size(hz::kPage);
  std::vector<std::uintptr_t> spans;
  for (std::size_t row = 1; row <= 3; ++row) {
    spans.push_back(this->SpanAt(row));
    TypeParam::adopt(*this->pool_, spans.back(), bin, 1, true);
    const std::vector<void*> out = this->TakeAll(bin, 1);
    this->Give(bin, {out.begin() + 1, out.end()});
  }
  const std::size_t last = 3;  // the first in the list
  const hz::FreePages pages = TypeParam::claim_pages(*this->pool_, last, false);
  ASSERT_EQ(spans[last - 1], pages.span);
  EXPECT_EQ(0u, TypeParam::settle_pages(*this->pool_, pages));
  const unsigned others = 2 * (hz::bin_slots(bin) - 1U);
  for (unsigned i = 0; i < others; ++i) {
    const hz::Taken taken = this->Take(bin, 1, 1);
    ASSERT_EQ(1u, taken.slots);
    EXPECT_NE(spans[last - 1], taken.span) << i;
  }
  EXPECT_EQ(spans[last - 1], this->Take(bin, 1, 1).span);
}

}  // namespace
}  // namespace hz_test
