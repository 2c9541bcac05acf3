// SPDX-License-Identifier: Apache-2.0
//
// The contract of an exchange without an outbox: what is deferred is sent, to the owner's queue while the
// owner lives and to the orphans' when it is gone; nothing is lost and nothing comes twice, whatever threads
// do at once.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "contract/exchange_boxes.hpp"
#include "support/on_processors.hpp"
#include "unit/region.hpp"
#include "unit/slots.hpp"

namespace hz_test {
namespace {

// Two threads that meet in rounds, each on a processor of its own if there are two: those that wait for each
// other would else come to share one.
class Meeting {
 public:
  Meeting() { processors_.go_to(0); }
  ~Meeting() {
    begun_ = kEnd;
    other_.join();
  }
  // `turn`(round) is the other thread's part.
  template <class Turn>
  void Start(Turn turn) {
    other_ = std::thread([this, turn] {
      processors_.go_to(processors_.count() - 1);
      for (unsigned round = 0; WaitBeyond(begun_, round) != kEnd; ended_ = round) turn(++round);
    });
  }
  void Begin() { ++begun_; }
  void End() { WaitBeyond(ended_, begun_ - 1); }

 private:
  static constexpr unsigned kEnd = ~0U;

  static unsigned WaitBeyond(const std::atomic<unsigned>& word, unsigned value) {
    for (unsigned spins = 1; word.load() == value; ++spins)
      spins % 512 == 0 ? std::this_thread::yield() : hz::pause();
    return word.load();
  }

  const OnProcessors processors_;
  std::atomic<unsigned> begun_{0}, ended_{0};
  std::thread other_;
};

// Whether to go on after so long: for a second, and longer while `met` is false, because the machine is busy.
bool GoesOn(std::chrono::steady_clock::time_point start, bool met) {
  const auto spent = std::chrono::steady_clock::now() - start;
  return spent < std::chrono::seconds(met ? 1 : 60);
}

void Dally(unsigned pauses) {
  while (pauses-- != 0) hz::pause();
}

template <class R>
class UntoldContract : public ::testing::Test {
 protected:
  static constexpr std::size_t kGranules = 64;

  UntoldContract() : arena_(kGranules * hz::kGranule), table_(kGranules * R::kTableBytesPerGranule) {
    R::open(*global_, arena_.address(), table_.address(), kGranules);
    R::join(thread_, *global_);
    for (unsigned owner : {0u, 1u}) R::carried(*global_, owner);
  }
  void* Slot(std::size_t granule, hz::Bin bin, unsigned index) const {
    return arena_.bytes() + granule * hz::kGranule + index * hz::bin_size(bin);
  }
  unsigned CollectSome(unsigned owner, hz::Bin bin, unsigned want) {
    std::vector<void*> slots(want);
    hz::SlotArray some{slots.data(), 0};
    R::collect(*global_, owner, bin, want, some);
    return some.count;
  }
  // All that waits; a slot that comes twice fails.
  std::set<void*> Collect(unsigned owner, hz::Bin bin, unsigned want = BufferOf<hz::SlotArray>::kSlots) {
    std::set<void*> all;
    for (;;) {
      BufferOf<hz::SlotArray> buffer;
      hz::SlotArray some = buffer.empty();
      R::collect(*global_, owner, bin, want, some);
      EXPECT_LE(some.count, want);
      for (unsigned i = 0; i < some.count; ++i) EXPECT_TRUE(all.insert(some.slots[i]).second) << "twice";
      if (some.count == 0) return all;
    }
  }

