// SPDX-License-Identifier: Apache-2.0
//
// Makes memory run out, and come back, at will. An allocator may reserve its range at start, and what is
// reserved cannot be taken away by a limit; so the test runs itself again in a process that had a limit from
// its start. Called by tests of exhaustion:
//
//   TEST(Suite, Name) {
//     if (!hz_test::StartedUnderLimit()) return hz_test::RunThisTestUnderLimit();
//     hz_test::ForbidMoreAddressSpace(); … hz_test::AllowMoreAddressSpace(); …
//   }
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/child.hpp"

namespace hz_test {

inline constexpr rlim_t kLimitBytes = rlim_t{16} << 30;

inline bool StartedUnderLimit() { return std::getenv("HZ_TEST_LIMITED") != nullptr; }

inline void SetSoftLimit(rlim_t bytes) {
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_AS, &limit);
}
inline void ForbidMoreAddressSpace() { SetSoftLimit(1); }
inline void AllowMoreAddressSpace() { SetSoftLimit(kLimitBytes); }

inline void RunThisTestUnderLimit() {
  if (kEmulated) GTEST_SKIP() << "an emulator does not keep the limit";
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
  char program[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  std::vector<Setting> settings = {{"HZ_TEST_LIMITED", "1"}};
  KeepPreloadFromShell(settings);
  const ChildResult result =
      RunChild(AfterShell("ulimit -S -v " + std::to_string(kLimitBytes / 1024), program, filter), settings);
  EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
}

}  // namespace hz_test
