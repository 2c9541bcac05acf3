// SPDX-License-Identifier: Apache-2.0
//
// The table of ring lanes: consistent with the names, which result tables show without the numbers.
#include "ring/lanes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hz::bench {
namespace {

TEST(Lanes, NamesAreUniqueAndSayTheRemoteShare) {
  std::set<std::string_view> names;
  for (const Lane& lane : kLanes) {
    EXPECT_TRUE(names.insert(lane.name).second) << lane.name;
    const std::string suffix = "_r" + std::to_string(lane.remote_percent);
    EXPECT_TRUE(lane.name.ends_with(suffix)) << lane.name;
  }
}

TEST(Lanes, ShapesAreUsable) {
  for (const Lane& lane : kLanes) {
    EXPECT_LT(lane.min_size, lane.max_size) << lane.name;
    EXPECT_EQ(lane.ring & (lane.ring - 1), 0U) << lane.name << ": the ring masks its counters";
    EXPECT_GE(lane.iterations, 300'000U) << lane.name << ": shorter runs measure thread creation";
  }
}

TEST(Lanes, FoundByName) {
  ASSERT_NE(find_lane("cross128_r90"), nullptr);
  EXPECT_EQ(find_lane("cross128_r90")->max_size, 131'072U);
  EXPECT_EQ(find_lane("cross128"), nullptr);
}

}  // namespace
}  // namespace hz::bench
