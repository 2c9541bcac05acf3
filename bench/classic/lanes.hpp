// SPDX-License-Identifier: Apache-2.0
//
// The programs that allocators have been compared by for decades, written anew from their published
// descriptions. Part of the catalogue of `lane`. `workload` names the loop in this folder that a lane runs;
// its header says what the numbers mean. All but the larson lanes run for a number of iterations per thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "lane/lane.hpp"

namespace hz::bench {

constexpr Lane larson_lane(std::string_view name, std::uint64_t min_size, std::uint64_t max_size,
                           std::uint64_t slots) {
  return {.name = name,
          .family = "classic",
          .definition = {{"workload", "larson"},
                         {"min_size", min_size},
                         {"max_size", max_size},
                         {"slots", slots},
                         {"rounds", 10},
                         {"milliseconds", 5'000}}};
}

constexpr Lane shbench_lane(std::string_view name, std::string_view last_third, std::uint64_t iterations) {
  return {.name = name,
          .family = "classic",
          .definition = {{"workload", "shbench"},
                         {"min_size", 1},
                         {"max_size", 1'000},
                         {"last_third", last_third},
                         {"ring", 65'536},
                         {"iterations", iterations}}};
}

constexpr Lane false_sharing_lane(std::string_view name, std::string_view first_block) {
  return {.name = name,
          .family = "classic",
          .definition = {{"workload", "false sharing"},
                         {"size", 8},
                         {"first_block", first_block},
                         {"writes", 100},
                         {"iterations", 2'000'000}}};
}

// How many of 100 commands are SET, GET, LPUSH and LPOP.
struct RedisMix {
  std::uint32_t set;
  std::uint32_t get;
  std::uint32_t lpush;
  std::uint32_t lpop;
};

constexpr Lane redis_lane(std::string_view name, RedisMix mix, std::uint64_t iterations) {
  return {.name = name,
          .family = "classic",
          .definition = {{"workload", "redis"},
                         {"min_size", 16},
                         {"max_size", 256},
                         {"keys", 10'000},
                         {"list", 10'000},
                         {"set_percent", mix.set},
                         {"get_percent", mix.get},
                         {"lpush_percent", mix.lpush},
                         {"lpop_percent", mix.lpop},
                         {"iterations", iterations}}};
}

// One lane per line.
// clang-format off
inline constexpr Lane kClassicLanes[] = {
    larson_lane("larson_hygienic", 4'096, 32'768, 1'000),
    larson_lane("larson_sanity", 8, 1'024, 10'000),
    {.name = "alloc_test", .family = "classic",
     .definition = {{"workload", "alloc_test"}, {"min_size", 8}, {"max_size", 1'024}, {"slots", 65'536},
                    {"iterations", 15'000'000}}},
    {.name = "xmalloc_test", .family = "classic",
     .definition = {{"workload", "xmalloc_test"}, {"min_size", 8}, {"max_size", 512}, {"batch", 256}, {"queue", 64},
                    {"iterations", 80'000}}},
    shbench_lane("sh6bench", "kept for a round", 5'000),
    shbench_lane("sh8bench", "sent to the next thread", 2'000),
    false_sharing_lane("cache_scratch", "from the first thread"),
    false_sharing_lane("cache_thrash", "none"),
    redis_lane("redis_synthetic_set", {100, 0, 0, 0}, 15'000'000),
    redis_lane("redis_synthetic_get", {0, 100, 0, 0}, 20'000'000),
    redis_lane("redis_synthetic_lpush", {0, 0, 100, 0}, 8'000'000),
    redis_lane("redis_synthetic_lpop", {0, 0, 0, 100}, 8'000'000),
    redis_lane("redis_synthetic_random", {70, 20, 5, 5}, 15'000'000),
    {.name = "cfrac_like", .family = "classic",
     .definition = {{"workload", "numbers"}, {"min_size", 16}, {"max_size", 64}, {"temporaries", 64}, {"saved", 8'192},
                    {"saved_every", 50}, {"iterations", 8'000'000}}},
    {.name = "espresso_like", .family = "classic",
     .definition = {{"workload", "covers"}, {"min_size", 16}, {"max_size", 256}, {"min_cubes", 20}, {"max_cubes", 600},
                    {"iterations", 10'000}}},
    {.name = "mstress_like", .family = "classic",
     .definition = {{"workload", "mstress"}, {"blocks", 5'000}, {"kept_every", 8}, {"table", 1'000},
                    {"iterations", 1'000}}},
};
// clang-format on

}  // namespace hz::bench
