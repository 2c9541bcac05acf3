// SPDX-License-Identifier: Apache-2.0
//
// Starts the tests of jemalloc's interface, after checking whose functions serve them: ours, or jemalloc's.
#include <gtest/gtest.h>

#include "jemalloc/interface.hpp"

namespace {

class JemallocEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    const std::string version = hz_test::jemalloc::Value<const char*>("version");
    const bool ours = version.find("hakozuna") != std::string::npos;
    ASSERT_NE(hz_test::jemalloc::OnJemalloc(), ours) << version;
    for (const char* name : {"malloc", "free", "mallocx", "mallctl", "malloc_stats_print", "_Znwm"})
      ASSERT_EQ(ours, hz_test::ServedByUs(name)) << name;
  }
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new JemallocEnvironment);
  return RUN_ALL_TESTS();
}
