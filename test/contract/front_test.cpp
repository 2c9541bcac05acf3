// SPDX-License-Identifier: Apache-2.0
//
// The contract of a front: a thread's bins.
#include "box/front/contract.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "contract/front_boxes.hpp"
#include "unit/slots.hpp"

namespace hz_test {
namespace {

template <class F>
class FrontContract : public ::testing::Test {
 protected:
  static constexpr hz::Bin kBin = 3;

  bool Put(void* slot, hz::Bin bin = kBin) {
    if (F::admit(thread_, bin, slot)) {
      F::put(thread_, bin, slot);
      return true;
    }
    F::turn_away(thread_, bin);
    return false;
  }
  std::set<void*> PopAll(hz::Bin bin = kBin) {
    std::set<void*> all;
    while (void* slot = F::pop(thread_, bin)) EXPECT_TRUE(all.insert(slot).second) << "the same slot twice";
    return all;
  }

  FrontContract() { F::join(thread_, *store_); }
  ~FrontContract() override {
    if (F::kInBand) return;  // the slots are gone, and with them the links
    F::reconcile(thread_);
    for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
      while (!Drain(bin, ~0U).empty()) {
      }
    }
    F::leave(thread_);
  }
  void Fill(Slots& slots, std::size_t count) {
    auto bundle = F::space(thread_, kBin, static_cast<unsigned>(count));
    for (std::size_t i = 0; i < count; ++i) bundle.push(slots[i]);
    F::fill(thread_, kBin, bundle);
  }
  std::vector<void*> Drain(hz::Bin bin, unsigned n) {
    const auto bundle = F::drain(thread_, bin, n);
    const std::vector<void*> drained = Listed(bundle);
    F::drained(thread_, bin, bundle.count);
    return drained;
  }

  std::unique_ptr<typename F::Store> store_ = std::make_unique<typename F::Store>();
  typename F::PerThread thread_{};
};
TYPED_TEST_SUITE(FrontContract, FrontBoxes);

TYPED_TEST(FrontContract, ANewBinGivesAndAdmitsNothing) {
  using F = TypeParam;
  Slots slots(1);
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    EXPECT_EQ(nullptr, F::pop(this->thread_, bin));
    EXPECT_EQ(0u, F::count(this->thread_, bin));
    EXPECT_EQ(0u, F::capacity(this->thread_, bin));
    EXPECT_FALSE(this->Put(slots[0], bin));
    EXPECT_EQ(0u, F::count(this->thread_, bin));
    EXPECT_EQ(nullptr, F::pop(this->thread_, bin));
    EXPECT_TRUE(this->Drain(bin, 10).empty());
  }
}

// Nobody clears what a thread's store held when another thread gets it, which may come to its bins in another
// order.
TYPED_TEST(FrontContract, AStoreThatAnotherThreadLeftShowsNothingOfIt) {
  using F = TypeParam;
  Slots slots(16);
  for (int order : {1, -1, 1}) {
    for (int i = 1; i < static_cast<int>(hz::kBins); ++i) {
      const auto bin = static_cast<hz::Bin>(order > 0 ? i : static_cast<int>(hz::kBins) - i);
      const unsigned capacity = std::min(F::most(bin), 16U);
      F::set_capacity(this->thread_, bin, capacity);
      EXPECT_EQ(nullptr, F::pop(this->thread_, bin)) << "bin " << bin;
      for (unsigned n = 0; n < capacity; ++n) ASSERT_TRUE(this->Put(slots[n], bin));
      this->PopAll(bin);
    }
    F::leave(this->thread_);
    std::destroy_at(&this->thread_);
    std::construct_at(&this->thread_);
    F::join(this->thread_, *this->store_);
  }
}

