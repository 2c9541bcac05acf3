// SPDX-License-Identifier: Apache-2.0
//
// Runs the present test again in a process that starts under a limit of address space. Called by the tests of
// exhaustion and of small limits.
//
//   TEST(Suite, Name) { UnderLimitOf(256 * kMiB, [] { … in the limited process … }); }
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "stress/scale.hpp"
#include "support/child.hpp"
#include "support/rss.hpp"

namespace hz_test {

template <class Work>
void UnderLimitOf(std::size_t bytes, Work work) {
  constexpr const char* kInside = "HZ_TEST_UNDER_LIMIT";
  if (kSanitized) GTEST_SKIP() << "a sanitizer does not start under a limit of address space";
  if (std::getenv(kInside) != nullptr) {
    const Watchdog watchdog(100);
    return work();
  }
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
  char program[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  const std::string limit = "ulimit -v " + std::to_string(bytes / 1024) + " && exec \"$0\" \"$1\"";
  const ChildResult result = RunChild({"sh", "-c", limit, program, filter}, {{kInside, "1"}});
  EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
}

}  // namespace hz_test
