// SPDX-License-Identifier: Apache-2.0
//
// The central that keeps nothing: all stays with the giver, who takes it home.
#include "box/central/nowhere.hpp"

#include <gtest/gtest.h>

#include "unit/slots.hpp"

namespace hz_test {
namespace {

using Central = hz::Nowhere<hz::SlotArray>;
static_assert(hz::CentralContract<Central>);

TEST(Nowhere, GivesBackWhatItIsGiven) {
  Central::Global global;
  Slots slots(9);
  auto bundle = slots.BundleOf<hz::SlotArray>(0, 9);
  Central::give(global, 3, 7, bundle);
  EXPECT_EQ(9u, bundle.count);
  EXPECT_EQ(0u, Central::take(global, 3, 7, 100).count);
  EXPECT_EQ(0u, Central::metadata_bytes(global));
}

}  // namespace
}  // namespace hz_test
