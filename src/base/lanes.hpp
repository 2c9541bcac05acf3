// SPDX-License-Identifier: Apache-2.0
//
// Memory by vectors of 16 or 32 bytes, wherever they lie and whatever the program keeps there. Called by
// guards that look at blocks (box/guard/sealed.hpp); an instruction each where the processor has it, and wide
// ones only in functions that are HZ_WIDE.
#pragma once

#include <cstdint>

#include "base/compiler.hpp"
#include "base/units.hpp"

namespace hz {

using Lane = std::uint64_t __attribute__((vector_size(16)));
using WideLane = std::uint64_t __attribute__((vector_size(32)));
using LaneAt = Lane __attribute__((aligned(1), may_alias));
using WideLaneAt = WideLane __attribute__((aligned(1), may_alias));

HZ_INLINE LaneAt& lane_at(std::uintptr_t at) { return *static_cast<LaneAt*>(pointer(at)); }

}  // namespace hz