TYPED_TEST(FrontContract, AdmitsUpToItsCapacityAndGivesItBack) {
  using F = TypeParam;
  Slots slots(9);
  F::set_capacity(this->thread_, this->kBin, 8);
  EXPECT_EQ(8u, F::capacity(this->thread_, this->kBin));
  for (int round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < 8; ++i) {
      ASSERT_TRUE(this->Put(slots[i]));
      EXPECT_EQ(i + 1, F::count(this->thread_, this->kBin));
    }
    for (int refused = 0; refused < 3; ++refused) EXPECT_FALSE(this->Put(slots[8]));
    EXPECT_EQ(8u, F::count(this->thread_, this->kBin));
    EXPECT_EQ(8u, this->PopAll().size());
    EXPECT_EQ(0u, F::count(this->thread_, this->kBin));
  }
}

TYPED_TEST(FrontContract, BinsKnowNothingOfEachOther) {
  using F = TypeParam;
  Slots slots(hz::kBins);
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    F::set_capacity(this->thread_, bin, 1);
    ASSERT_TRUE(this->Put(slots[bin], bin));
  }
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    EXPECT_EQ(1u, F::count(this->thread_, bin));
    EXPECT_EQ(slots[bin], F::pop(this->thread_, bin));
  }
}

TYPED_TEST(FrontContract, ABinGrowsWithWhatItHolds) {
  using F = TypeParam;
  constexpr hz::Bin kNext = TestFixture::kBin + 1;
  Slots slots(65);
  F::set_capacity(this->thread_, kNext, 1);
  ASSERT_TRUE(this->Put(slots[64], kNext));
  unsigned held = 0;
  for (unsigned capacity : {1U, 15U, 16U, 17U, 28U, 20U, 29U}) {
    F::set_capacity(this->thread_, this->kBin, capacity);
    for (; held < capacity; ++held) ASSERT_TRUE(this->Put(slots[held])) << held;
    EXPECT_EQ(held, F::count(this->thread_, this->kBin));
  }
  while (held > 0) ASSERT_EQ(slots[--held], F::pop(this->thread_, this->kBin)) << held;
  EXPECT_EQ(nullptr, F::pop(this->thread_, this->kBin));
  EXPECT_EQ(slots[64], F::pop(this->thread_, kNext));
}

TYPED_TEST(FrontContract, ABatchHasRoomForWhatTheBinMayHold) {
  using F = TypeParam;
  constexpr hz::Bin kNext = TestFixture::kBin + 1;
  Slots slots(21);
  F::set_capacity(this->thread_, kNext, 1);
  ASSERT_TRUE(this->Put(slots[20], kNext));
  F::set_capacity(this->thread_, this->kBin, 20);
  this->Fill(slots, 20);
  EXPECT_EQ(20u, this->PopAll().size());
  EXPECT_EQ(slots[20], F::pop(this->thread_, kNext));
}

TYPED_TEST(FrontContract, ABatchMayBeLongerThanTheBin) {
  using F = TypeParam;
  if (!F::kInBand) GTEST_SKIP() << "its arrays are as long as the bins may be";
  Slots slots(20);
  F::set_capacity(this->thread_, this->kBin, 4);
  ASSERT_TRUE(this->Put(slots[19]));
  this->Fill(slots, 19);
  EXPECT_EQ(20u, F::count(this->thread_, this->kBin));
  EXPECT_EQ(4u, F::capacity(this->thread_, this->kBin));
  Slots more(1);
  for (unsigned left = 20; left > 4; --left) {
    EXPECT_FALSE(this->Put(more[0])) << left;
    EXPECT_NE(nullptr, F::pop(this->thread_, this->kBin));
  }
  EXPECT_NE(nullptr, F::pop(this->thread_, this->kBin));
  EXPECT_TRUE(this->Put(more[0]));
  EXPECT_EQ(4u, this->PopAll().size());
}

