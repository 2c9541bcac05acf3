// SPDX-License-Identifier: Apache-2.0
//
// The lanes in which every thread works for itself on a table of slots. Part of the catalogue of `lane`.
//
// One iteration: draw a slot and a size; if the slot is occupied, free its block, else allocate one. `draws`
// says how:
//   one number    a single random number gives slot and size (sizes uniform)
//   application   the same, sizes 80 % in 16..256, 15 % in 257..2048, 5 % in 2049..32768
//   in turn       slot 0, 1, 2, ... and again: fill all slots, free all of them in the same order
// `written` bytes of a new block are written from its start (0: its first and last byte). A block that is
// allocated in an iteration divisible by `realloc_every` is at once resized to its size + 16 (0: never).
//
// upstream: the published shape, an LCG taken modulo, no barrier, blocks not written unless `written` says
// so, an op is an iteration. Its mixed_ws lanes fill and free all slots in turn, since their number is a
// power of two.
#pragma once

#include <cstdint>
#include <string_view>

#include "lane/lane.hpp"

namespace hz::bench {

struct SoloSizes {
  std::uint32_t min;
  std::uint32_t max;
};

constexpr Lane random_mixed_lane(std::string_view name, SoloSizes sizes) {
  return {.name = name,
          .family = "solo",
          .threads = 1,
          .upstream = true,
          .guard = name == "random_mixed_small",
          .definition = {{"min_size", sizes.min},
                         {"max_size", sizes.max},
                         {"iterations", 20'000'000},
                         {"slots", 400},
                         {"draws", "one number"},
                         {"written", 0},
                         {"realloc_every", 0}}};
}

// `iterations` are whole rounds of twice the slots.
constexpr Lane fill_drain_lane(std::string_view name, SoloSizes sizes, std::uint64_t iterations) {
  return {.name = name,
          .family = "solo",
          .threads = 1,
          .definition = {{"min_size", sizes.min},
                         {"max_size", sizes.max},
                         {"iterations", iterations},
                         {"slots", 4'096},
                         {"draws", "in turn"},
                         {"written", 0},
                         {"realloc_every", 0}}};
}

// The published numbers of iterations are too few to measure by; fair runs have more.
struct MixedIterations {
  std::uint64_t fair;
  std::uint64_t upstream;
};

constexpr Lane mixed_ws_lane(std::string_view name, unsigned threads, MixedIterations iterations,
                             std::uint32_t slots, SoloSizes sizes) {
  return {.name = name,
          .family = "solo",
          .threads = threads,
          .upstream = true,
          .definition = {{"min_size", sizes.min},
                         {"max_size", sizes.max},
                         {"iterations", iterations.fair},
                         {"iterations_upstream", iterations.upstream},
                         {"slots", slots},
                         {"draws", "one number"},
                         {"written", 64},
                         {"realloc_every", 64}}};
}

// One lane per line.
// clang-format off
inline constexpr Lane kSoloLanes[] = {
    random_mixed_lane("random_mixed_small", {16, 2'048}),
    random_mixed_lane("random_mixed_medium", {4'096, 32'768}),
    random_mixed_lane("random_mixed_mixed", {16, 32'768}),
    {.name = "dist_app", .family = "solo", .threads = 1,
     .definition = {{"min_size", 16}, {"max_size", 32'768}, {"iterations", 20'000'000}, {"slots", 400},
                    {"draws", "application"}, {"written", 0}, {"realloc_every", 0}}},
    fill_drain_lane("fill_drain_small", {16, 2'048}, 9'994'240),
    fill_drain_lane("fill_drain_medium", {256, 8'192}, 7'995'392),
    fill_drain_lane("fill_drain_4k", {4'096, 4'096}, 983'040),
    fill_drain_lane("fill_drain_8k", {8'192, 8'192}, 983'040),
    fill_drain_lane("fill_drain_16k", {16'384, 16'384}, 983'040),
    fill_drain_lane("fill_drain_32k", {32'768, 32'768}, 983'040),
    fill_drain_lane("fill_drain_64k", {65'536, 65'536}, 983'040),
    fill_drain_lane("fill_drain_128k", {131'072, 131'072}, 983'040),
    mixed_ws_lane("mixed_ws_balanced", 8, {5'000'000, 250'000}, 4'096, {16, 2'048}),
    mixed_ws_lane("mixed_ws_wide_ws", 8, {6'000'000, 200'000}, 16'384, {16, 1'024}),
    mixed_ws_lane("mixed_ws_larger_sizes", 4, {6'000'000, 150'000}, 4'096, {256, 8'192}),
    mixed_ws_lane("mixed_ws_large_slice_16k", 4, {10'000'000, 80'000}, 512, {16'384, 16'384}),
    mixed_ws_lane("mixed_ws_heavy_mixed", 8, {5'000'000, 5'000'000}, 16'384, {16, 4'096}),
};
// clang-format on

}  // namespace hz::bench
