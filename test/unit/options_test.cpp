// SPDX-License-Identifier: Apache-2.0
//
// Knobs: values from the environment, the list, who wins, and what is said about the rest.
#include "heap/settings/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "os/message.hpp"
#include "support/capture.hpp"
#include "support/variable.hpp"

namespace hz_test {
namespace {

using hz::Options;
using hz::StatsFormat;

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() { Clear(); }
  ~OptionsTest() override { Clear(); }

  static void Clear() {
    SetVariable("HZ_OPTIONS", nullptr);
    for (const Options::Knob& knob : Options::kKnobs) SetVariable(knob.variable, nullptr);
  }
  Options Read() {
    Capture capture;
    Options options;
    options.read();
    said_ = capture.Text();
    return options;
  }
  Options Read(const char* name, const char* value) {
    SetVariable(name, value);
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
  for (const hz::MemoryLimit& limit : {options.limit_soft, options.limit_hard})
    ExpectLimit(0, 0, false, limit);
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
    EXPECT_EQ("hz: warning: HZ_LIMIT_HARD=" + std::string(value) +
                  " not understood; accepted: 0, 1M to 16384G, 1% to 100%\n",
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
  EXPECT_FALSE(Read().name_mappings);
  EXPECT_TRUE(Read("HZ_NAME_MAPPINGS", "1").name_mappings);
  EXPECT_FALSE(Read("HZ_NAME_MAPPINGS", "0").name_mappings);
  EXPECT_EQ(1u, Read("HZ_THREAD_CACHE", "1").thread_cache);
  EXPECT_EQ(std::size_t{1} << 32, Read("HZ_THREAD_CACHE", "4294967296").thread_cache);
  EXPECT_EQ(0u, Read("HZ_THREAD_CACHE", "auto").thread_cache);
  EXPECT_EQ(hz::RetainSettings::kUsual, Read().retain_floor);
  EXPECT_EQ(0u, Read("HZ_RETAIN_FLOOR", "0").retain_floor);
  EXPECT_EQ(hz::kGiB, Read("HZ_RETAIN_FLOOR", "1G").retain_floor);
  EXPECT_FALSE(Read("HZ_CONTROL", "0").control);
  EXPECT_TRUE(Read("HZ_CONTROL", "1").control);
  EXPECT_EQ(100u, Read("HZ_RETAIN", "100").retain);
  EXPECT_EQ(1000u, Read("HZ_RETAIN", "1000").retain);
  EXPECT_EQ("", said_);
}

TEST_F(OptionsTest, WhatIsNotUnderstoodIsNamedAndChangesNothing) {
  for (const char* value : {"banana", "2", "01", "JSON", "1 ", ""}) {
    EXPECT_EQ(StatsFormat::kNone, Read("HZ_STATS", value).stats);
    EXPECT_EQ("hz: warning: HZ_STATS=" + std::string(value) + " not understood; accepted: 0, 1, json\n",
              said_);
  }
}

TEST_F(OptionsTest, EverySizeTakesUnits) {
  struct Understood {
    const char* value;
    std::size_t bytes;
  };
  for (const Understood& u :
       {Understood{"1", 1}, Understood{"1k", hz::kKiB}, Understood{"1K", hz::kKiB},
        Understood{"1m", hz::kMiB}, Understood{"1M", hz::kMiB}, Understood{"3g", 3 * hz::kGiB},
        Understood{"4G", 4 * hz::kGiB}, Understood{"4194304K", 4 * hz::kGiB}}) {
    EXPECT_EQ(u.bytes, Read("HZ_THREAD_CACHE", u.value).thread_cache) << u.value;
    EXPECT_EQ("", said_);
  }
  Clear();
  EXPECT_EQ(2 * hz::kMiB, Read("HZ_OPTIONS", "thread_cache:2M").thread_cache);
  EXPECT_EQ("", said_);
}

TEST_F(OptionsTest, RangesAreChecked) {
  for (const char* value :
       {"0", "0K", "-1", "+1", "0x10", "k", "1kb", "1.5M", "1T", "5G", "4194305K", "4294967297",
        "18446744073709551616", "17179869184G", "99999999999999999999999", ""}) {
    EXPECT_EQ(0u, Read("HZ_THREAD_CACHE", value).thread_cache) << value;
    EXPECT_EQ(
        "hz: warning: HZ_THREAD_CACHE=" + std::string(value) + " not understood; accepted: auto, 1 to 4G\n",
        said_);
  }
  Clear();
  for (const char* value : {"99", "1001", "0"}) {
    EXPECT_EQ(0u, Read("HZ_RETAIN", value).retain) << value;
    EXPECT_EQ("hz: warning: HZ_RETAIN=" + std::string(value) + " not understood; accepted: 100 to 1000\n",
              said_);
  }
}

TEST_F(OptionsTest, AWrongModeMeansTheDefault) {
  SetVariable("HZ_OPTIONS", "on_invalid:report");
  EXPECT_TRUE(Read().report_only);
  Clear();
  EXPECT_FALSE(Read("HZ_ON_INVALID", "banana").report_only);
  EXPECT_EQ("hz: warning: HZ_ON_INVALID=banana not understood; accepted: abort, report\n", said_);
}

// "The default stays" is said of a value that is not understood, wherever it stands: it must not undo another
// one.
TEST_F(OptionsTest, AWrongValueUndoesNothing) {
  SetVariable("HZ_OPTIONS", "on_invalid:report,stats:1,retain:300");
  SetVariable("HZ_ON_INVALID", "banana");
  SetVariable("HZ_STATS", "banana");
  SetVariable("HZ_RETAIN", "banana");
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

TEST_F(OptionsTest, LaterInTheListWins) {
  EXPECT_EQ(300u, Read("HZ_OPTIONS", "retain:200,retain:300").retain);
}

TEST_F(OptionsTest, TheVariableWinsOverTheList) {
  SetVariable("HZ_OPTIONS", "retain:200,stats:1");
  const Options options = Read("HZ_RETAIN", "300");
  EXPECT_EQ(300u, options.retain);
  EXPECT_EQ(StatsFormat::kText, options.stats);
}

TEST_F(OptionsTest, UnknownKeysAreNamedAndTheRestIsRead) {
  const Options options = Read("HZ_OPTIONS", "banana:7,retain:300,stats");
  EXPECT_EQ(300u, options.retain);
  EXPECT_NE(std::string::npos, said_.find("hz: warning: HZ_OPTIONS=banana not understood; accepted:"))
      << said_;
  EXPECT_NE(std::string::npos, said_.find("hz: warning: HZ_STATS= not understood; accepted: 0, 1, json\n"))
      << said_;
  for (const Options::Knob& knob : Options::kKnobs)
    EXPECT_NE(std::string::npos, said_.find(knob.key)) << said_;
}

TEST_F(OptionsTest, AListOfAnyLengthIsRead) {
  for (const std::size_t length : {std::size_t{255}, std::size_t{256}, std::size_t{5000}, kLongestVariable}) {
    std::string list = "retain:300,";
    while (list.size() < length) list += "stats:1,";
    list += "thread_cache:1M";
    const Options options = Read("HZ_OPTIONS", list.c_str());
    EXPECT_EQ("", said_) << length;
    EXPECT_EQ(300u, options.retain) << length;
    EXPECT_EQ(hz::kMiB, options.thread_cache) << length;
    EXPECT_STREQ(list.c_str(), std::getenv("HZ_OPTIONS")) << "the program's own: not to be written to";
  }
}

TEST_F(OptionsTest, ALongValueIsNamedByItsBeginning) {
  const std::string value(5000, '7');
  EXPECT_EQ(0u, Read("HZ_RETAIN", value.c_str()).retain);
  EXPECT_EQ("hz: warning: HZ_RETAIN=" + value.substr(0, 150) + "... not understood; accepted: 100 to 1000\n",
            said_);
}

TEST_F(OptionsTest, MistypedVariablesAreNamedWithoutTheirValues) {
  Read("HZ_RETIAN", "200");
  EXPECT_EQ("hz: warning: HZ_RETIAN not understood; did you mean HZ_RETAIN?\n", said_);
  for (const char* name : {"HZ_THPS", "HZ_STAT", "HZ_OPTION", "HZ_LIMIT_HARDER"}) {
    Read(name, "secret");
    EXPECT_NE(std::string::npos, said_.find(std::string("hz: warning: ") + name + " not understood;"))
        << said_;
    EXPECT_EQ(std::string::npos, said_.find("secret")) << said_;
    SetVariable(name, nullptr);
  }
  SetVariable("HZ_RETIAN", nullptr);
  for (const char* name : {"HZ_", "hz_retain", "OTHER_HZ_RETIAN", "HZ_LICENSEKEY", "HZ_CLUSTERNAME",
                           "HZ_NETWORK_PORT_AUTOINCREMENT", "HZ_RETAIN_THE"}) {
    Read(name, "secret");
    EXPECT_EQ("", said_) << "another product's, or further away than two letters";
    SetVariable(name, nullptr);
  }
}

TEST_F(OptionsTest, WhatTheLauncherAndTheTestsSetIsNotOurs) {
  for (const char* name : {"HZ_BUILD_DIR", "HZ_LAB_LINES", "HZ_TEST_LINE", "HZ_UNIT_TEST"}) {
    const char* before = std::getenv(name);
    const std::string kept = before == nullptr ? "" : before;
    Read(name, "anything");
    EXPECT_EQ("", said_);
    before == nullptr ? SetVariable(name, nullptr) : SetVariable(name, kept.c_str());
  }
}

TEST_F(OptionsTest, AFileForStatisticsAsksForThem) {
  const std::string path = ::testing::TempDir() + "hz-options-%p";
  EXPECT_EQ(StatsFormat::kText, Read("HZ_STATS_FILE", path.c_str()).stats);
  EXPECT_EQ(StatsFormat::kJson, Read("HZ_STATS", "json").stats);
  EXPECT_EQ(StatsFormat::kNone, Read("HZ_STATS", "0").stats);
  EXPECT_EQ("", said_);
  Clear();
  EXPECT_EQ(StatsFormat::kNone, Read("HZ_STATS_FILE", std::string(1001, 'p').c_str()).stats);
  EXPECT_EQ(0u, said_.find("hz: warning: HZ_STATS_FILE=ppp")) << said_;
}

// What a knob tells, it takes, and is the same then.
TEST_F(OptionsTest, WhatIsToldIsUnderstood) {
  const Options options =
      Read("HZ_OPTIONS",
           "stats:json,on_invalid:report,thread_cache:64K,retain:200,retain_floor:3M,limit_soft:"
           "50%,limit_hard:1G,thp:never,policy:learn,learn_busy:7,learn_cache:9,preset:fast");
  const auto told = [](const Options& of, const Options::Knob& knob) {
    char text[3000];
    hz::os::TextInto into(text, sizeof text);
    knob.tell(of, into);
    return std::string(text);
  };
  for (const Options::Knob& knob : Options::kKnobs) {
    const std::string before = told(options, knob);
    EXPECT_NE("", before) << knob.key;
    if (before == "none") continue;
    Options other;
    EXPECT_TRUE(knob.set(other, {before.data(), before.size()})) << knob.key << "=" << before;
    EXPECT_EQ(before, told(other, knob)) << knob.key;
  }
}

// Beside the table that users read.
TEST_F(OptionsTest, ThePageSaysWhichCanBeSetLater) {
  std::ifstream page(HZ_TEST_DOC "/knobs.md");
  unsigned rows = 0;
  for (std::string line; std::getline(page, line);) {
    for (const Options::Knob& knob : Options::kKnobs) {
      if (line.rfind("| `" + std::string(knob.variable) + "` |", 0) != 0) continue;
      ++rows;
      const bool live = knob.live != hz::Setting::kStartOnly;
      EXPECT_NE(std::string::npos, line.find(live ? " | live | " : " | start | ")) << line;
    }
  }
  EXPECT_EQ(std::size(Options::kKnobs), rows);
}

TEST_F(OptionsTest, TheHeapProfileHasAnIntervalOrIsOff) {
  EXPECT_EQ(0u, Read().heap_profile);
  EXPECT_EQ(512 * hz::kKiB, Read("HZ_PROFILE_HEAP", "1").heap_profile);
  EXPECT_EQ(512 * hz::kKiB, Read("HZ_PROFILE_HEAP", "01").heap_profile);
  EXPECT_EQ(64 * hz::kKiB, Read("HZ_PROFILE_HEAP", "64K").heap_profile);
  EXPECT_EQ(hz::kGiB, Read("HZ_PROFILE_HEAP", "1G").heap_profile);
  EXPECT_EQ(2u, Read("HZ_PROFILE_HEAP", "2").heap_profile);
  EXPECT_EQ(0u, Read("HZ_PROFILE_HEAP", "0").heap_profile);
  EXPECT_EQ("", said_);
  for (const char* wrong : {"", "2G", "-1", "yes", "1.5"}) {
    EXPECT_EQ(0u, Read("HZ_PROFILE_HEAP", wrong).heap_profile);
    EXPECT_EQ(
        std::string("hz: warning: HZ_PROFILE_HEAP=") + wrong + " not understood; accepted: 0, 1, 2 to 1G\n",
        said_);
  }
}

TEST_F(OptionsTest, AFileAsksForAHeapProfileUnlessThatIsSaid) {
  EXPECT_EQ(512 * hz::kKiB, Read("HZ_PROFILE_HEAP_FILE", "/tmp/a.%p").heap_profile);
  EXPECT_EQ(0u, Read("HZ_PROFILE_HEAP", "0").heap_profile);
}

TEST_F(OptionsTest, EveryKnobIsExplained) {
  for (const Options::Knob& knob : Options::kKnobs) {
    std::string variable = "HZ_";
    for (const char* c = knob.key; *c != 0; ++c) variable += static_cast<char>(std::toupper(*c));
    // "profile" in the list is, as published, a preset's name.
    EXPECT_EQ(variable == "HZ_SIZE_PROFILE" ? "HZ_PROFILE" : variable, knob.variable);
    EXPECT_GT(std::string(knob.accepted).size(), 3u);
    EXPECT_GT(std::string(knob.meaning).size(), 10u);
  }
}

}  // namespace
}  // namespace hz_test