TYPED_TEST(FrontContract, DrainsAtMostWhatIsAsked) {
  using F = TypeParam;
  Slots slots(10);
  F::set_capacity(this->thread_, this->kBin, 10);
  this->Fill(slots, 10);
  EXPECT_TRUE(this->Drain(this->kBin, 0).empty());
  std::set<void*> seen;
  for (unsigned expected : {4u, 4u, 2u, 0u}) {
    const std::vector<void*> drained = this->Drain(this->kBin, 4);
    ASSERT_EQ(expected, drained.size());
    F::check(this->thread_, this->kBin);
    for (void* slot : drained) EXPECT_TRUE(seen.insert(slot).second);
  }
  EXPECT_EQ(10u, seen.size());
  EXPECT_EQ(nullptr, F::pop(this->thread_, this->kBin));
}

TYPED_TEST(FrontContract, DrainsAllOfIt) {
  using F = TypeParam;
  Slots slots(10);
  F::set_capacity(this->thread_, this->kBin, 10);
  this->Fill(slots, 10);
  EXPECT_EQ(10u, this->Drain(this->kBin, ~0u).size());
  EXPECT_EQ(0u, F::count(this->thread_, this->kBin));
}

TYPED_TEST(FrontContract, ASmallerCapacityLosesNothing) {
  using F = TypeParam;
  Slots slots(10);
  F::set_capacity(this->thread_, this->kBin, 10);
  this->Fill(slots, 10);
  F::set_capacity(this->thread_, this->kBin, 2);
  EXPECT_EQ(10u, F::count(this->thread_, this->kBin));
  EXPECT_EQ(2u, F::capacity(this->thread_, this->kBin));
  Slots more(1);
  EXPECT_FALSE(this->Put(more[0]));
  EXPECT_EQ(10u, this->PopAll().size());
}

TYPED_TEST(FrontContract, KnowsWhatCameLast) {
  using F = TypeParam;
  Slots slots(3);
  F::set_capacity(this->thread_, this->kBin, 4);
  EXPECT_FALSE(F::is_latest(this->thread_, this->kBin, slots[0]));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(this->Put(slots[i]));
  EXPECT_FALSE(F::is_latest(this->thread_, this->kBin, slots[0]));
  EXPECT_TRUE(F::is_latest(this->thread_, this->kBin, slots[1]));
  EXPECT_FALSE(F::is_latest(this->thread_, this->kBin, slots[2]));
}

TYPED_TEST(FrontContract, BeforeItJoinsAThreadHasNothingAndTakesNothing) {
  using F = TypeParam;
  typename F::PerThread nobody{};
  Slots slots(1);
  for (int round = 0; round < 3; ++round) {
    for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
      EXPECT_EQ(nullptr, F::pop(nobody, bin));
      EXPECT_FALSE(F::admit(nobody, bin, slots[0]));
      F::turn_away(nobody, bin);
    }
  }
}

// A thread may be cut between the two steps of a put when another one forks; its bins go to the child.
TYPED_TEST(FrontContract, ReconcilingForgetsAPutThatNeverCame) {
  using F = TypeParam;
  Slots slots(8);
  F::set_capacity(this->thread_, this->kBin, 8);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(this->Put(slots[i]));
  ASSERT_TRUE(F::admit(this->thread_, this->kBin, slots[3]));
  F::reconcile(this->thread_);
  F::check(this->thread_, this->kBin);
  EXPECT_EQ(3u, F::count(this->thread_, this->kBin));
  EXPECT_EQ(8u, F::capacity(this->thread_, this->kBin));
  for (int i = 3; i < 8; ++i) EXPECT_TRUE(this->Put(slots[i]));
  EXPECT_EQ(8u, this->PopAll().size());
}

