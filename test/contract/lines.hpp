// SPDX-License-Identifier: Apache-2.0
//
// Every line. Add a line here and it is held to the promises of a heap.
#pragma once

#include <gtest/gtest.h>

#include "heap/library.hpp"
#include "line/hakozuna.hpp"
#include "line/hz3.hpp"
#include "line/hz3_fast.hpp"
#include "line/hz4.hpp"
#include "line/hz5.hpp"
#include "line/hz6.hpp"
#include "line/hz7.hpp"
#include "line/hz8.hpp"
#include "line/secure.hpp"

namespace hz_test {

using LinesOfBoxes =
    ::testing::Types<hz::Hz3, hz::Hz3Fast, hz::Hakozuna, hz::Hz4, hz::Hz5, hz::Hz6, hz::Hz8, hz::Secure>;
using Lines = ::testing::Types<hz::Hz3, hz::Hz3Fast, hz::Hakozuna, hz::Hz4, hz::Hz5, hz::Hz6, hz::Hz7,
                               hz::Hz8, hz::Secure>;

// Whether threads have heaps of their own.
template <class Line>
inline constexpr bool kOfBoxes = requires {
  typename Line::Front;
};

// Whether a block has what was asked for, and not a byte more; large ones are then mapped for each.
template <class Line>
inline constexpr bool kSealed = requires {
  requires Line::Guard::kSealBytes != 0;
};

}  // namespace hz_test
