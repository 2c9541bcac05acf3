// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role observe. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/observe/counters.hpp"
#include "box/observe/none.hpp"

namespace hz_test {

using ObserveBoxes = ::testing::Types<hz::Counters, hz::NoCounters>;

}  // namespace hz_test
