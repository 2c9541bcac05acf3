// SPDX-License-Identifier: Apache-2.0
//
// The contract of a central: loose slots by owner and class.
#include "box/central/contract.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "contract/central_boxes.hpp"
#include "unit/passing.hpp"

namespace hz_test {
namespace {

template <class C>
class CentralContract : public ::testing::Test {
 protected:
  std::unique_ptr<typename C::Global> global_ = std::make_unique<typename C::Global>();
};
TYPED_TEST_SUITE(CentralContract, CentralBoxes);

TYPED_TEST(CentralContract, EmptyGivesNothing) {
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) EXPECT_EQ(0u, TypeParam::take(*this->global_, 0, bin, 100).count);
}

TYPED_TEST(CentralContract, GivesAboutWhatIsWantedUntilAllIsGone) {
  Slots slots(100);
  for (std::size_t first = 0; first < slots.count(); first += 10)
    TypeParam::give(*this->global_, 1, 5, slots.ChainOf(first, 10));
  std::vector<bool> seen(slots.count(), false);
  unsigned total = 0;
  for (int looks = 0; total < slots.count() && looks < 1000; ++looks) {
    const hz::Chain chain = TypeParam::take(*this->global_, 1, 5, 7);
    ASSERT_LT(chain.count, 7u + 10u) << "whole batches, and none that was not needed";
    for (hz::FreeSlot* slot : Listed(chain)) {
      ASSERT_FALSE(seen[slots.IndexOf(slot)]);
      seen[slots.IndexOf(slot)] = true;
      ++total;
    }
  }
  EXPECT_EQ(slots.count(), total);
  EXPECT_EQ(0u, TypeParam::take(*this->global_, 1, 5, 7).count);
}

TYPED_TEST(CentralContract, ClassesNeverMix) {
  Slots slots(hz::kBins);
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) TypeParam::give(*this->global_, 0, bin, slots.ChainOf(bin, 1));
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    const hz::Chain chain = TypeParam::take(*this->global_, 0, bin, 2);
    ASSERT_EQ(1u, chain.count);
    EXPECT_EQ(slots[bin], chain.first);
  }
}

TYPED_TEST(CentralContract, ThreadsLoseNothingAndGetNothingTwice) {
  auto& global = *this->global_;
  for (hz::Bin bin : {hz::Bin{1}, hz::scan_bin(64)}) {
    ExpectPassedExactlyOnce(
        hz::bin_size(bin), [&](const hz::Chain& chain) { TypeParam::give(global, 2, bin, chain); },
        [&](unsigned want) { return TypeParam::take(global, 2, bin, want); });
  }
}

}  // namespace
}  // namespace hz_test
