// SPDX-License-Identifier: Apache-2.0
//
// The contract of an exchange: slots that wait by owner and class, whole magazines, and owners without a
// thread.
#include "box/exchange/contract.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "contract/exchange_boxes.hpp"
#include "support/on_processors.hpp"
#include "unit/passing.hpp"

namespace hz_test {
namespace {

template <class E>
class ExchangeContract : public ::testing::Test {
 protected:
  using Bundle = typename E::Bundle;

  void Give(unsigned owner, hz::Bin bin, Slots& slots, std::size_t first, std::size_t count) {
    BufferOf<Bundle> buffer;
    auto bundle = slots.BundleOf<Bundle>(buffer, first, count);
    E::give(*global_, owner, bin, bundle);
    EXPECT_EQ(0u, bundle.count);
  }
  std::vector<void*> Take(unsigned owner, hz::Bin bin, unsigned want) {
    BufferOf<Bundle> buffer;
    Bundle bundle = buffer.empty();
    E::take(*global_, owner, bin, want, bundle);
    return Listed(bundle);
  }

  std::unique_ptr<typename E::Global> global_ = std::make_unique<typename E::Global>();
};
TYPED_TEST_SUITE(ExchangeContract, ExchangeBoxes);

TYPED_TEST(ExchangeContract, EmptyGivesNothing) {
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) EXPECT_TRUE(this->Take(0, bin, 40).empty());
}

TYPED_TEST(ExchangeContract, GivesAboutWhatIsWantedUntilAllIsGone) {
  Slots slots(100);
  for (std::size_t first = 0; first < slots.count(); first += 10) this->Give(1, 5, slots, first, 10);
  std::vector<bool> seen(slots.count(), false);
  unsigned total = 0;
  for (int looks = 0; total < slots.count() && looks < 1000; ++looks) {
    const std::vector<void*> taken = this->Take(1, 5, 7);
    ASSERT_LT(taken.size(), 7u + 10u) << "whole batches, and none that was not needed";
    for (void* slot : taken) {
      ASSERT_FALSE(seen[slots.IndexOf(slot)]);
      seen[slots.IndexOf(slot)] = true;
      ++total;
    }
  }
  EXPECT_EQ(slots.count(), total);
  EXPECT_TRUE(this->Take(1, 5, 7).empty());
}

TYPED_TEST(ExchangeContract, ClassesNeverMix) {
  Slots slots(hz::kBins);
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) this->Give(0, bin, slots, bin, 1);
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    EXPECT_EQ((std::vector<void*>{slots[bin]}), this->Take(0, bin, 2));
  }
}

TYPED_TEST(ExchangeContract, ThreadsLoseNothingAndGetNothingTwice) {
  auto& global = *this->global_;
  for (hz::Bin bin : {hz::Bin{1}, hz::scan_bin(64)}) {
    ExpectPassedExactlyOnce(
        hz::bin_size(bin),
        [&](const hz::Chain& chain) {
          BufferOf<typename TypeParam::Bundle> buffer;
          auto bundle = buffer.empty();
          for (void* slot : Listed(chain)) bundle.push(slot);
          TypeParam::give(global, 2, bin, bundle);
        },
        [&](unsigned want) { return this->Take(2, bin, want); });
  }
}

using Depot = hz::MagazineDepot<hz::Hakozuna>;

// Whatever processor it was given on and is taken on, in any order; `waits` never misses it.
TEST(ExchangeOfMagazines, WhatWaitsIsFoundFromEveryProcessor) {
  const OnProcessors processors;
  const auto global = std::make_unique<Depot::Global>();
  Slots slots(1);
  std::mt19937 random(7);
  unsigned waiting = 0, found = 0, nothing = 0;
  for (unsigned step = 0; step < 4000; ++step) {
    processors.go_to(random());
    // Now and then all of it goes, or hints that nobody has cleared would never be old.
    if (random() % 16 < (step / 64 % 2 == 0 ? 10U : 5U)) {
      Depot::Magazine* const magazine = Depot::take_empty();
      ASSERT_NE(nullptr, magazine);
      magazine->slots[magazine->count++] = slots[0];
      Depot::give(*global, 7, magazine);
      ++waiting;
      ASSERT_TRUE(Depot::waits(*global, 0, 7));
      continue;
    }
    Depot::Magazine* const magazine = Depot::take(*global, 7);
    ASSERT_EQ(waiting != 0, magazine != nullptr) << "step " << step << ", " << waiting << " wait";
    ++(magazine != nullptr ? found : nothing);
    if (magazine == nullptr) continue;
    --waiting;
    Depot::give_empty(magazine);
  }
  EXPECT_GT(found, 500U);
  EXPECT_GT(nothing, 50U);
  while (Depot::Magazine* const magazine = Depot::take(*global, 7)) Depot::give_empty(magazine);
}

TEST(ExchangeOfMagazines, AMagazineWaitsAsItIsAndTheNewestLeavesFirst) {
  const auto global = std::make_unique<Depot::Global>();
  Depot::shrink(*global, 1);
  const std::size_t before = Depot::metadata_bytes(*global);
  Slots slots(2 * Depot::Magazine::kSlots);
  EXPECT_EQ(nullptr, Depot::take(*global, 7));
  Depot::Magazine* given[2];
  for (unsigned i = 0; i < 2; ++i) {
    given[i] = Depot::take_empty();
    ASSERT_NE(nullptr, given[i]);
    ASSERT_EQ(0u, given[i]->count);
    while (given[i]->count != Depot::Magazine::kSlots) given[i]->slots[given[i]->count++] = slots[i];
    Depot::give(*global, 7, given[i]);
  }
  EXPECT_EQ(nullptr, Depot::take(*global, 8)) << "another class";
  EXPECT_EQ(given[1], Depot::take(*global, 7));
  EXPECT_EQ(given[0], Depot::take(*global, 7));
  EXPECT_EQ(nullptr, Depot::take(*global, 7));
  for (auto* magazine : given) {
    EXPECT_EQ(Depot::Magazine::kSlots, magazine->count);
    Depot::give_empty(magazine);
  }
  // However full it was when it was given back.
  Depot::Magazine* empty = Depot::take_empty();
  EXPECT_EQ(0u, empty->count);
  Depot::give_empty(empty);
  Depot::shrink(*global, 1);
  EXPECT_EQ(before, Depot::metadata_bytes(*global));
}

}  // namespace
}  // namespace hz_test
