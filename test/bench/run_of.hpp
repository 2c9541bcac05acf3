// SPDX-License-Identifier: Apache-2.0
//
// A lane as the catalogue has it, made short for a test.
#pragma once

#include <cstdint>
#include <string_view>

#include "lane/catalogue.hpp"
#include "lane/lane.hpp"

namespace hz::bench {

inline Run run_of(std::string_view lane, Mode mode = Mode::kFair, std::uint64_t iterations = 0) {
  Run run{.lane = *find_lane(lane), .mode = mode};
  if (iterations != 0) run.lane.definition.set(run.iterations_key(), iterations);
  return run;
}

}  // namespace hz::bench
