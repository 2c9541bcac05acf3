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

#include <cstdlib>
#include <fstream>
#include <optional>
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

// The whole system promises so many bytes more than it has promised, to all processes together, and no more
// (vm.overcommit_memory=2), as long as this lives. By root alone.
class NeverOvercommits {
 public:
  explicit NeverOvercommits(std::size_t bytes) {
    std::ifstream info("/proc/meminfo");
    std::size_t kib = 0;
    for (std::string word; kib == 0 && info >> word;)
      if (word == "Committed_AS:") info >> kib;
    ok_ = kib != 0 && Write("kbytes", kib + bytes / 1024) && Write("memory", 2);
  }
  NeverOvercommits(const NeverOvercommits&) = delete;
  NeverOvercommits& operator=(const NeverOvercommits&) = delete;
  ~NeverOvercommits() {
    Write("memory", memory_);
    ratio_ != 0 ? Write("ratio", ratio_) : Write("kbytes", kbytes_);  // one of the two holds
  }
  bool ok() const { return ok_; }

 private:
  static std::string File(const char* name) { return std::string("/proc/sys/vm/overcommit_") + name; }
  static std::size_t Read(const char* name) {
    std::size_t value = 0;
    std::ifstream(File(name)) >> value;
    return value;
  }
  static bool Write(const char* name, std::size_t value) {
    std::ofstream file(File(name));
    return static_cast<bool>(file << value << std::flush);
  }

  const std::size_t memory_ = Read("memory"), ratio_ = Read("ratio"), kbytes_ = Read("kbytes");
  bool ok_ = false;
};

// By the system's own promise where HZ_TEST_OVERCOMMIT says that the machine is the tests' alone.
template <class Work>
void UnderLimitOf(std::size_t bytes, Work work) {
  if (kUnderTool) GTEST_SKIP() << "a sanitizer does not start under a limit of address space";
  if (std::getenv("HZ_TEST_OVERCOMMIT") != nullptr) {
    std::optional<NeverOvercommits> system;
    if (std::getenv(kInsideProcess) == nullptr) {
      system.emplace(bytes);
      ASSERT_TRUE(system->ok()) << "root may say what the system promises";
    }
    return InProcessWith({}, work);
  }
  InProcessWith({}, work, "ulimit -v " + std::to_string(bytes / 1024));
}

}  // namespace hz_test