  Region arena_, table_;
  std::unique_ptr<typename R::Global> global_ = std::make_unique<typename R::Global>();
  typename R::PerThread thread_;
};
TYPED_TEST_SUITE(UntoldContract, UntoldBoxes);

TYPED_TEST(UntoldContract, AThreadThatHasNotJoinedAdmitsNothing) {
  typename TypeParam::PerThread nobody;
  EXPECT_FALSE(TypeParam::admit(nobody, 0, 1));
  EXPECT_TRUE(TypeParam::admit(this->thread_, 0, 1));
}

TYPED_TEST(UntoldContract, EverySlotOfEveryClassArrivesOnceAndByItsClass) {
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

TYPED_TEST(UntoldContract, WhatIsNotWantedStaysQueued) {
  using R = TypeParam;
  for (std::size_t granule = 1; granule <= 20; ++granule)
    for (unsigned i = 0; i < 4; ++i) R::defer(this->thread_, 0, 20, this->Slot(granule, 20, i));
  EXPECT_EQ(3u, this->CollectSome(0, 20, 3));
  EXPECT_EQ(10u, this->CollectSome(0, 20, 10));
  R::defer(this->thread_, 0, 20, this->Slot(30, 20, 1));
  EXPECT_EQ(20u * 4 - 13 + 1, this->Collect(0, 20, 5).size());
}

TYPED_TEST(UntoldContract, TheOrphansGetWhatComesForAnOwnerThatIsGone) {
  using R = TypeParam;
  R::defer(this->thread_, 1, 3, this->Slot(1, 3, 0));
  R::left(*this->global_, 1);
  R::defer(this->thread_, 1, 3, this->Slot(2, 3, 0));
  EXPECT_EQ((std::set<void*>{this->Slot(1, 3, 0)}), this->Collect(1, 3))
      << "what waited can still be collected";
  EXPECT_EQ((std::set<void*>{this->Slot(2, 3, 0)}), this->Collect(R::kOrphans, 3));
  R::defer(this->thread_, 7, 3, this->Slot(3, 3, 0));
  EXPECT_EQ(1u, this->Collect(R::kOrphans, 3).size()) << "an owner that never lived";
  R::carried(*this->global_, 1);
  R::defer(this->thread_, 1, 3, this->Slot(2, 3, 0));
  EXPECT_EQ(1u, this->Collect(1, 3).size()) << "its next life";
}

// The bit of a slot may be collected before its span is queued for it; by then the span may have another
// class.
TYPED_TEST(UntoldContract, ASpanThatChangedItsClassIsCollectedByItsNewOne) {
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
TYPED_TEST(UntoldContract, WhoFreesWhileASpanIsDrainedMakesItDirty) {
  using R = TypeParam;
  typename R::Entry& entry = this->global_->entries[4];
  entry.mark = R::kDraining;
  R::defer(this->thread_, 0, 8, this->Slot(4, 8, 1));
  EXPECT_EQ(R::kDirty, entry.mark.load());
  R::defer(this->thread_, 0, 8, this->Slot(4, 8, 2));
  EXPECT_EQ(R::kDirty, entry.mark.load());
  EXPECT_TRUE(this->Collect(0, 8).empty()) << "the collector queues it, not the freer";
}

TYPED_TEST(UntoldContract, TheBudgetGrowsWithTheBacklog) {
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

TYPED_TEST(UntoldContract, WhoSendsALotIsToHelp) {
  using R = TypeParam;
  for (hz::Bin bin : {hz::Bin{1}, hz::scan_bin(4096), hz::kLastBin}) {
    for (int round = 0; round < 2; ++round) {
      std::size_t sends = 1;
      while (!R::help_due(this->thread_, bin)) ++sends;
      EXPECT_GE(sends * hz::bin_size(bin), hz::Hz8::kSentBytes);
      EXPECT_TRUE(sends == 16 || (sends > 16 && (sends - 1) * hz::bin_size(bin) < hz::Hz8::kSentBytes))
          << sends;
      R::helped(this->thread_);
    }
  }
}

TYPED_TEST(UntoldContract, SomethingWaitsUntilItWasAsked) {
  using R = TypeParam;
  EXPECT_FALSE(R::something_waits(*this->global_));
  R::defer(this->thread_, 0, 4, this->Slot(1, 4, 0));
  EXPECT_TRUE(R::something_waits(*this->global_));
  EXPECT_FALSE(R::something_waits(*this->global_));
  R::defer(this->thread_, 0, 4, this->Slot(2, 4, 0));
  EXPECT_TRUE(R::something_waits(*this->global_));
  EXPECT_EQ(1u, this->CollectSome(0, 4, 1));
  EXPECT_TRUE(R::something_waits(*this->global_))
      << "who looked while the queue was in the other's hands found nothing";
  EXPECT_EQ(1u, this->Collect(0, 4).size());
  EXPECT_FALSE(R::something_waits(*this->global_));
}

// A fork cuts a thread off between marking a span and queueing it.
TYPED_TEST(UntoldContract, AChildFinishesWhatItsLostThreadsBegan) {
  using R = TypeParam;
  R::defer(this->thread_, 0, 6, this->Slot(8, 6, 2));
  this->global_->of_owner[0].of_bin[6] = this->global_->of_owner[0].of_bin[6] & ~std::uint64_t{UINT32_MAX};
  this->thread_.pushing.set(8);
  ASSERT_TRUE(this->Collect(0, 6).empty()) << "marked, and in no queue";
  R::finish(*this->global_, this->thread_);
  R::finish(*this->global_, this->thread_);
  EXPECT_EQ(1u, this->Collect(R::kOrphans, 6).size());
}

// A span was queued for a bit that was collected before the push, and has another class since: it is in a
// queue, though not in one of its class, and a second push would cut off what comes after it there.
TYPED_TEST(UntoldContract, AChildFindsASpanInTheQueueOfTheClassThatItHadBefore) {
  using R = TypeParam;
  R::defer(this->thread_, 1, 9, this->Slot(7, 9, 1));
  R::defer(this->thread_, 1, 9, this->Slot(5, 9, 3));
  this->global_->bits.of(9).word(5, 0) = 0;  // collected before its span was queued
  R::defer(this->thread_, 0, 30, this->Slot(5, 30, 1));
  this->thread_.pushing.set(5);  // cut off after its push
  R::finish(*this->global_, this->thread_);
  EXPECT_TRUE(this->Collect(R::kOrphans, 30).empty()) << "in two queues";
  EXPECT_EQ((std::set<void*>{this->Slot(7, 9, 1)}), this->Collect(1, 9));
  EXPECT_EQ((std::set<void*>{this->Slot(5, 30, 1)}), this->Collect(1, 30));
}

// A thread to come takes over the state; another fork may find it before it frees anything for others.
TYPED_TEST(UntoldContract, AChildDoesNotFinishAgainWhatItHasFinished) {
  using R = TypeParam;
  R::defer(this->thread_, 0, 6, this->Slot(8, 6, 2));
  this->thread_.pushing.set(8);
  R::finish(*this->global_, this->thread_);
  EXPECT_EQ(1u, this->Collect(0, 6).size());
  R::finish(*this->global_, this->thread_);
  EXPECT_EQ(R::kIdle, this->global_->entries[8].mark.load()) << "queued for nothing";
}

// Whoever collects gives back what is too many. Meanwhile the owner may have gone, and its queue be looked
// through.
TYPED_TEST(UntoldContract, NothingIsGivenBackToAQueueThatWasClosedMeanwhile) {
  using R = TypeParam;
  constexpr hz::Bin kBin = hz::scan_bin(1024);
  constexpr unsigned kFull = 20,
                     kEmpty = 40;  // the collector is long at those from which others were quicker
  Meeting meeting;
  meeting.Start([&](unsigned) { this->CollectSome(1, kBin, 1); });
  std::size_t stranded = 0, orphans = 0;
  std::mt19937 random(1);
  for (const auto start = std::chrono::steady_clock::now(); GoesOn(start, stranded + orphans != 0);) {
    for (unsigned span = 1; span <= kFull + kEmpty; ++span)
      R::defer(this->thread_, 1, kBin, this->Slot(span, kBin, 0));
    for (unsigned span = kFull + 1; span <= kFull + kEmpty; ++span)
      this->global_->bits.of(kBin).word(span, 0) = 0;
    meeting.Begin();
    Dally(random() % 64);
    R::left(*this->global_, 1);
    this->Collect(1, kBin);
    meeting.End();
    stranded += this->Collect(1, kBin).size();
    orphans += this->Collect(R::kOrphans, kBin).size();
    R::carried(*this->global_, 1);
  }
  EXPECT_EQ(0u, stranded);
  EXPECT_NE(0u, orphans) << "no queue was ever closed in the middle of a look";
}

// Strangers free, owners collect and hand out again, one owner lives and dies: every slot goes round.
TYPED_TEST(UntoldContract, ThreadsLoseNothingAndGetNothingTwice) {
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
        R::left(*this->global_, 1);
        R::carried(*this->global_, 1);
      }
      const unsigned owner = random() % 3 == 0 ? R::kOrphans : random() % 2;
      BufferOf<hz::SlotArray> buffer;
      hz::SlotArray some = buffer.empty();
      R::collect(*this->global_, owner, kBin, 1 + random() % 9, some);
      idle = some.count == 0 ? idle + 1 : 0;
      if (some.count == 0) std::this_thread::yield();
      for (unsigned k = 0; k < some.count; ++k) {
        const std::size_t offset = hz::address(some.slots[k]) - this->arena_.address();
        const std::size_t i =
            (offset / hz::kGranule - 1) * kSlots + offset % hz::kGranule / hz::bin_size(kBin);
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

// Spans of many words, of which only the last has a bit when the collector comes. It reads the others as zero
// and passes them by, while a stranger sets a bit in the first and reads the mark: one of the two has to see
// the other. If the collector's mark may wait in its core's store buffer while it reads the words, neither
// does, and the span is left idle with a bit that nobody looks for.
TYPED_TEST(UntoldContract, ABitSetInAWordThatTheCollectorPassesByIsFoundByOneOfThem) {
  using R = TypeParam;
  constexpr hz::Bin kBin = 1;
  constexpr unsigned kSpans = 48;
  const unsigned last = hz::bin_slots(kBin) - 1;
  ASSERT_GE(last / 64, 32u) << "many words";
  typename R::PerThread stranger;
  R::join(stranger, *this->global_);
  Meeting meeting;
  meeting.Start([&](unsigned round) {
    for (unsigned span = kSpans; span != 0; --span)
      R::defer(stranger, 0, kBin, this->Slot(span, kBin, round % 64));
  });
  std::size_t met = 0, left = 0, lost = 0;
  std::mt19937 random(1);
  for (const auto start = std::chrono::steady_clock::now(); GoesOn(start, met != 0 && left != 0);) {
    for (unsigned span = 1; span <= kSpans; ++span)
      R::defer(this->thread_, 0, kBin, this->Slot(span, kBin, last));
    meeting.Begin();
    Dally(random() % 128);
    const unsigned first = this->CollectSome(0, kBin, 1000);
    meeting.End();
    const std::size_t rest = this->Collect(0, kBin).size();
    met += first > kSpans ? 1 : 0;
    left += rest;
    lost += 2 * kSpans - first - rest;
    for (unsigned span = 1; span <= kSpans; ++span)
      this->global_->bits.of(kBin).word(span, 0) = 0;  // of rounds to come
  }
  EXPECT_EQ(0u, lost) << "bits whose span is in no queue";
  EXPECT_NE(0u, met) << "the collector never found what the stranger had just freed";
  EXPECT_NE(0u, left) << "the stranger was never too late";
}

}  // namespace
}  // namespace hz_test
