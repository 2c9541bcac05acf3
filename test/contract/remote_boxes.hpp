// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role remote. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "line/hz3.hpp"
#include "line/hz3_fast.hpp"
#include "line/hz4.hpp"

namespace hz_test {

using RemoteBoxes = ::testing::Types<hz::SparseRing<hz::Hz3>, hz::DenseBank<hz::Hz3Fast>, hz::MessageBatch<hz::Hz4>>;

}  // namespace hz_test
