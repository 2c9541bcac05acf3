// SPDX-License-Identifier: Apache-2.0
//
// Runs the present test again in a process that starts with what is decided when a process starts: a limit of
// address space, settings of the heap, a namespace or a control group. Called by the tests of exhaustion and
// of limits.
//
//   TEST(Suite, Name) { UnderLimitOf(256 * kMiB, [] { … in the limited process … }); }
//   TEST(Suite, Name) { InProcessWith({{"HZ_LIMIT_HARD", "64M"}}, [] { … }); }
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "stress/scale.hpp"
#include "support/child.hpp"
#include "support/rss.hpp"

namespace hz_test {

inline constexpr const char* kInsideProcess = "HZ_TEST_INSIDE";

// `shell` is what a shell does before it becomes the test; `wrapper` is the command that runs the shell.
inline ChildResult RunInProcess(std::vector<Setting> settings, const std::string& shell,
                                std::vector<std::string> wrapper) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
  settings.emplace_back(kInsideProcess, "1");
  if (shell.empty() && wrapper.empty()) return RunChild({"/proc/self/exe", filter}, settings);
  const std::string self = "/proc/" + std::to_string(getpid()) + "/exe";  // the shell would be who asks
  for (const std::string& word : AfterShell(shell.empty() ? "true" : shell, self, filter))
    wrapper.push_back(word);
  KeepPreloadFromShell(settings);
  return RunChild(wrapper, settings);
}

// What the other process skips is skipped here, for its reason.
template <class Work>
void InProcessWith(std::vector<Setting> settings, Work work, const std::string& shell = "",
                   std::vector<std::string> wrapper = {}) {
  if (std::getenv(kInsideProcess) != nullptr) {
    const Watchdog watchdog(100);
    return work();
  }
  const ChildResult result = RunInProcess(std::move(settings), shell, std::move(wrapper));
  ASSERT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
  ASSERT_NE(std::string::npos, result.out.find("[ RUN      ]")) << "the test did not run\n"
                                                                << result.out << result.err;
  const std::size_t skipped = result.out.find(": Skipped\n");
  if (skipped != std::string::npos) GTEST_SKIP() << result.out.substr(skipped + 10);
}

template <class Work>
void UnderLimitOf(std::size_t bytes, Work work) {
  if (kUnderTool) GTEST_SKIP() << "a sanitizer does not start under a limit of address space";
  InProcessWith({}, work, "ulimit -v " + std::to_string(bytes / 1024));
}

}  // namespace hz_test
