// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role retain. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/retain/hysteresis.hpp"

namespace hz_test {

using RetainBoxes = ::testing::Types<hz::Hysteresis>;

}  // namespace hz_test
