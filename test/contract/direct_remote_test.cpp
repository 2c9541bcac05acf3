// SPDX-License-Identifier: Apache-2.0
//
// The contract of a remote box without an outbox: what is deferred is sent, to the owner's queue while the owner lives
// and to the orphans' when it is gone; nothing is lost and nothing comes twice, whatever threads do at once.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "line/hz8.hpp"
#include "unit/region.hpp"

namespace hz_test {
namespace {

template <class R>
class DirectRemoteContract : public ::testing::Test {
 protected:
  static constexpr std::size_t kGranules = 64;

  DirectRemoteContract() : arena_(kGranules * hz::kGranule), table_(kGranules * R::kTableBytesPerGranule) {
    R::open(*global_, arena_.address(), table_.address(), kGranules);
    R::join(thread_, *global_);
    for (unsigned owner : {0u, 1u}) R::open_queues(*global_, owner);
  }
  void* Slot(std::size_t granule, hz::Bin bin, unsigned index) const {
    return arena_.bytes() + granule * hz::kGranule + index * hz::bin_size(bin);
  }
  // All that waits; a slot that comes twice fails.
  std::set<void*> Collect(unsigned owner, hz::Bin bin, unsigned want = 1000) {
    std::set<void*> all;
    for (;;) {
      const hz::SlotArray some = R::collect(*global_, owner, bin, want);
      EXPECT_LE(some.count, want);
      for (unsigned i = 0; i < some.count; ++i) EXPECT_TRUE(all.insert(some.slots[i]).second) << "twice";
      if (some.count == 0) return all;
    }
  }

