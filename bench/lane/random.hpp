// SPDX-License-Identifier: Apache-2.0
//
// Which generator a thread of a lane draws from: the good one in fair mode, the published one in upstream
// mode.
#pragma once

#include <cstdint>

#include "lane/lane.hpp"
#include "support/rng.hpp"

namespace hz::bench {

// The generator of thread `index`.
template <Mode kMode>
auto make_random(std::uint64_t seed, unsigned index) {
  if constexpr (kMode == Mode::kFair) {
    return Xorshift64Star(splitmix64(seed + index));
  } else {
    return Lcg32(static_cast<std::uint32_t>(seed + 977U * index));
  }
}

}  // namespace hz::bench
