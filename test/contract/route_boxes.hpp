// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role route. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/route/byte_tag.hpp"
#include "box/route/descriptor.hpp"
#include "box/route/page_header.hpp"
#include "box/route/page_tag.hpp"

namespace hz_test {

using RouteBoxes = ::testing::Types<hz::PageTag, hz::ByteTag, hz::PageHeader, hz::Descriptor>;

}  // namespace hz_test