  Region arena_, table_;
  std::unique_ptr<typename R::Global> global_ = std::make_unique<typename R::Global>();
  typename R::PerThread thread_;
};
using DirectRemotes = ::testing::Types<hz::Hz8::Remote>;
TYPED_TEST_SUITE(DirectRemoteContract, DirectRemotes);

TYPED_TEST(DirectRemoteContract, AThreadThatHasNotJoinedAdmitsNothing) {
  typename TypeParam::PerThread nobody;
  EXPECT_FALSE(TypeParam::admit(nobody, 0, 1));
  EXPECT_TRUE(TypeParam::admit(this->thread_, 0, 1));
}

TYPED_TEST(DirectRemoteContract, EverySlotOfEveryClassArrivesOnceAndByItsClass) {
  using R = TypeParam;
  std::size_t granule = 1;
  for (hz::Bin bin = 1; bin <= hz::kLastMediumBin; ++bin) {
    std::set<void*> sent;
    for (unsigned i = 0; i < hz::bin_slots(bin); ++i) {
      R::defer(this->thread_, 1, bin, this->Slot(granule, bin, i));
      sent.insert(this->Slot(granule, bin, i));
    }
    EXPECT_TRUE(this->Collect(0, bin).empty()) << "another owner";
    EXPECT_TRUE(this->Collect(1, bin == 1 ? 2 : bin - 1).empty()) << "another class";
    EXPECT_EQ(sent, this->Collect(1, bin, 7)) << hz::bin_size(bin);
    granule = granule % (this->kGranules - 1) + 1;
  }
}

TYPED_TEST(DirectRemoteContract, WhatIsNotWantedStaysQueued) {
  using R = TypeParam;
  for (std::size_t granule = 1; granule <= 20; ++granule)
    for (unsigned i = 0; i < 4; ++i) R::defer(this->thread_, 0, 20, this->Slot(granule, 20, i));
  EXPECT_EQ(3u, R::collect(*this->global_, 0, 20, 3).count);
  EXPECT_EQ(10u, R::collect(*this->global_, 0, 20, 10).count);
  R::defer(this->thread_, 0, 20, this->Slot(30, 20, 1));
  EXPECT_EQ(20u * 4 - 13 + 1, this->Collect(0, 20, 5).size());
}

TYPED_TEST(DirectRemoteContract, TheOrphansGetWhatComesForAnOwnerThatIsGone) {
  using R = TypeParam;
  R::defer(this->thread_, 1, 3, this->Slot(1, 3, 0));
  R::close_queues(*this->global_, 1);
  R::defer(this->thread_, 1, 3, this->Slot(2, 3, 0));
  EXPECT_EQ((std::set<void*>{this->Slot(1, 3, 0)}), this->Collect(1, 3)) << "what waited can still be collected";
  EXPECT_EQ((std::set<void*>{this->Slot(2, 3, 0)}), this->Collect(R::kOrphans, 3));
  R::defer(this->thread_, 7, 3, this->Slot(3, 3, 0));
  EXPECT_EQ(1u, this->Collect(R::kOrphans, 3).size()) << "an owner that never lived";
  R::open_queues(*this->global_, 1);
  R::defer(this->thread_, 1, 3, this->Slot(2, 3, 0));
  EXPECT_EQ(1u, this->Collect(1, 3).size()) << "its next life";
}

// The bit of a slot may be collected before its span is queued for it; by then the span may have another class.
TYPED_TEST(DirectRemoteContract, ASpanThatChangedItsClassIsCollectedByItsNewOne) {
  using R = TypeParam;
  R::defer(this->thread_, 0, 9, this->Slot(5, 9, 3));
  typename R::Entry& entry = this->global_->entries[5];
  ASSERT_EQ(1u, this->Collect(0, 9).size());
  // As a freer leaves it that was interrupted after its bit was collected: queued for nothing.
  entry.mark = R::kQueued;
  this->global_->of_owner[0].of_bin[9] = this->global_->of_owner[0].of_bin[9] | 5;
  R::defer(this->thread_, 0, 30, this->Slot(5, 30, 1));
  EXPECT_TRUE(this->Collect(0, 9).empty());
  EXPECT_EQ((std::set<void*>{this->Slot(5, 30, 1)}), this->Collect(0, 30));
}

// The bit of a word that the collector has taken already: it must not leave the span idle.
TYPED_TEST(DirectRemoteContract, WhoFreesWhileASpanIsDrainedMakesItDirty) {
  using R = TypeParam;
  typename R::Entry& entry = this->global_->entries[4];
  entry.mark = R::kDraining;
  R::defer(this->thread_, 0, 8, this->Slot(4, 8, 1));
  EXPECT_EQ(R::kDirty, entry.mark.load());
  R::defer(this->thread_, 0, 8, this->Slot(4, 8, 2));
  EXPECT_EQ(R::kDirty, entry.mark.load());
  EXPECT_TRUE(this->Collect(0, 8).empty()) << "the collector queues it, not the freer";
}

TYPED_TEST(DirectRemoteContract, TheBudgetGrowsWithTheBacklog) {
  using R = TypeParam;
  EXPECT_EQ(0u, R::budget(*this->global_, this->thread_, 0, 4));
  R::defer(this->thread_, 0, 4, this->Slot(1, 4, 0));
  unsigned last = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned budget = R::budget(*this->global_, this->thread_, 0, 4);
    EXPECT_GT(budget, last);
    last = budget;
  }
  this->Collect(0, 4);
  EXPECT_EQ(0u, R::budget(*this->global_, this->thread_, 0, 4));
}

TYPED_TEST(DirectRemoteContract, WhoSendsALotIsToHelp) {
  using R = TypeParam;
  for (hz::Bin bin : {hz::Bin{1}, hz::scan_bin(4096), hz::kLastBin}) {
    for (int round = 0; round < 2; ++round) {
      std::size_t sends = 1;
      while (!R::help_due(this->thread_, bin)) ++sends;
      EXPECT_GE(sends * hz::bin_size(bin), hz::Hz8::kSentBytes);
      EXPECT_TRUE(sends == 16 || (sends > 16 && (sends - 1) * hz::bin_size(bin) < hz::Hz8::kSentBytes)) << sends;
      R::helped(this->thread_);
    }
  }
}

TYPED_TEST(DirectRemoteContract, SomethingWaitsUntilItWasAsked) {
  using R = TypeParam;
  EXPECT_FALSE(R::something_waits(*this->global_));
  R::defer(this->thread_, 0, 4, this->Slot(1, 4, 0));
  EXPECT_TRUE(R::something_waits(*this->global_));
  EXPECT_FALSE(R::something_waits(*this->global_));
}

// A fork cuts a thread off between marking a span and queueing it.
TYPED_TEST(DirectRemoteContract, AChildFinishesWhatItsLostThreadsBegan) {
  using R = TypeParam;
  R::defer(this->thread_, 0, 6, this->Slot(8, 6, 2));
  this->global_->of_owner[0].of_bin[6] = this->global_->of_owner[0].of_bin[6] & ~std::uint64_t{UINT32_MAX};
  this->thread_.pushing.set(8);
  ASSERT_TRUE(this->Collect(0, 6).empty()) << "marked, and in no queue";
  R::finish(*this->global_, this->thread_);
  R::finish(*this->global_, this->thread_);
  EXPECT_EQ(1u, this->Collect(R::kOrphans, 6).size());
}

// Strangers free, owners collect and hand out again, one owner lives and dies: every slot goes round.
TYPED_TEST(DirectRemoteContract, ThreadsLoseNothingAndGetNothingTwice) {
  using R = TypeParam;
  constexpr hz::Bin kBin = 12;
  constexpr unsigned kSlots = 32, kSpans = 4, kRounds = 300;
  struct Passed {
    std::atomic<bool> deferred{false};
    unsigned rounds = 0;  // plain: whoever collects sees what the freer wrote
  };
  std::vector<Passed> slots(kSlots * kSpans);
  std::atomic<bool> failed{false};
  std::atomic<std::size_t> done{0};
  const auto run = [&](unsigned id) {
    typename R::PerThread me;
    R::join(me, *this->global_);
    std::mt19937 random(id);
    const auto defer = [&](std::size_t i) {
      ++slots[i].rounds;
      slots[i].deferred = true;
      R::defer(me, random() % 2, kBin, this->Slot(1 + i / kSlots, kBin, i % kSlots));
    };
    for (std::size_t i = id; i < slots.size(); i += 4) defer(i);
    for (unsigned idle = 0; done.load() < slots.size() && idle < 200000 && !failed;) {
      if (id == 0 && random() % 8 == 0) {
        R::close_queues(*this->global_, 1);
        R::open_queues(*this->global_, 1);
      }
      const unsigned owner = random() % 3 == 0 ? R::kOrphans : random() % 2;
      const hz::SlotArray some = R::collect(*this->global_, owner, kBin, 1 + random() % 9);
      idle = some.count == 0 ? idle + 1 : 0;
      if (some.count == 0) std::this_thread::yield();
      for (unsigned k = 0; k < some.count; ++k) {
        const std::size_t offset = hz::address(some.slots[k]) - this->arena_.address();
        const std::size_t i = (offset / hz::kGranule - 1) * kSlots + offset % hz::kGranule / hz::bin_size(kBin);
        if (!slots[i].deferred.exchange(false)) failed = true;
        if (slots[i].rounds < kRounds) {
          defer(i);
        } else {
          ++done;
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < 4; ++id) threads.emplace_back(run, id);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(failed) << "a slot came twice";
  EXPECT_EQ(slots.size(), done.load()) << "some were lost";
}

}  // namespace
}  // namespace hz_test
