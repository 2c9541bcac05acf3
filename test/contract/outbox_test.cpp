// SPDX-License-Identifier: Apache-2.0
//
// The contract of an exchange with an outbox: what is deferred, its parcels, and where owners find their
// slots.
#include "box/exchange/contract.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "contract/exchange_boxes.hpp"
#include "unit/passing.hpp"

namespace hz_test {
namespace {

template <class R>
class OutboxContract : public ::testing::Test {
 protected:
  using Place = std::pair<unsigned, hz::Bin>;
  using Bundle = typename R::Bundle;

  // Some boxes know no bound on owners.
  static constexpr unsigned kOwners = R::kOwners < 256 ? R::kOwners : 256;

  void Defer(Place place, void* slot) {
    R::defer(*thread_, place.first, place.second, slot);
    waiting_[slot] = place;
    bytes_ += hz::bin_size(place.second);
  }

  // Takes parcels and checks each against what was deferred.
  void Drain(bool everything) {
    typename R::Drain outbox(*global_, *thread_, 0, everything);
    hz::Parcel<Bundle> parcel;
    while (outbox.next(parcel)) {
      ASSERT_NE(0u, parcel.slots.count) << "an empty parcel";
      for (void* slot : Listed(parcel.slots)) {
        const auto found = waiting_.find(slot);
        ASSERT_NE(waiting_.end(), found) << "twice, or never deferred";
        ASSERT_EQ(found->second, (Place{parcel.owner, parcel.bin})) << "a parcel is of one owner and class";
        waiting_.erase(found);
        bytes_ -= hz::bin_size(parcel.bin);
      }
    }
    ASSERT_FALSE(outbox.next(parcel)) << "after the end comes nothing";
  }

  // As a thread does that frees nothing else.
  void Send(Place place, const std::vector<void*>& slots) {
    const auto sender = std::make_unique<typename R::PerThread>();
    for (void* slot : slots) {
      ASSERT_TRUE(R::admit(*sender, place.first, place.second));
      R::defer(*sender, place.first, place.second, slot);
    }
    typename R::Drain outbox(*global_, *sender, 0, true);
    hz::Parcel<Bundle> parcel;
    while (outbox.next(parcel)) {
      EXPECT_NE(0u, parcel.slots.count);
      outbox.send(parcel);
      EXPECT_EQ(0u, parcel.slots.count) << "there is room";
    }
  }

  void Send(Place place, Slots& slots, std::size_t first, std::size_t count) {
    std::vector<void*> some;
    for (std::size_t i = first; i < first + count; ++i) some.push_back(slots[i]);
    Send(place, some);
  }
  std::vector<void*> Collect(unsigned owner, hz::Bin bin, unsigned want) {
    BufferOf<Bundle> buffer;
    Bundle bundle = buffer.empty();
    if (R::kAnybodys) {
      R::take(*global_, owner, bin, want, bundle);
    } else {
      R::collect(*global_, owner, bin, want, bundle);
    }
    return Listed(bundle);
  }