TYPED_TEST(FrontContract, SeizedSlotsAreGoneAndCounted) {
  using F = TypeParam;
  Slots slots(8);
  F::set_capacity(this->thread_, this->kBin, 8);
  this->Fill(slots, 5);
  const std::uint64_t before = F::signature(this->thread_);
  EXPECT_EQ(before, F::signature(this->thread_));
  ASSERT_NE(nullptr, F::detach(this->thread_, this->kBin));
  EXPECT_NE(before, F::signature(this->thread_));
  EXPECT_TRUE(F::accounts_for(this->thread_, this->kBin, 5));
  EXPECT_FALSE(F::accounts_for(this->thread_, this->kBin, 4));
  EXPECT_EQ(0u, F::count(this->thread_, this->kBin));
  EXPECT_EQ(nullptr, F::pop(this->thread_, this->kBin));
  ASSERT_TRUE(this->Put(slots[5]));
  EXPECT_FALSE(F::accounts_for(this->thread_, this->kBin, 5));
  EXPECT_EQ(1u, F::count(this->thread_, this->kBin));
  F::reconcile(this->thread_);
  F::check(this->thread_, this->kBin);
  EXPECT_EQ(1u, F::count(this->thread_, this->kBin));
  EXPECT_EQ(8u, F::capacity(this->thread_, this->kBin));
  EXPECT_EQ(1u, this->PopAll().size());
}

TYPED_TEST(FrontContract, AGlanceTellsABinThatWasUsed) {
  using F = TypeParam;
  Slots slots(5);
  F::set_capacity(this->thread_, this->kBin, 8);
  this->Fill(slots, 4);
  const std::uint16_t before = F::fingerprint(this->thread_, this->kBin);
  EXPECT_EQ(before, F::fingerprint(this->thread_, this->kBin));
  void* slot = F::pop(this->thread_, this->kBin);
  EXPECT_NE(before, F::fingerprint(this->thread_, this->kBin));
  ASSERT_TRUE(F::admit(this->thread_, this->kBin, slot));
  F::put(this->thread_, this->kBin, slot);
  EXPECT_EQ(before, F::fingerprint(this->thread_, this->kBin)) << "the same slots in the same order";
}

// The owner was about to touch the bin when its list was taken, and has, or has not.
TYPED_TEST(FrontContract, AListInDisputeComesBackUnlessTheOwnerHasIt) {
  using F = TypeParam;
  for (const bool brought : {false, true}) {
    Slots slots(6);
    F::set_capacity(this->thread_, this->kBin, 8);
    this->Fill(slots, 5);
    const typename F::List list = F::detach(this->thread_, this->kBin);
    if (brought) {
      ASSERT_TRUE(this->Put(slots[5]));
    } else {
      ASSERT_EQ(nullptr, F::pop(this->thread_, this->kBin));
    }
    ASSERT_TRUE(F::keep_unresolved(this->thread_, this->kBin, list));
    EXPECT_FALSE(F::keep_unresolved(this->thread_, 2, list))
        << "there is one operation that a thread can be in";
    EXPECT_EQ(brought ? 6u : 5u, F::count(this->thread_, this->kBin));
    F::reconcile(this->thread_);
    F::check(this->thread_, this->kBin);
    EXPECT_EQ(brought ? 6u : 5u, this->PopAll().size());
  }
}

