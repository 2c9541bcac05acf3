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

// A magazine of one slot.
void GiveOne(Depot::Global& global, hz::Bin bin, void* slot) {
  Depot::Magazine* const magazine = Depot::take_empty();
  ASSERT_NE(nullptr, magazine);
  magazine->slots[magazine->count++] = slot;
  Depot::give(global, bin, magazine);
}
bool TakeWhole(Depot::Global& global, hz::Bin bin) {
  Depot::Magazine* const magazine = Depot::take(global, bin);
  Depot::give_empty(magazine);
  return magazine != nullptr;
}
unsigned Steal(Depot::Global& global, hz::Bin bin, bool maps) {
  BufferOf<hz::SlotArray> buffer;
  hz::SlotArray bundle = buffer.empty();
  struct {
  } owners;  // a depot tells none apart
  EXPECT_EQ(0u, Depot::steal(global, owners, bin, 1, maps, bundle)) << "deferred";
  return bundle.count;
}

// Whatever processor it was given on and is taken on, in any order; `waits` never misses it. By the magazine
// a processor takes what it gave.
TEST(ExchangeOfMagazines, WhatWaitsIsFoundFromEveryProcessor) {
  const OnProcessors processors;
  const auto global = std::make_unique<Depot::Global>();
  Slots slots(1);
  BufferOf<hz::SlotArray> buffer;
  std::mt19937 random(7);
  unsigned waits_on[2] = {};  // of two processors, or of the only one
  unsigned waiting = 0, found = 0, nothing = 0, elsewhere = 0;
  for (unsigned step = 0; step < 4000; ++step) {
    const unsigned which = random() % 2 % processors.count();
    processors.go_to(which);
    unsigned& here = waits_on[which];
    // Now and then all of it goes, or hints that nobody has cleared would never be old.
    if (random() % 16 < (step / 64 % 2 == 0 ? 10U : 5U)) {
      GiveOne(*global, 7, slots[0]);
      ++waiting, ++here;
      ASSERT_TRUE(Depot::waits(*global, 0, 7));
      continue;
    }
    if (random() % 2 == 0) {
      ASSERT_EQ(here != 0, TakeWhole(*global, 7)) << "step " << step << ", " << here << " wait here";
      if (here != 0) --waiting, --here;
      continue;
    }
    hz::SlotArray bundle = buffer.empty();
    Depot::take(*global, 0, 7, 1, bundle);
    ASSERT_EQ(waiting != 0 ? 1U : 0U, bundle.count) << "step " << step << ", " << waiting << " wait";
    ++(waiting != 0 ? found : nothing);
    if (waiting == 0) continue;
    --waiting;
    if (here == 0) ++elsewhere;
    --waits_on[here != 0 ? which : 1 - which];
  }
  EXPECT_GT(found, 300U);
  EXPECT_GT(nothing, 20U);
  EXPECT_TRUE(processors.count() == 1 || elsewhere > 20U) << elsewhere;
}

// Before memory is mapped a thread takes what another processor has left over. What that one took back of
// late is left for it, but less of it each time.
TEST(ExchangeOfMagazines, AnotherProcessorGivesWhatItDoesNotWantAgain) {
  const OnProcessors processors;
  if (processors.count() < 2) GTEST_SKIP() << "one processor";
  const auto global = std::make_unique<Depot::Global>();
  Slots slots(1);
  constexpr unsigned kDrawn = 5, kMore = 3;
  const auto given = [&](unsigned n) {
    for (unsigned i = 0; i < n; ++i) GiveOne(*global, 7, slots[0]);
  };
  processors.go_to(0);
  given(kDrawn + kMore);
  processors.go_to(1);
  EXPECT_EQ(0u, Steal(*global, 7, false)) << "no memory would be mapped";
  EXPECT_EQ(1u, Steal(*global, 7, true)) << "nobody ever took of them";
  processors.go_to(0);
  given(1);
  for (unsigned i = 0; i < kDrawn; ++i) EXPECT_TRUE(TakeWhole(*global, 7));
  given(kDrawn);
  processors.go_to(1);
  for (unsigned i = 0; i < kMore; ++i) EXPECT_EQ(1u, Steal(*global, 7, true)) << i;
  EXPECT_EQ(0u, Steal(*global, 7, true)) << "it will want them again";
  unsigned stolen = 0, refused = 0;
  while (Depot::waits(*global, 0, 7) && refused < 100) ++(Steal(*global, 7, true) != 0 ? stolen : refused);
  EXPECT_EQ(kDrawn, stolen) << "whoever wants nothing any more keeps nothing";
  EXPECT_LT(refused, 4u);
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
