// SPDX-License-Identifier: Apache-2.0
//
// Starts the tests of failing calls; or lives through one life, where what opens the heap is to fail, which
// happens before main.
#include <gtest/gtest.h>

#include "fault/life.hpp"
#include "support/tsan_options.hpp"

namespace {
class RightLine : public ::testing::Environment {
  void SetUp() override { ASSERT_EQ(hz_test::ExpectedLine(), hz_line()); }
};
}  // namespace

int main(int argc, char** argv) {
  if (hz_test::failing::StartedToFail()) return hz_test::LiveFromTheStart();
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new RightLine);
  return RUN_ALL_TESTS();
}