TYPED_TEST(FrontContract, RandomAgainstAModel) {
  using F = TypeParam;
  constexpr hz::Bin kBins[] = {1, 2, hz::kLastBin};
  Slots slots(300);
  std::vector<void*> outside;
  std::set<void*> inside[3];
  for (std::size_t i = 0; i < slots.count(); ++i) outside.push_back(slots[i]);
  std::mt19937 random(7);
  const auto leave = [&](unsigned which, void* slot) {
    ASSERT_EQ(1u, inside[which].erase(slot)) << "a slot that was not there";
    outside.push_back(slot);
  };
  for (int step = 0; step < 30000; ++step) {
    const unsigned which = random() % 3;
    const hz::Bin bin = kBins[which];
    const unsigned n = random() % 16;
    switch (random() % 6) {
      case 0: F::set_capacity(this->thread_, bin, std::min(4 * n, F::most(bin))); break;
      case 1: {
        if (!F::kInBand && !inside[which].empty()) break;
        const unsigned most = std::min(n, F::most(bin));
        auto chain = F::space(this->thread_, bin, most);
        for (unsigned i = 0; i < most && !outside.empty(); ++i) {
          chain.push(outside.back());
          inside[which].insert(outside.back());
          outside.pop_back();
        }
        if (chain.count != 0) F::fill(this->thread_, bin, chain);
        break;
      }
      case 2:
        for (void* slot : this->Drain(bin, n)) leave(which, slot);
        break;
      case 3:
        if (!outside.empty() && this->Put(outside.back(), bin)) {
          inside[which].insert(outside.back());
          outside.pop_back();
        }
        break;
      default:
        void* slot = F::pop(this->thread_, bin);
        ASSERT_EQ(inside[which].empty(), slot == nullptr);
        if (slot != nullptr) leave(which, slot);
    }
    F::check(this->thread_, bin);
    ASSERT_EQ(inside[which].size(), F::count(this->thread_, bin)) << step;
  }
}

TYPED_TEST(FrontContract, WhoLeavesAdmitsNothing) {
  using F = TypeParam;
  Slots slots(30);
  F::set_capacity(this->thread_, this->kBin, 20);
  for (unsigned i = 0; i < 20; ++i) ASSERT_TRUE(this->Put(slots[i]));
  while (!this->Drain(this->kBin, ~0U).empty()) {
  }
  F::leave(this->thread_);
  EXPECT_EQ(0u, F::capacity(this->thread_, this->kBin));
  EXPECT_FALSE(this->Put(slots[20]));
  EXPECT_EQ(nullptr, F::pop(this->thread_, this->kBin));
  F::set_capacity(this->thread_, this->kBin, 20);
  for (unsigned i = 0; i < 20; ++i) ASSERT_TRUE(this->Put(slots[i]));
  EXPECT_EQ(20u, this->PopAll().size());
}

TYPED_TEST(FrontContract, OthersMayCount) {
  using F = TypeParam;
  Slots slots(8);
  F::set_capacity(this->thread_, this->kBin, 8);
  std::atomic<bool> done{false};
  unsigned most = 0;
  std::thread reader([&] {
    while (!done.load()) most = std::max(most, F::count(this->thread_, this->kBin));
  });
  for (int round = 0; round < 5000; ++round) {
    for (unsigned i = 0; i < 8; ++i) this->Put(slots[i]);
    while (F::pop(this->thread_, this->kBin) != nullptr) {
    }
  }
  done = true;
  reader.join();
  EXPECT_LE(most, 8u);
}

// Fronts whose bins are magazines.
template <class F>
class FrontOfMagazines : public FrontContract<F> {
 protected:
  using Magazine = typename F::Magazine;
  static constexpr unsigned kMany = Magazine::kSlots;

  FrontOfMagazines() {
    F::Empty::shrink();
    before_ = F::Empty::bytes();
    F::set_capacity(this->thread_, this->kBin, 2 * kMany);
  }
  ~FrontOfMagazines() override {
    while (!this->Drain(this->kBin, ~0U).empty()) {
    }
    F::leave(this->thread_);
    F::Empty::shrink();
    EXPECT_EQ(before_, F::Empty::bytes()) << "not every magazine came back";
  }
  static Magazine* Empty() {
    Magazine* empty = F::Empty::take();
    empty->count = 0;
    return empty;
  }
  static void GiveBack(Magazine* magazine) {
    magazine->follow_with(nullptr);
    F::Empty::give(magazine);
  }

 private:
  std::size_t before_ = 0;
};
TYPED_TEST_SUITE(FrontOfMagazines, MagazineFronts);

