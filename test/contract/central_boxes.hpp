// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role central (the lists of loose slots). Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "line/hakozuna.hpp"
#include "line/hz3.hpp"
#include "line/hz3_fast.hpp"

namespace hz_test {

using CentralBoxes =
    ::testing::Types<hz::LockFreeList<hz::Hz3>, hz::LockFreeList<hz::Hz3Fast>, hz::MagazineDepot<hz::Hakozuna>>;

}  // namespace hz_test
