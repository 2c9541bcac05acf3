// SPDX-License-Identifier: Apache-2.0
//
// The ring lanes, all in one table; a lane is looked up by the name that result tables use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hz::bench {

struct Lane {
  std::string_view name;
  std::uint32_t min_size;
  std::uint32_t max_size;
  std::uint64_t iterations;  // per thread
  std::uint32_t remote_percent;
  std::uint32_t slots = 400;    // working set per thread
  std::uint32_t ring = 65'536;  // capacity per thread
};

// One lane per line.
// clang-format off
inline constexpr Lane kLanes[] = {
    {"guard_r0", 16, 2'048, 2'000'000, 0},
    {"guard_r50", 16, 2'048, 2'000'000, 50},
    {"guard_r90", 16, 2'048, 2'000'000, 90},
    {"main_r0", 16, 32'768, 2'000'000, 0},
    {"main_r50", 16, 32'768, 2'000'000, 50},
    {"main_r90", 16, 32'768, 2'000'000, 90},
    {"cross64_r50", 16, 65'536, 600'000, 50},
    {"cross64_r90", 16, 65'536, 600'000, 90},
    {"cross128_r0", 16, 131'072, 600'000, 0},
    {"cross128_r50", 16, 131'072, 600'000, 50},
    {"cross128_r90", 16, 131'072, 600'000, 90},
    {"mid_only_r50", 2'049, 32'768, 600'000, 50},
    {"mid_only_r90", 2'049, 32'768, 600'000, 90},
    {"large128_r50", 65'537, 131'072, 300'000, 50},
    {"large128_r90", 65'537, 131'072, 300'000, 90},
};
// clang-format on

constexpr const Lane* find_lane(std::string_view name) {
  for (const Lane& lane : kLanes) {
    if (lane.name == name) return &lane;
  }
  return nullptr;
}

}  // namespace hz::bench
