// SPDX-License-Identifier: Apache-2.0
//
// The lane that is about single calls: how long a malloc and a free take, the longest ones too. Part of the
// catalogue of `lane`.
//
// One iteration: draw a slot. If it is empty, allocate: sizes as an application's (solo/draws.hpp), one in
// `large_every` drawn from 32 KiB to max_size instead. If it is occupied, free its block; or,
// `remote_percent` of the times, leave it on a board that all threads share and free what lay there. After
// each `phase` iterations all slots are freed in turn.
#pragma once

#include <cstdint>

#include "lane/lane.hpp"

namespace hz::bench {

inline constexpr Lane kLatencyLanes[] = {
    {.name = "latency",
     .family = "latency",
     .definition = {{"min_size", 16},
                    {"max_size", 4'194'304},
                    {"iterations", 4'000'000},
                    {"slots", 20'000},
                    {"remote_percent", 20},
                    {"large_every", 1'000},
                    {"phase", 400'000}}},
};

}  // namespace hz::bench
