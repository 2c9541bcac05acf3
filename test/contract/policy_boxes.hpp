// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role policy. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "line/hakozuna.hpp"
#include "line/hz3.hpp"
#include "line/hz3_fast.hpp"
#include "line/hz4.hpp"
#include "line/hz5.hpp"
#include "line/hz6.hpp"
#include "line/hz8.hpp"

namespace hz_test {

using PolicyBoxes = ::testing::Types<hz::Frozen<hz::Hz3>, hz::Frozen<hz::Hz3Fast>, hz::Frozen<hz::Hakozuna>,
                                     hz::Frozen<hz::Hz4>, hz::SizeBands<hz::Hz5>, hz::Frozen<hz::Hz6>,
                                     hz::Frozen<hz::Hz8>, hz::Hakozuna::Policy, hz::Hz5::Policy>;

}  // namespace hz_test
