// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role guard. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/guard/fail_fast.hpp"
#include "box/guard/outside.hpp"

namespace hz_test {

using GuardBoxes = ::testing::Types<hz::FailFast, hz::Outside>;

}  // namespace hz_test
