// SPDX-License-Identifier: Apache-2.0
//
// Knobs: values from the environment, the list, who wins, and what is said about the rest.
#include "heap/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "support/capture.hpp"

namespace hz_test {
namespace {

using hz::Options;
using hz::StatsFormat;

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() { Clear(); }
  ~OptionsTest() override { Clear(); }

  static void Clear() {
    unsetenv("HZ_OPTIONS");
    for (const Options::Knob& knob : Options::kKnobs) unsetenv(knob.variable);
  }
  Options Read() {
    Capture capture;
    const Options options = Options::read();
    said_ = capture.Text();
    return options;
  }
  Options Read(const char* name, const char* value) {
    setenv(name, value, 1);
    return Read();
  }

  static void ExpectLimit(std::size_t bytes, unsigned percent, bool given, const hz::MemoryLimit& limit) {
    EXPECT_EQ(bytes, limit.bytes);
    EXPECT_EQ(percent, limit.percent);
    EXPECT_EQ(given, limit.given);
  }

  std::string said_;
};

TEST_F(OptionsTest, Defaults) {
  const Options options = Read();
  EXPECT_EQ("", said_);
  EXPECT_EQ(StatsFormat::kNone, options.stats);
  EXPECT_FALSE(options.report_only);
  EXPECT_EQ(0u, options.thread_cache);
  EXPECT_EQ(0u, options.retain);
  for (const hz::MemoryLimit& limit : {options.limit_soft, options.limit_hard}) ExpectLimit(0, 0, false, limit);
}

TEST_F(OptionsTest, Limits) {
  struct Understood {
    const char* value;
    std::size_t bytes;
    unsigned percent;
  };
  for (const Understood& u :
       {Understood{"0", 0, 0}, Understood{"0M", 0, 0}, Understood{"1048576", hz::kMiB, 0},
        Understood{"1024k", hz::kMiB, 0}, Understood{"1024K", hz::kMiB, 0}, Understood{"1m", hz::kMiB, 0},
        Understood{"300M", 300 * hz::kMiB, 0}, Understood{"2g", 2 * hz::kGiB, 0},
        Understood{"16384G", 16384 * hz::kGiB, 0}, Understood{"17592186044416", 16384 * hz::kGiB, 0},
        Understood{"1%", 0, 1}, Understood{"80%", 0, 80}, Understood{"100%", 0, 100}}) {
    SCOPED_TRACE(u.value);
    ExpectLimit(u.bytes, u.percent, true, Read("HZ_LIMIT_SOFT", u.value).limit_soft);
    ExpectLimit(u.bytes, u.percent, true, Read("HZ_LIMIT_HARD", u.value).limit_hard);
    EXPECT_EQ("", said_);
  }
  Clear();
  for (const char* value : {"",
                            "banana",
                            "-1",
                            "+1M",
                            "1.5G",
                            "100",
                            "1048575",
                            "1023K",
                            "M",
                            "%",
                            "0%",
                            "101%",
                            "1000%",
                            "80%%",
                            "80 %",
                            "1MB",
                            "1MiB",
                            "1T",
                            "16385G",
                            "17592186044417",
                            "18446744073709551616",
                            "99999999999999999999999999",
                            "18014398509481984K",
                            "0x100000",
                            " 1M",
                            "1M "}) {
    SCOPED_TRACE(value);
    ExpectLimit(0, 0, false, Read("HZ_LIMIT_HARD", value).limit_hard);
    EXPECT_EQ(
        "hz: warning: HZ_LIMIT_HARD=" + std::string(value) + " not understood; accepted: 0, 1M to 16384G, 1% to 100%\n",
        said_);
  }
}

TEST_F(OptionsTest, HugePages) {
  using hz::os::HugePages;
  EXPECT_EQ(HugePages::kAsTheSystemSays, Read("HZ_THP", "auto").huge_pages);
  EXPECT_EQ(HugePages::kNever, Read("HZ_THP", "never").huge_pages);
  EXPECT_EQ(HugePages::kAlways, Read("HZ_THP", "always").huge_pages);
  EXPECT_EQ("", said_);
  EXPECT_EQ(HugePages::kAsTheSystemSays, Read("HZ_THP", "1").huge_pages);
  EXPECT_EQ("hz: warning: HZ_THP=1 not understood; accepted: auto, never, always\n", said_);
}

TEST_F(OptionsTest, LimitsInTheList) {
  const Options options = Read("HZ_OPTIONS", "limit_soft:75%,limit_hard:256M");
  EXPECT_EQ("", said_);
  ExpectLimit(0, 75, true, options.limit_soft);
  ExpectLimit(256 * hz::kMiB, 0, true, options.limit_hard);
}

TEST_F(OptionsTest, EveryVariable) {
  EXPECT_EQ(StatsFormat::kText, Read("HZ_STATS", "1").stats);
  EXPECT_EQ(StatsFormat::kJson, Read("HZ_STATS", "json").stats);
  EXPECT_EQ(StatsFormat::kNone, Read("HZ_STATS", "0").stats);
  EXPECT_TRUE(Read("HZ_ON_INVALID", "report").report_only);
  EXPECT_FALSE(Read("HZ_ON_INVALID", "abort").report_only);
  EXPECT_FALSE(Read("HZ_BACKGROUND", "0").background);
  EXPECT_TRUE(Read("HZ_BACKGROUND", "1").background);
  EXPECT_EQ(1u, Read("HZ_THREAD_CACHE", "1").thread_cache);
  EXPECT_EQ(std::size_t{1} << 32, Read("HZ_THREAD_CACHE", "4294967296").thread_cache);
  EXPECT_EQ(100u, Read("HZ_RETAIN", "100").retain);
  EXPECT_EQ(1000u, Read("HZ_RETAIN", "1000").retain);
  EXPECT_EQ("", said_);
}

TEST_F(OptionsTest, WhatIsNotUnderstoodIsNamedAndChangesNothing) {
  for (const char* value : {"banana", "2", "01", "JSON", "1 ", ""}) {
    EXPECT_EQ(StatsFormat::kNone, Read("HZ_STATS", value).stats);
    EXPECT_EQ("hz: warning: HZ_STATS=" + std::string(value) + " not understood; accepted: 0, 1, json\n", said_);
  }
}

TEST_F(OptionsTest, RangesAreChecked) {
  for (const char* value :
       {"0", "-1", "+1", "0x10", "1k", "4294967297", "18446744073709551616", "99999999999999999999999", ""}) {
    EXPECT_EQ(0u, Read("HZ_THREAD_CACHE", value).thread_cache) << value;
    EXPECT_EQ("hz: warning: HZ_THREAD_CACHE=" + std::string(value) + " not understood; accepted: 1 to 4294967296\n",
              said_);
  }
  Clear();
  for (const char* value : {"99", "1001", "0"}) {
    EXPECT_EQ(0u, Read("HZ_RETAIN", value).retain) << value;
    EXPECT_EQ("hz: warning: HZ_RETAIN=" + std::string(value) + " not understood; accepted: 100 to 1000\n", said_);
  }
}

TEST_F(OptionsTest, AWrongModeMeansTheDefault) {
  setenv("HZ_OPTIONS", "on_invalid:report", 1);
  EXPECT_TRUE(Read().report_only);
  Clear();
  EXPECT_FALSE(Read("HZ_ON_INVALID", "banana").report_only);
  EXPECT_EQ("hz: warning: HZ_ON_INVALID=banana not understood; accepted: abort, report\n", said_);
}

// "The default stays" is said of a value that is not understood, wherever it stands: it must not undo another one.
TEST_F(OptionsTest, AWrongValueUndoesNothing) {
  setenv("HZ_OPTIONS", "on_invalid:report,stats:1,retain:300", 1);
  setenv("HZ_ON_INVALID", "banana", 1);
  setenv("HZ_STATS", "banana", 1);
  setenv("HZ_RETAIN", "banana", 1);
  const Options options = Read();
  EXPECT_EQ(StatsFormat::kText, options.stats);
  EXPECT_EQ(300u, options.retain);
  EXPECT_TRUE(options.report_only);
}

TEST_F(OptionsTest, TheList) {
  const Options options = Read("HZ_OPTIONS", "stats:json,on_invalid:report,thread_cache:65536,retain:200");
  EXPECT_EQ("", said_);
  EXPECT_EQ(StatsFormat::kJson, options.stats);
  EXPECT_TRUE(options.report_only);
  EXPECT_EQ(65536u, options.thread_cache);
  EXPECT_EQ(200u, options.retain);
}

TEST_F(OptionsTest, TheListForgivesEmptyPlaces) {
  EXPECT_EQ(StatsFormat::kText, Read("HZ_OPTIONS", ",,stats:1,").stats);
  EXPECT_EQ("", said_);
  Read("HZ_OPTIONS", "");
  EXPECT_EQ("", said_);
}

TEST_F(OptionsTest, LaterInTheListWins) { EXPECT_EQ(300u, Read("HZ_OPTIONS", "retain:200,retain:300").retain); }

TEST_F(OptionsTest, TheVariableWinsOverTheList) {
  setenv("HZ_OPTIONS", "retain:200,stats:1", 1);
  const Options options = Read("HZ_RETAIN", "300");
  EXPECT_EQ(300u, options.retain);
  EXPECT_EQ(StatsFormat::kText, options.stats);
}

TEST_F(OptionsTest, UnknownKeysAreNamedAndTheRestIsRead) {
  const Options options = Read("HZ_OPTIONS", "banana:7,retain:300,stats");
  EXPECT_EQ(300u, options.retain);
  EXPECT_NE(std::string::npos, said_.find("hz: warning: HZ_OPTIONS=banana not understood; accepted:")) << said_;
  EXPECT_NE(std::string::npos, said_.find("hz: warning: HZ_STATS= not understood; accepted: 0, 1, json\n")) << said_;
  for (const Options::Knob& knob : Options::kKnobs) EXPECT_NE(std::string::npos, said_.find(knob.key)) << said_;
}

TEST_F(OptionsTest, EveryKnobIsExplained) {
  for (const Options::Knob& knob : Options::kKnobs) {
    std::string variable = "HZ_";
    for (const char* c = knob.key; *c != 0; ++c) variable += static_cast<char>(std::toupper(*c));
    EXPECT_EQ(variable, knob.variable);
    EXPECT_GT(std::string(knob.accepted).size(), 3u);
    EXPECT_GT(std::string(knob.meaning).size(), 10u);
  }
}

}  // namespace
}  // namespace hz_test
