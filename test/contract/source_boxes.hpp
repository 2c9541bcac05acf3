// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role source. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/source/arena.hpp"

namespace hz_test {

using SourceBoxes = ::testing::Types<hz::Arena>;

}  // namespace hz_test
