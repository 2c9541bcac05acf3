// SPDX-License-Identifier: Apache-2.0
//
// The environment: what is not understood is told in one line and the default holds; what is understood is
// silent. The program runs itself as a child: with HZ_TEST_BUG it frees a foreign pointer, or a block
// twice, which shows the mode in force.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/child.hpp"
#include "support/heap_api.hpp"

namespace hz_test {
namespace {

ChildResult Run(const char* what, std::vector<Setting> settings) {
  settings.emplace_back("HZ_TEST_BUG", what);
#ifndef HZ_TEST_DIRECT
  const char* library = std::getenv("HZ_TEST_LIBRARY");
  settings.emplace_back("LD_PRELOAD", library == nullptr ? "HZ_TEST_LIBRARY-is-not-set" : library);
#endif
  return RunChild({"/proc/self/exe"}, settings);
}

ChildResult RunClean(std::vector<Setting> settings) { return Run("none", std::move(settings)); }
ChildResult RunForeign(std::vector<Setting> settings) { return Run("foreign", std::move(settings)); }
ChildResult RunTwice(std::vector<Setting> settings) { return Run("twice", std::move(settings)); }

bool IsOneLine(const std::string& text) { return text.find('\n') == text.size() - 1; }

TEST(Environment, NothingSetNothingSaid) {
  const ChildResult result = RunClean({});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ("", result.err);
}

TEST(Environment, UnknownStatsValue) {
  const ChildResult result = RunClean({{"HZ_STATS", "banana"}});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ("hz: warning: HZ_STATS=banana not understood; accepted: 0, 1, json\n", result.err);
}

TEST(Environment, UnknownOnInvalidValueMeansAbort) {
  const std::string warning = "hz: warning: HZ_ON_INVALID=banana not understood; accepted: abort, report\n";
  ChildResult result = RunClean({{"HZ_ON_INVALID", "banana"}});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ(warning, result.err);
  result = RunForeign({{"HZ_ON_INVALID", "banana"}});
  EXPECT_EQ(SIGABRT, result.signal);
  EXPECT_EQ(0u, result.err.find(warning + "hz: fatal: E01")) << result.err;
}

TEST(Environment, ValuesThatAreNoNumbers) {
  for (const char* name :
       {"HZ_THREAD_CACHE", "HZ_RETAIN", "HZ_BACKGROUND", "HZ_LIMIT_SOFT", "HZ_LIMIT_HARD"}) {
    for (const char* value : {"banana", "-1", "12x", "99999999999999999999999999"}) {
      const ChildResult result = RunClean({{name, value}});
      const std::string warning =
          std::string("hz: warning: ") + name + "=" + value + " not understood; accepted: ";
      EXPECT_EQ(0, result.exit_code) << name << "=" << value;
      EXPECT_EQ(0u, result.err.find(warning)) << result.err;
      EXPECT_TRUE(IsOneLine(result.err)) << result.err;
    }
  }
}

TEST(Environment, ValuesThatAreUnderstoodAreSilent) {
  for (const Setting& setting : std::vector<Setting>{{"HZ_STATS", "0"},
                                                     {"HZ_ON_INVALID", "abort"},
                                                     {"HZ_ON_INVALID", "report"},
                                                     {"HZ_THREAD_CACHE", "1048576"},
                                                     {"HZ_THREAD_CACHE", "1M"},
                                                     {"HZ_RETAIN", "100"},
                                                     {"HZ_RETAIN", "200"},
                                                     {"HZ_BACKGROUND", "0"},
                                                     {"HZ_BACKGROUND", "1"},
                                                     {"HZ_LIMIT_SOFT", "90%"},
                                                     {"HZ_LIMIT_HARD", "1G"},
                                                     {"HZ_OPTIONS", "stats:0,on_invalid:report"},
                                                     {"HZ_OPTIONS", "retain:150,thread_cache:65536"}}) {
    const ChildResult result = RunClean({setting});
    EXPECT_EQ(0, result.exit_code) << setting.first << "=" << setting.second;
    EXPECT_EQ("", result.err) << setting.first << "=" << setting.second;
  }
}

TEST(Environment, UnknownVariablesAreNamed) {
  ChildResult result = RunClean({{"HZ_RETIAN", "200"}});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ("hz: warning: HZ_RETIAN not understood; did you mean HZ_RETAIN?\n", result.err);
  result = RunClean({{"HZ_BUILD_DIR", "x"}, {"HZ_LAB_LINES", "x"}, {"HZ_TEST_ANYTHING", "x"}});
  EXPECT_EQ("", result.err) << "what the launcher, the lab and the tests tell each other";
}

TEST(Environment, AListOfAnyLengthIsHeard) {
  std::string list = "retain:150";
  while (list.size() < 10'000) list += ",retain:150";
  const ChildResult result = RunForeign({{"HZ_OPTIONS", list + ",on_invalid:report"}});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ(0u, result.err.find("hz: error: E01 foreign-pointer")) << result.err;
}

TEST(Environment, APresetIsTheLinesOwn) {
  ChildResult result = RunClean({{"HZ_PRESET", "banana"}});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ("hz: warning: line " + ExpectedLine() + " has no preset banana\n", result.err);
  result = RunClean({{"HZ_OPTIONS", "preset:large_direct"}});
  const bool has = ExpectedLine() == "hz8";
  EXPECT_EQ(has ? "" : "hz: warning: line " + ExpectedLine() + " has no preset large_direct\n", result.err);
}

// Of hz5, as they were published; whatever it is, every free is proved.
TEST(Environment, NoProfileSwitchesTheProofOff) {
  for (const std::string profile : {"pagerun64-main", "pagerun64-cross128", "large128-rss",
                                    "large128-source16", "large128-transfer128", "local2p"}) {
    const bool has = ExpectedLine() == "hz5";
    const std::string warning = "hz: warning: line " + ExpectedLine() + " has no preset " + profile + "\n";
    ChildResult result = RunClean({{"HZ_OPTIONS", "profile:" + profile}});
    EXPECT_EQ(0, result.exit_code) << profile;
    EXPECT_EQ(has ? "" : warning, result.err) << profile;
    if (!has) continue;
    result = RunForeign({{"HZ_OPTIONS", "profile:" + profile}});
    EXPECT_EQ(SIGABRT, result.signal) << profile;
    EXPECT_EQ(0u, result.err.find("hz: fatal: E01 foreign-pointer")) << result.err;
    result = RunTwice({{"HZ_OPTIONS", "profile:" + profile}});
    EXPECT_EQ(SIGABRT, result.signal) << profile;
    EXPECT_EQ(0u, result.err.find("hz: fatal: E03 double-free")) << result.err;
  }
}

TEST(Environment, OptionsAreUnderstood) {
  const ChildResult result = RunForeign({{"HZ_OPTIONS", "stats:0,on_invalid:report"}});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ(0u, result.err.find("hz: error: E01 foreign-pointer")) << result.err;
  EXPECT_TRUE(IsOneLine(result.err)) << result.err;
}

TEST(Environment, StatsAsAnOption) {
  const ChildResult result = RunClean({{"HZ_OPTIONS", "stats:1"}});
  EXPECT_EQ(0u, result.err.find("hz: stats line=")) << result.err;
  EXPECT_TRUE(IsOneLine(result.err)) << result.err;
}

TEST(Environment, TheVariableOfTheKeyWinsOverOptions) {
  ChildResult result = RunForeign({{"HZ_OPTIONS", "on_invalid:abort"}, {"HZ_ON_INVALID", "report"}});
  EXPECT_EQ(0, result.exit_code);
  result = RunForeign({{"HZ_OPTIONS", "on_invalid:report"}, {"HZ_ON_INVALID", "abort"}});
  EXPECT_EQ(SIGABRT, result.signal);
}

TEST(Environment, UnknownOptionsAreToldOnce) {
  for (const char* text : {"stats:banana", "on_invalid:", "bogus:1", "bogus"}) {
    const std::string options = text;
    const ChildResult result = RunClean({{"HZ_OPTIONS", options}});
    const std::string named = options.find("bogus") == 0 ? "bogus" : "";
    EXPECT_EQ(0, result.exit_code) << options;
    EXPECT_EQ(0u, result.err.find("hz: warning: HZ_")) << options << ": " << result.err;
    EXPECT_NE(std::string::npos, result.err.find(named)) << options << ": " << result.err;
    EXPECT_NE(std::string::npos, result.err.find(" not understood; accepted: "))
        << options << ": " << result.err;
    EXPECT_TRUE(IsOneLine(result.err)) << options << ": " << result.err;
  }
}

TEST(Environment, OneBadOptionDoesNotStopTheNext) {
  const ChildResult result = RunForeign({{"HZ_OPTIONS", "bogus:1,on_invalid:report"}});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_NE(std::string::npos, result.err.find("hz: error: E01 foreign-pointer")) << result.err;
}

int Child(const std::string& what) {
  if (ExpectedLine() != api::LineName()) return 2;
  api::Free(api::Malloc(100));
  static char in_data[64];
  if (what == "foreign") api::Free(in_data);
  if (what == "twice") {
    void* block = api::Malloc(100);
    api::Free(block);
    api::Free(block);
  }
  return 0;
}

}  // namespace
}  // namespace hz_test

int main(int argc, char** argv) {
  if (const char* what = std::getenv("HZ_TEST_BUG")) return hz_test::Child(what);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
