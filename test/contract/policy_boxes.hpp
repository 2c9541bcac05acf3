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

// Of a line that nobody has a heap of.
struct PolicyOf : hz::Hakozuna {
  using Line = PolicyOf;
};
struct Learning : hz::Learned<hz::Frozen<PolicyOf>> {
  using Line = PolicyOf;
};
struct LearningInBands : hz::Learned<hz::SizeBands<PolicyOf>> {
  using Line = PolicyOf;
};

using PolicyBoxes = ::testing::Types<hz::Hz3::Policy, hz::Hz3Fast::Policy, hz::Hakozuna::Policy,
                                     hz::Hz4::Policy, hz::Hz5::Policy, hz::Hz6::Policy, hz::Hz8::Policy>;
using LearningPolicies = ::testing::Types<Learning, LearningInBands>;

}  // namespace hz_test
