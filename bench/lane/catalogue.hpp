// SPDX-License-Identifier: Apache-2.0
//
// Every lane of every family, found by the name that result tables use. A new family adds its table here and
// its run function in main.cpp.
#pragma once

#include <span>
#include <string_view>

#include "blocks/lanes.hpp"
#include "classic/lanes.hpp"
#include "interleaved/lanes.hpp"
#include "lane/lane.hpp"
#include "latency/lanes.hpp"
#include "ring/lanes.hpp"
#include "solo/lanes.hpp"

namespace hz::bench {

inline constexpr std::span<const Lane> kCatalogue[] = {kRingLanes,   kInterleavedLanes, kSoloLanes,
                                                       kBlocksLanes, kClassicLanes,     kLatencyLanes};

constexpr const Lane* find_lane(std::string_view name) {
  for (const std::span<const Lane> family : kCatalogue) {
    for (const Lane& lane : family) {
      if (lane.name == name) return &lane;
    }
  }
  return nullptr;
}

}  // namespace hz::bench
