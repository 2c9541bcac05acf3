// SPDX-License-Identifier: Apache-2.0
//
// Starts the surface tests of one program, after checking that the expected line serves it.
#include <gtest/gtest.h>

#include "support/line.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new hz_test::LineEnvironment);
  return RUN_ALL_TESTS();
}
