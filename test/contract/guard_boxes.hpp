// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role guard. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/guard/fail_fast.hpp"
#include "box/guard/lifecycle.hpp"
#include "box/guard/outside.hpp"
#include "box/guard/slot_state.hpp"

namespace hz_test {

// Its tables are those of a line; this is nobody's.
struct NoLine {};
struct NoLineEither {};

using GuardBoxes =
    ::testing::Types<hz::FailFast, hz::Outside, hz::SlotState<NoLine>, hz::Lifecycle<NoLineEither>>;

}  // namespace hz_test
