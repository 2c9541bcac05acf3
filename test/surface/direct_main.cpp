// SPDX-License-Identifier: Apache-2.0
//
// Starts the tests of the direct API: the expected line answers hz_*, and malloc is somebody else's.
#include <gtest/gtest.h>

#include <cstdlib>

#include "hakozuna/hakozuna.h"
#include "support/line.hpp"
#include "support/tsan_options.hpp"

namespace {

class DirectEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_EQ(hz_test::ExpectedLine(), hz_line());
    void* ours = hz_malloc(100);
    void* theirs = std::malloc(100);
    ASSERT_EQ(1, hz_owns(ours));
    ASSERT_EQ(0, hz_owns(theirs)) << "malloc must stay the C library's here";
    hz_free(ours);
    std::free(theirs);
  }
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new DirectEnvironment);
  return RUN_ALL_TESTS();
}
