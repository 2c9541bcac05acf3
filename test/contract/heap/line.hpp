// SPDX-License-Identifier: Apache-2.0
//
// The line whose heap these tests look into: the build names it, and its direct library has the slow paths
// (export/line.hpp).
#pragma once

#include <gtest/gtest.h>

#include "export/line.hpp"

namespace hz_test {

using ThisLine = ::testing::Types<hz::ThisLine>;

// Whether a block has what was asked for, and not a byte more; large ones are then mapped for each.
template <class Line>
inline constexpr bool kSealed = hz::MitigationOf<Line>::kExactSizes;

}  // namespace hz_test
