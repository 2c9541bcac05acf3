// SPDX-License-Identifier: Apache-2.0
//
// The lanes of aligned and large blocks, and of blocks that pass from one producer to one consumer. Part of
// the catalogue of `lane`. `workload` names the loop in this folder that a lane runs; its header says what
// the numbers mean.
#pragma once

#include <cstdint>
#include <string_view>

#include "lane/lane.hpp"

namespace hz::bench {

constexpr Lane pipe_lane(std::string_view name, std::uint64_t size, std::uint64_t iterations) {
  return {.name = name,
          .family = "blocks",
          .threads = 2,
          .definition = {{"workload", "pipe"}, {"size", size}, {"queue", 1'024}, {"iterations", iterations}}};
}

constexpr Lane large_lane(std::string_view name, std::uint64_t min_size, std::uint64_t max_size,
                          std::uint64_t slots, std::uint64_t iterations) {
  return {.name = name,
          .family = "blocks",
          .definition = {{"workload", "large"},
                         {"min_size", min_size},
                         {"max_size", max_size},
                         {"slots", slots},
                         {"written", 65'536},
                         {"iterations", iterations}}};
}

constexpr Lane phases_lane(std::string_view name, std::string_view shift) {
  return {.name = name,
          .family = "blocks",
          .definition = {{"workload", "phases"},
                         {"shift", shift},
                         {"slots", 100'000},
                         {"phases", 6},
                         {"iterations", 150'000'000}}};
}

// One lane per line.
// clang-format off
inline constexpr Lane kBlocksLanes[] = {
    {.name = "aligned64k", .family = "blocks",
     .definition = {{"workload", "aligned"}, {"size", 65'536}, {"alignment", 8'192}, {"iterations", 8'000'000}}},
    pipe_lane("remote64k", 65'536, 4'000'000),
    pipe_lane("pipe_64", 64, 40'000'000),
    {.name = "rss_plateau", .family = "blocks", .threads = 1,
     .definition = {{"workload", "plateau"}, {"size", 65'536}, {"slots", 1'024}, {"rounds", 5}}},
    large_lane("large_128k_1m", 131'072, 1'048'576, 16, 200'000),
    large_lane("large_1m_64m", 1'048'576, 67'108'864, 4, 200'000),
    {.name = "realloc_grow", .family = "blocks",
     .definition = {{"workload", "grow"}, {"min_size", 16}, {"max_size", 67'108'864}, {"growth_percent", 150},
                    {"iterations", 1'200}}},
    {.name = "arena_request", .family = "blocks", .threads = 1,
     .definition = {{"workload", "requests"}, {"blocks", 1'000}, {"iterations", 10'000}}},
    phases_lane("phases_sizes", "sizes"),
    phases_lane("phases_threads", "threads"),
    phases_lane("phases_remote", "remote"),
};
// clang-format on

}  // namespace hz::bench
