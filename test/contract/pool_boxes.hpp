// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role pool. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/pool/span_pool.hpp"

namespace hz_test {

using PoolBoxes = ::testing::Types<hz::SpanPool, hz::BasicSpanPool<false>>;

}  // namespace hz_test
