// SPDX-License-Identifier: Apache-2.0
//
// The contract of a policy: what the boundary relies on, whatever the numbers are.
#include "box/policy/contract.hpp"

#include <gtest/gtest.h>

#include "contract/policy_boxes.hpp"

namespace hz_test {
namespace {

template <class P>
class PolicyContract : public ::testing::Test {};
TYPED_TEST_SUITE(PolicyContract, PolicyBoxes);

TYPED_TEST(PolicyContract, BatchesMoveSomethingAndNoMoreThanThereIs) {
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    for (unsigned capacity = 0; capacity <= 1024; ++capacity) {
      ASSERT_GE(TypeParam::refill_batch(bin, capacity), 1u);
      ASSERT_LE(TypeParam::refill_batch(bin, capacity), capacity == 0 ? 1 : capacity);
      ASSERT_GE(TypeParam::flush_batch(bin, capacity), 1u);
      if (capacity == 0) continue;
      ASSERT_LE(TypeParam::flush_batch(bin, capacity), capacity);
    }
  }
}

TYPED_TEST(PolicyContract, CapacityStartsGrowsAndStops) {
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    unsigned capacity = TypeParam::first_capacity(bin);
    ASSERT_GE(capacity, 1u);
    for (int step = 0; step < 64; ++step) {
      const unsigned next = TypeParam::next_capacity(bin, capacity);
      ASSERT_GE(next, capacity) << hz::bin_size(bin);
      capacity = next;
    }
    EXPECT_EQ(capacity, TypeParam::next_capacity(bin, capacity)) << "growth has an end";
    EXPECT_EQ(capacity, TypeParam::max_capacity(bin));
    EXPECT_LE(capacity * hz::bin_size(bin), 16 * hz::kMiB) << hz::bin_size(bin);
  }
}

}  // namespace
}  // namespace hz_test
