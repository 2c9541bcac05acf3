// SPDX-License-Identifier: Apache-2.0
//
// How a run is told on the command line and how it is printed.
#include "lane/record.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "lane/options.hpp"

namespace hz::bench {
namespace {

constexpr Lane kFixed{.name = "fixed", .family = "test", .threads = 8, .definition = {{"slots", 4}}};
constexpr Lane kFree{.name = "free",
                     .family = "test",
                     .upstream = true,
                     .definition = {{"iterations", 10}, {"iterations_upstream", 5}, {"remote_percent", 0}}};

template <class Print>
std::string printed(Print print) {
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* out = open_memstream(&text, &length);
  print(out);
  std::fclose(out);
  std::string result(text, length);
  std::free(text);
  return result;
}

TEST(Record, DefinitionsAreFlatNumbersAndTexts) {
  const Definition definition{{"slots", 400}, {"sizes", "80 % \"small\""}};
  EXPECT_EQ(printed([&](std::FILE* out) { print_definition(out, definition); }),
            R"("definition":{"slots":400,"sizes":"80 % \"small\""})");
}

TEST(Record, TextIsEscaped) {
  EXPECT_EQ(printed([](std::FILE* out) { print_text(out, "a\"b\\c\nd"); }), R"("a\"b\\cd")");
}

TEST(Record, SeriesOnlyWhereThereIsOne) {
  Record record;
  const auto series = [&](std::FILE* out) { print_series(out, record); };
  EXPECT_EQ(printed(series), "");
  record.add_rss_point("freed", 1);
  record.add_rss_point("freed", 2);
  const std::string text = printed(series);
  EXPECT_EQ(text.find("\"rss_series_kib\":[[\"freed 1\","), 0U) << text;
  EXPECT_NE(text.find("],[\"freed 2\","), std::string::npos) << text;
}

TEST(RecordDeathTest, TooManyPointsAreRefused) {
  Record record;
  for (unsigned i = 0; i < 64; ++i) record.add_rss_point("point", i);
  EXPECT_EXIT(record.add_rss_point("point", 64), testing::ExitedWithCode(3), "more points");
}

TEST(DefinitionDeathTest, AFamilyThatAsksForAMissingNumberIsStopped) {
  EXPECT_EXIT(std::printf("%llu", static_cast<unsigned long long>(kFixed.definition["ring"])),
              testing::ExitedWithCode(3), "a definition lacks the number");
}

TEST(Options, IterationsAreThoseOfTheMode) {
  EXPECT_EQ(apply({.lane = &kFree, .threads = 2}).iterations(), 10U);
  EXPECT_EQ(apply({.lane = &kFree, .threads = 2, .mode = Mode::kUpstream}).iterations(), 5U);
  const auto run = apply({.lane = &kFree, .threads = 2, .iterations = 7, .mode = Mode::kUpstream});
  EXPECT_EQ(run.lane.definition["iterations_upstream"], 7U);
  EXPECT_EQ(run.lane.definition["iterations"], 10U);
}

TEST(Options, FixedThreadsNeedNotBeSaid) {
  EXPECT_EQ(apply({.lane = &kFixed}).threads, 8U);
  EXPECT_EQ(apply({.lane = &kFixed, .threads = 8}).threads, 8U);
}

TEST(OptionsDeathTest, WhatALaneDoesNotHaveIsRefused) {
  const auto refused = testing::ExitedWithCode(2);
  EXPECT_EXIT(apply({.lane = &kFixed, .threads = 2}), refused,
              "number of threads is part of this lane's definition");
  EXPECT_EXIT(apply({.lane = &kFixed, .mode = Mode::kUpstream}), refused, "no upstream mode");
  EXPECT_EXIT(apply({.lane = &kFixed, .iterations = 1}), refused, "no iterations");
  EXPECT_EXIT(apply({.lane = &kFixed, .remote = 1}), refused, "no remote share");
  EXPECT_EXIT(apply({.lane = &kFree}), refused, "--threads is missing");
  EXPECT_EXIT(apply({}), refused, "--lane is missing");
}

}  // namespace
}  // namespace hz::bench
