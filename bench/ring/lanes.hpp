// SPDX-License-Identifier: Apache-2.0
//
// The ring lanes, all in one table. Part of the catalogue of `lane`.
#pragma once

#include <cstdint>
#include <string_view>

#include "lane/lane.hpp"

namespace hz::bench {

// Iterations, slots (the working set) and ring (the capacity) are per thread.
constexpr Lane ring_lane(std::string_view name, std::uint32_t min_size, std::uint32_t max_size,
                         std::uint64_t iterations, std::uint32_t remote_percent) {
  return {.name = name,
          .family = "ring",
          .upstream = true,
          .guard = name.starts_with("guard_"),
          .definition = {{"min_size", min_size},
                         {"max_size", max_size},
                         {"iterations", iterations},
                         {"remote_percent", remote_percent},
                         {"slots", 400},
                         {"ring", 65'536}}};
}

// One lane per line.
// clang-format off
inline constexpr Lane kRingLanes[] = {
    ring_lane("guard_r0", 16, 2'048, 2'000'000, 0),
    ring_lane("guard_r50", 16, 2'048, 2'000'000, 50),
    ring_lane("guard_r90", 16, 2'048, 2'000'000, 90),
    ring_lane("main_r0", 16, 32'768, 2'000'000, 0),
    ring_lane("main_r50", 16, 32'768, 2'000'000, 50),
    ring_lane("main_r90", 16, 32'768, 2'000'000, 90),
    ring_lane("cross64_r50", 16, 65'536, 600'000, 50),
    ring_lane("cross64_r90", 16, 65'536, 600'000, 90),
    ring_lane("cross128_r0", 16, 131'072, 600'000, 0),
    ring_lane("cross128_r50", 16, 131'072, 600'000, 50),
    ring_lane("cross128_r90", 16, 131'072, 600'000, 90),
    ring_lane("mid_only_r50", 2'049, 32'768, 600'000, 50),
    ring_lane("mid_only_r90", 2'049, 32'768, 600'000, 90),
    ring_lane("large128_r50", 65'537, 131'072, 300'000, 50),
    ring_lane("large128_r90", 65'537, 131'072, 300'000, 90),
};
// clang-format on

}  // namespace hz::bench