// A pop counts the room up before it takes the slot. A signal handler may fork in between, and its child goes
// on without the second step. Another slot would then lie where the next bin begins.
TYPED_TEST(FrontOfMagazines, AChildThatCutAPopOffHasNoRoomTooMuch) {
  using F = TypeParam;
  auto& thread = this->thread_;
  constexpr hz::Bin kBin = TestFixture::kBin;
  constexpr unsigned kMany = TestFixture::kMany;
  Slots slots(kMany + 1);
  for (unsigned i = 0; i < kMany / 2; ++i) ASSERT_TRUE(this->Put(slots[i]));
  thread.room[kBin].add(1);
  F::cut_off(thread);
  for (unsigned i = kMany / 2; i < kMany; ++i) ASSERT_TRUE(this->Put(slots[i]));
  EXPECT_FALSE(this->Put(slots[kMany]));
  EXPECT_EQ(kMany, F::count(thread, kBin));
  F::check(thread, kBin);
  thread.room[kBin].add(-1);  // the second step comes after all
  F::check(thread, kBin, true);
}

TYPED_TEST(FrontOfMagazines, AFullOneLeavesForAnEmptyOneAndComesBack) {
  using F = TypeParam;
  auto& thread = this->thread_;
  constexpr hz::Bin kBin = TestFixture::kBin;
  constexpr unsigned kMany = TestFixture::kMany;
  Slots slots(2 * kMany + 1);
  for (unsigned i = 0; i < kMany; ++i) ASSERT_TRUE(this->Put(slots[i]));
  EXPECT_FALSE(this->Put(slots[kMany])) << "the array at hand is full";
  EXPECT_FALSE(F::swap(thread, kBin)) << "there is no other";
  ASSERT_TRUE(F::exchanges(thread, kBin));
  EXPECT_EQ(nullptr, F::exchange(thread, kBin, this->Empty()));
  for (unsigned i = kMany; i < 2 * kMany; ++i) ASSERT_TRUE(this->Put(slots[i]));
  EXPECT_EQ(2 * kMany, F::count(thread, kBin));
  EXPECT_FALSE(this->Put(slots[2 * kMany]));
  EXPECT_FALSE(F::swap(thread, kBin)) << "the other is full, too";

  auto* full = F::exchange(thread, kBin, this->Empty());
  ASSERT_NE(nullptr, full);
  ASSERT_EQ(kMany, full->count);
  for (unsigned i = 0; i < kMany; ++i) EXPECT_EQ(slots[i], full->slots[i]) << i << ": the oldest leave";
  EXPECT_EQ(kMany, F::count(thread, kBin));
  EXPECT_EQ(nullptr, F::pop(thread, kBin));
  EXPECT_TRUE(F::swap(thread, kBin));
  F::check(thread, kBin);
  for (unsigned i = kMany; i-- > 0;) ASSERT_EQ(slots[kMany + i], F::pop(thread, kBin));
  EXPECT_FALSE(F::swap(thread, kBin)) << "the other is empty, too";

  ASSERT_TRUE(F::exchanges(thread, kBin));
  auto* empty = F::exchange(thread, kBin, full);
  ASSERT_NE(nullptr, empty);
  EXPECT_EQ(0u, empty->count);
  this->GiveBack(empty);
  for (unsigned i = kMany; i-- > 0;) ASSERT_EQ(slots[i], F::pop(thread, kBin));
}