  std::unique_ptr<typename R::PerThread> thread_ = std::make_unique<typename R::PerThread>();
  std::unique_ptr<typename R::Global> global_ = std::make_unique<typename R::Global>();
  std::map<void*, Place> waiting_;
  std::size_t bytes_ = 0;
};
TYPED_TEST_SUITE(OutboxContract, OutboxBoxes);

TYPED_TEST(OutboxContract, ANewOutboxAdmitsEverythingAndHoldsNothing) {
  using R = TypeParam;
  for (unsigned owner = 0; owner < this->kOwners; ++owner) {
    for (hz::Bin bin = 1; bin < hz::kBins; ++bin) EXPECT_TRUE(R::admit(*this->thread_, owner, bin));
  }
  EXPECT_EQ(0u, R::outbox_bytes(*this->thread_));
  this->Drain(false);
  this->Drain(true);
}

TYPED_TEST(OutboxContract, ADrainOfEverythingGivesEverySlotOnce) {
  using R = TypeParam;
  Slots slots(20000);
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const std::size_t n = 1 + random() % 1000;
    for (std::size_t i = 0; i < n; ++i) {
      const unsigned owner = random() % this->kOwners;
      const hz::Bin bin = 1 + random() % hz::kLastBin;
      if (!R::admit(*this->thread_, owner, bin)) break;
      this->Defer({owner, bin}, slots[round * 1000 + i]);
      ASSERT_EQ(this->bytes_, R::outbox_bytes(*this->thread_));
    }
    this->Drain(true);
    ASSERT_TRUE(this->waiting_.empty()) << this->waiting_.size() << " lost";
    ASSERT_EQ(0u, R::outbox_bytes(*this->thread_));
  }
}

TYPED_TEST(OutboxContract, AfterARefusalADrainMakesRoom) {
  using R = TypeParam;
  Slots slots(100000);
  std::size_t next = 0;
  std::mt19937 random(2);
  for (int refusals = 0; refusals < 200 && next < slots.count();) {
    // A few places, so that parcels become full.
    const unsigned owner = random() % 3;
    const hz::Bin bin = 1 + random() % 4 * (hz::kLastBin / 4);
    if (!R::admit(*this->thread_, owner, bin)) {
      ++refusals;
      const std::size_t before = this->waiting_.size();
      this->Drain(false);
      ASSERT_LT(this->waiting_.size(), before) << "a refused place has something to send";
      ASSERT_TRUE(R::admit(*this->thread_, owner, bin)) << "drain first, then there is room";
    }
    this->Defer({owner, bin}, slots[next++]);
  }
  this->Drain(true);
  EXPECT_TRUE(this->waiting_.empty());
  EXPECT_EQ(0u, R::outbox_bytes(*this->thread_));
}

TYPED_TEST(OutboxContract, WhatIsSentIsFoundByItsOwnerAlone) {
  if (TypeParam::kAnybodys) GTEST_SKIP() << "what is sent waits for anybody";
  Slots slots(40);
  this->Send({1, 3}, slots, 0, 10);
  this->Send({1, 3}, slots, 10, 10);
  this->Send({2, 3}, slots, 20, 10);
  this->Send({1, 4}, slots, 30, 10);
  EXPECT_TRUE(this->Collect(0, 3, 40).empty());
  EXPECT_TRUE(this->Collect(2, 4, 40).empty());
  std::set<std::size_t> found;
  for (int looks = 0; found.size() < 20 && looks < 100; ++looks) {
    const std::vector<void*> taken = this->Collect(1, 3, 3);
    ASSERT_LT(taken.size(), 3u + 10u) << "whole parcels, and none that was not needed";
    for (void* slot : taken) ASSERT_TRUE(found.insert(slots.IndexOf(slot)).second);
  }
  ASSERT_EQ(20u, found.size());
  EXPECT_EQ(19u, *found.rbegin());
  EXPECT_TRUE(this->Collect(1, 3, 3).empty());
  EXPECT_EQ(10u, this->Collect(2, 3, 40).size());
  EXPECT_EQ(10u, this->Collect(1, 4, 40).size());
}

// Of three owners the second one has no thread.
struct ThreeOwners {
  static unsigned end() { return 3; }
  static unsigned threads(unsigned owner) { return owner == 1 ? 0 : 1; }
};

TYPED_TEST(OutboxContract, WhatWaitsForAnOwnerWithoutAThreadServesWhoeverAsks) {
  using R = TypeParam;
  if (R::kAnybodys) GTEST_SKIP() << "what is sent waits for anybody";
  Slots slots(30);
  this->Send({1, 3}, slots, 0, 10);
  this->Send({2, 3}, slots, 10, 10);
  this->Send({1, 4}, slots, 20, 10);
  ThreeOwners owners;
  std::set<std::size_t> found;
  for (int looks = 0; looks < 100; ++looks) {
    BufferOf<typename R::Bundle> buffer;
    typename R::Bundle some = buffer.empty();
    const unsigned sent = R::steal(*this->global_, owners, 3, 4, false, some);
    EXPECT_EQ(sent, some.count) << "all of them were deferred";
    for (void* slot : Listed(some)) ASSERT_TRUE(found.insert(slots.IndexOf(slot)).second);
  }
  ASSERT_EQ(10u, found.size());
  EXPECT_EQ(9u, *found.rbegin());
  EXPECT_EQ(10u, this->Collect(2, 3, 40).size());
}

TYPED_TEST(OutboxContract, ThreadsLoseNothingAndGetNothingTwice) {
  const unsigned owner = this->kOwners - 1;
  for (hz::Bin bin : {hz::Bin{1}, hz::scan_bin(64)}) {
    ExpectPassedExactlyOnce(
        hz::bin_size(bin),
        [&](const hz::Chain& chain) {
          this->Send({owner, bin}, Listed(chain));
        },
        [&](unsigned want) { return this->Collect(owner, bin, want); });
  }
}

TYPED_TEST(OutboxContract, OthersMayAskForTheBytes) {
  using R = TypeParam;
  Slots slots(64);
  std::atomic<bool> done{false};
  std::size_t most = 0;
  std::thread reader([&] {
    while (!done.load()) most = std::max(most, R::outbox_bytes(*this->thread_));
  });
  for (int round = 0; round < 500; ++round) {
    for (unsigned i = 0; i < 32; ++i) this->Defer({1, 1}, slots[i]);
    this->Drain(true);
  }
  done = true;
  reader.join();
  EXPECT_LE(most, 32 * hz::bin_size(1));
}

}  // namespace
}  // namespace hz_test
