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
// Packed, which every compiler takes for any alignment; of a type with less alignment clang forgets that.
struct __attribute__((packed, may_alias)) LaneAt {
  Lane value;
};
struct __attribute__((packed, may_alias)) WideLaneAt {
  WideLane value;
};

HZ_INLINE LaneAt* lanes_at(std::uintptr_t at) { return static_cast<LaneAt*>(pointer(at)); }
HZ_INLINE WideLaneAt* wide_lanes_at(std::uintptr_t at) { return static_cast<WideLaneAt*>(pointer(at)); }

}  // namespace hz
