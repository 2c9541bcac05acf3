// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role exchange. Add a box here and it is held to the contract.
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

// Where slots of any class wait, those with an outbox, and those that are not told of each slot that is
// deferred.
using ExchangeBoxes =
    ::testing::Types<hz::Hakozuna::Exchange, hz::Hz3::Exchange, hz::Hz3Fast::Exchange, hz::Hz4::Exchange,
                     hz::Hz5::Exchange, hz::Hz6::Exchange, hz::Hz8::Exchange>;
using OutboxBoxes =
    ::testing::Types<hz::Hz3::Exchange, hz::Hz3Fast::Exchange, hz::Hz4::Exchange, hz::Hz6::Exchange>;
using UntoldBoxes = ::testing::Types<hz::Hz8::Exchange>;

}  // namespace hz_test
