// SPDX-License-Identifier: Apache-2.0
//
// The interleaved lanes, all in one table. Part of the catalogue of `lane`.
#pragma once

#include <cstdint>
#include <string_view>

#include "lane/lane.hpp"

namespace hz::bench {

// The published runs were ten times shorter.
constexpr Lane interleaved_lane(std::string_view name, std::uint32_t min_size, std::uint32_t max_size,
                                std::uint32_t remote_percent) {
  return {.name = name,
          .family = "interleaved",
          .upstream = true,
          .guard = name.starts_with("guard_"),
          .definition = {{"min_size", min_size},
                         {"max_size", max_size},
                         {"iterations", 500'000},
                         {"iterations_upstream", 50'000},
                         {"remote_percent", remote_percent},
                         {"drain_every", 32},
                         {"final_pairs", 64}}};
}

// One lane per line.
// clang-format off
inline constexpr Lane kInterleavedLanes[] = {
    interleaved_lane("guard_local0", 16, 2'048, 0),
    interleaved_lane("small_interleaved_r90", 16, 4'096, 90),
    interleaved_lane("main_local0", 16, 32'768, 0),
    interleaved_lane("main_interleaved_r50", 16, 32'768, 50),
    interleaved_lane("main_interleaved_r90", 16, 32'768, 90),
    interleaved_lane("medium_local0", 4'097, 65'536, 0),
    interleaved_lane("medium_interleaved_r50", 4'097, 65'536, 50),
    interleaved_lane("fixed_8k", 8'192, 8'192, 0),
    interleaved_lane("fixed_16k", 16'384, 16'384, 0),
    interleaved_lane("fixed_24k", 24'576, 24'576, 0),
    interleaved_lane("fixed_32k", 32'768, 32'768, 0),
    interleaved_lane("fixed_48k", 49'152, 49'152, 0),
};
// clang-format on

}  // namespace hz::bench
