// SPDX-License-Identifier: Apache-2.0
//
// Runs the present test once more in a process of its own, with another environment and limit of address
// space. Called by tests of what is decided when a process starts; the variable that they set tells them
// where they are.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/child.hpp"

namespace hz_test {

inline ChildResult RunThisTestAgain(const std::vector<Setting>& settings,
                                    const std::string& address_space_kib = "") {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
  if (address_space_kib.empty()) return RunChild({"/proc/self/exe", filter}, settings);
  // The shell would be who asks.
  const std::string self = "/proc/" + std::to_string(getpid()) + "/exe";
  return RunChild(AfterShell("ulimit -v " + address_space_kib, self, filter), settings);
}

}  // namespace hz_test
