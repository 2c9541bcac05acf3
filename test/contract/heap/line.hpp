// SPDX-License-Identifier: Apache-2.0
//
// The line whose heap these tests look into: the build names it, and its direct library has the slow paths
// (export/line.hpp).
#pragma once

#include <gtest/gtest.h>

#include "export/line.hpp"

namespace hz_test {

using ThisLine = ::testing::Types<hz::ThisLine>;

}  // namespace hz_test