// Bonwick and Adams: whoever has just exchanged one has a full and an empty one.
TYPED_TEST(FrontOfMagazines, NobodyIsNeededMoreOftenThanOnceAMagazine) {
  using F = TypeParam;
  auto& thread = this->thread_;
  constexpr hz::Bin kBin = TestFixture::kBin;
  constexpr unsigned kMany = TestFixture::kMany;
  Slots slots(8 * kMany);
  std::vector<void*> outside;
  for (std::size_t i = 0; i < slots.count(); ++i) outside.push_back(slots[i]);
  std::vector<typename F::Magazine*> depot;
  std::mt19937 random(11);
  unsigned steps = 0, exchanges = 0, shortest = ~0U, since = 0;
  for (bool puts = true; steps < 200000; puts = random() % (4 * kMany) == 0 ? !puts : puts) {
    const bool put = puts != (random() % 8 == 0);
    if (put ? outside.empty() : outside.size() == slots.count()) continue;
    ++steps, ++since;
    for (bool done = false; !done;) {
      if (put) {
        if ((done = this->Put(outside.back()))) outside.pop_back();
      } else if (void* slot = F::pop(thread, kBin)) {
        outside.push_back(slot), done = true;
      }
      if (done || F::swap(thread, kBin)) continue;
      ASSERT_TRUE(F::exchanges(thread, kBin));
      if (!put && depot.empty()) break;
      auto* comes = put ? this->Empty() : depot.back();
      if (!put) depot.pop_back();
      auto* leaves = F::exchange(thread, kBin, comes);
      if (exchanges++ != 0) shortest = std::min(shortest, since);
      since = 0;
      if (leaves == nullptr) continue;
      leaves->count != 0 ? depot.push_back(leaves) : this->GiveBack(leaves);
    }
    F::check(thread, kBin);
    std::size_t waiting = 0;
    for (const auto* magazine : depot) waiting += magazine->count;
    ASSERT_EQ(slots.count(), outside.size() + F::count(thread, kBin) + waiting);
  }
  EXPECT_GT(exchanges, 100u);
  EXPECT_GE(shortest, kMany);
  for (auto* magazine : depot) this->GiveBack(magazine);
}

TYPED_TEST(FrontOfMagazines, TheSpareOneIsDrainedFirstAndThenNoLongerKept) {
  using F = TypeParam;
  auto& thread = this->thread_;
  constexpr hz::Bin kBin = TestFixture::kBin;
  constexpr unsigned kMany = TestFixture::kMany;
  Slots slots(2 * kMany);
  for (unsigned i = 0; i < 2 * kMany; ++i) {
    if (!this->Put(slots[i])) {
      F::exchange(thread, kBin, this->Empty());
      ASSERT_TRUE(this->Put(slots[i]));
    }
  }
  F::set_capacity(thread, kBin, kMany);
  std::set<void*> drained;
  for (void* slot : this->Drain(kBin, 5)) drained.insert(slot);
  for (void* slot : this->Drain(kBin, ~0U)) drained.insert(slot);
  EXPECT_EQ(kMany, drained.size());
  EXPECT_EQ(kMany, F::count(thread, kBin));
  EXPECT_EQ(nullptr, F::take_spare(thread, kBin));
  EXPECT_EQ(1u, drained.count(slots[0]));
  EXPECT_EQ(0u, drained.count(slots[kMany]));
  EXPECT_EQ(kMany, this->PopAll().size());
}

TYPED_TEST(FrontOfMagazines, TheSpareOneCanBeTakenWhileTheBinIsSeized) {
  using F = TypeParam;
  auto& thread = this->thread_;
  constexpr hz::Bin kBin = TestFixture::kBin;
  constexpr unsigned kMany = TestFixture::kMany;
  Slots slots(kMany + 3);
  for (unsigned i = 0; i < kMany; ++i) ASSERT_TRUE(this->Put(slots[i]));
  F::exchange(thread, kBin, this->Empty());
  for (unsigned i = kMany; i < kMany + 3; ++i) ASSERT_TRUE(this->Put(slots[i]));
  ASSERT_NE(nullptr, F::detach(thread, kBin));
  EXPECT_TRUE(F::accounts_for(thread, kBin, 3));
  auto* spare = F::take_spare(thread, kBin);
  ASSERT_NE(nullptr, spare);
  EXPECT_EQ(kMany, spare->count);
  EXPECT_EQ(0u, F::count(thread, kBin));
  F::reconcile(thread);
  F::check(thread, kBin);
  EXPECT_EQ(nullptr, F::pop(thread, kBin));
  this->GiveBack(spare);
}

}  // namespace
}  // namespace hz_test
