// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role front. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/front/linked_bins.hpp"
#include "line/hakozuna.hpp"
#include "line/hz8.hpp"

namespace hz_test {

using FrontBoxes =
    ::testing::Types<hz::LinkedBins, hz::MagazineBins<hz::Hakozuna>, hz::MagazineBins<hz::Hz8>>;
using MagazineFronts = ::testing::Types<hz::MagazineBins<hz::Hakozuna>, hz::MagazineBins<hz::Hz8>>;

}  // namespace hz_test
