// SPDX-License-Identifier: Apache-2.0
//
// The catalogue: names are unique, numbers are usable and fit the names, which result tables show without the
// numbers.
#include "lane/catalogue.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace hz::bench {
namespace {

std::vector<Lane> all_lanes() {
  std::vector<Lane> lanes;
  for (const std::span<const Lane> family : kCatalogue)
    lanes.insert(lanes.end(), family.begin(), family.end());
  return lanes;
}

TEST(Catalogue, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Lane& lane : all_lanes()) EXPECT_TRUE(names.insert(lane.name).second) << lane.name;
}

TEST(Catalogue, NamesSayTheRemoteShare) {
  for (const Lane& lane : kRingLanes) {
    const std::string suffix = "_r" + std::to_string(lane.definition["remote_percent"]);
    EXPECT_TRUE(lane.name.ends_with(suffix)) << lane.name;
  }
}

TEST(Catalogue, RingShapesAreUsable) {
  for (const Lane& lane : kRingLanes) {
    EXPECT_LT(lane.definition["min_size"], lane.definition["max_size"]) << lane.name;
    const std::uint64_t ring = lane.definition["ring"];
    EXPECT_EQ(ring & (ring - 1), 0U) << lane.name << ": the ring masks its counters";
  }
}

TEST(Catalogue, FoundByName) {
  ASSERT_NE(find_lane("cross128_r90"), nullptr);
  EXPECT_EQ(find_lane("cross128_r90")->definition["max_size"], 131'072U);
  EXPECT_EQ(find_lane("cross128"), nullptr);
}

}  // namespace
}  // namespace hz::bench
