// SPDX-License-Identifier: Apache-2.0
//
// hz_ctl, for every line: what each key is, what can be set while the program runs and what that does, what
// can be done, and what is refused with which error and sentence.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "hakozuna/hakozuna.h"
#include "stress/limited.hpp"
#include "support/capture.hpp"
#include "support/line.hpp"
#include "support/opaque.hpp"

namespace {

using hz_test::IsTiny;
using hz_test::Opaque;

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Answer {
  int error;
  std::string text;
};
Answer Ask(const char* key, const char* set = nullptr) {
  static thread_local char text[16384];
  const int error = hz_ctl(key, set, text, sizeof text);
  return {error, text};
}
std::string Value(const char* key) {
  const Answer answer = Ask(key);
  EXPECT_EQ(0, answer.error) << key << ": " << answer.text;
  return answer.text;
}
void Set(const char* key, const char* value, const char* becomes) {
  const Answer answer = Ask(key, value);
  EXPECT_EQ(0, answer.error) << key << ": " << answer.text;
  EXPECT_EQ(becomes, answer.text) << key;
  EXPECT_EQ(becomes, Value(key)) << key;
}
bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

struct Row {
  std::string when, accepted, value;
};
std::map<std::string, Row> List() {
  std::map<std::string, Row> rows;
  std::istringstream lines(Value("list"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    Row row;
    std::getline(words, key, '\t');
    std::getline(words, row.when, '\t');
    std::getline(words, row.accepted, '\t');
    EXPECT_TRUE(std::getline(words, row.value, '\t')) << line;
    EXPECT_FALSE(Has(row.value, "\t")) << line;
    EXPECT_TRUE(rows.emplace(key, row).second) << key;
  }
  return rows;
}

hz_stats_t Stats() {
  hz_stats_t now = {};
  hz_stats(&now, sizeof now);
  return now;
}

// Values that each key takes, in the order in which they can be set, and as they are told.
struct Step {
  const char *key, *value, *becomes;
};
constexpr Step kSteps[] = {{"on_invalid", "report", "report"}, {"on_invalid", "abort", "abort"},
                           {"thread_cache", "64K", "65536"},   {"thread_cache", "auto", "auto"},
                           {"retain", "300", "300"},           {"retain", "150", "150"},
                           {"retain_floor", "0", "0"},         {"retain_floor", "3m", "3145728"},
                           {"limit_soft", "2G", "2147483648"}, {"limit_hard", "1G", "1073741824"},
                           {"limit_soft", "2G", "1073741824"}, {"limit_hard", "0", "0"},
                           {"limit_soft", "0", "0"},           {"learn_busy", "30", "30"},
                           {"learn_busy", "40", "40"},         {"learn_cache", "1M", "1048576"},
                           {"learn_cache", "256K", "262144"},  {"learn_retain", "110", "110"},
                           {"learn_retain", "105", "105"},     {"learn_looks", "5", "5"},
                           {"learn_looks", "32", "32"},        {"learn_classes", "4", "4"},
                           {"learn_classes", "5", "5"},        {"learn_purger", "0", "0"},
                           {"learn_purger", "32", "32"},       {"profile_heap", "64k", "65536"},
                           {"profile_heap", "1", "524288"},    {"profile_heap", "0", "0"},
                           {"guard_sample", "1000", "1000"},   {"guard_sample", "0", "0"}};
bool IsNothingHere(const std::string& key) {
  return IsTiny() && (key == "thread_cache" || key == "profile_heap" || key == "guard_sample" ||
                      key.rfind("learn_", 0) == 0);
}

TEST(Ctl, EveryKeyTellsWhatItIs) {
  const std::map<std::string, Row> rows = List();
  EXPECT_GT(rows.size(), 25u);
  unsigned live = 0;
  for (const auto& [key, row] : rows) {
    SCOPED_TRACE(key);
    if (row.when == "action") continue;
    EXPECT_EQ(IsNothingHere(key), row.when == "none");
    live += row.when == "live" ? 1 : 0;
    const Answer answer = Ask(key.c_str());
    if (row.when == "none") {
      EXPECT_EQ(ENOTSUP, answer.error);
      EXPECT_TRUE(Has(answer.text, "this line")) << answer.text;
    } else {
      EXPECT_EQ(0, answer.error);
      EXPECT_EQ(row.value, answer.text);
      EXPECT_NE("", answer.text);
    }
  }
  EXPECT_EQ(IsTiny() ? 5u : 14u, live);
  for (const char* deed : {"trim", "purge", "write_stats", "write_profile", "write_heap_profile"})
    EXPECT_EQ("action", rows.at(deed).when);
  EXPECT_EQ("0", rows.at("control").value);
  EXPECT_EQ("none", rows.at("stats_dir").value);
}

TEST(Ctl, WhatIsSetIsTold) {
  for (const Step& step : kSteps) {
    if (IsNothingHere(step.key)) {
      EXPECT_EQ(ENOTSUP, Ask(step.key, step.value).error) << step.key;
    } else {
      Set(step.key, step.value, step.becomes);
    }
  }
}

TEST(Ctl, WhatIsReadAtTheStartIsRefused) {
  for (const auto& [key, row] : List()) {
    if (row.when != "start") continue;
    const Answer answer = Ask(key.c_str(), row.value.c_str());
    EXPECT_EQ(EPERM, answer.error) << key;
    EXPECT_EQ(0u, answer.text.find(key + " is read at the start alone: set HZ_")) << answer.text;
    EXPECT_EQ(row.value, Value(key.c_str()));
  }
}

TEST(Ctl, WhatIsNotUnderstoodChangesNothing) {
  const std::map<std::string, Row> before = List();
  struct Wrong {
    const char *key, *value;
    int error;
  };
  for (const Wrong& wrong :
       {Wrong{"retain", "99", EINVAL}, Wrong{"retain", "", EINVAL}, Wrong{"retain", "150 ", EINVAL},
        Wrong{"limit_hard", "100", EINVAL}, Wrong{"limit_soft", "101%", EINVAL},
        Wrong{"on_invalid", "banana", EINVAL}, Wrong{"retain_floor", "5G", EINVAL},
        Wrong{"retain_floor", "none", EINVAL}, Wrong{"trim", "1", EINVAL}, Wrong{"banana", "1", ENOENT},
        Wrong{"", "", ENOENT}, Wrong{"HZ_RETAIN", "150", ENOENT}, Wrong{"list", "", ENOENT}}) {
    const Answer answer = Ask(wrong.key, wrong.value);
    EXPECT_EQ(wrong.error, answer.error) << wrong.key << "=" << wrong.value;
    EXPECT_NE("", answer.text);
    EXPECT_FALSE(Has(answer.text, "\n")) << answer.text;
  }
  EXPECT_EQ("retain=99 not understood; accepted: 100 to 1000", Ask("retain", "99").text);
  EXPECT_EQ(ENOENT, hz_ctl(nullptr, nullptr, nullptr, 0));
  EXPECT_EQ(EPERM, Ask("trim").error);
  const Answer odd = Ask(std::string(5000, 'x').c_str());
  EXPECT_EQ(ENOENT, odd.error);
  EXPECT_LT(odd.text.size(), 200u);
  EXPECT_EQ("there is no key a??b; list tells which there are", Ask("a\x1b\nb").text);
  for (const auto& [key, row] : List()) EXPECT_EQ(before.at(key).value, row.value) << key;
}

TEST(Ctl, AHardLimitHoldsFromThenOn) {
  Set("limit_hard", "64M", "67108864");
  errno = 0;
  EXPECT_EQ(nullptr, hz_malloc(Opaque(100 * kMiB)));
  EXPECT_EQ(ENOMEM, errno);
  void* small = hz_malloc(Opaque(kMiB));
  EXPECT_NE(nullptr, small);
  Set("limit_hard", "0", "0");
  void* large = hz_malloc(Opaque(100 * kMiB));
  EXPECT_NE(nullptr, large);
  // What is there stays, and nothing comes to it.
  Set("limit_hard", "16M", "16777216");
  EXPECT_EQ(nullptr, hz_malloc(Opaque(20 * kMiB)));
  std::memset(large, 1, kMiB);
  hz_free(large);
  hz_free(small);
  Set("limit_hard", "0", "0");
  Set("limit_soft", "0", "0");
}

TEST(Ctl, ABadPointerIsReportedOrEndsTheProgram) {
  Set("on_invalid", "report", "report");
  std::string said;
  {
    hz_test::Capture capture;
    static char foreign[64];
    hz_free(Opaque(static_cast<void*>(foreign)));
    said = capture.Text();
  }
  EXPECT_EQ(0u, said.find("hz: error: E01 foreign-pointer")) << said;
  Set("on_invalid", "abort", "abort");
}

std::vector<void*> Blocks(std::size_t size, std::size_t bytes) {
  std::vector<void*> blocks;
  for (std::size_t at = 0; at < bytes; at += size) {
    blocks.push_back(hz_malloc(size));
    std::memset(blocks.back(), 1, size);
  }
  return blocks;
}
void Free(const std::vector<void*>& blocks) {
  for (void* block : blocks) hz_free(block);
}

TEST(Ctl, FreeMemoryStaysAndGoes) {
  if (hz_test::HasSeals()) GTEST_SKIP() << "what is free has no pages";
  Set("retain_floor", "64M", "67108864");
  Free(Blocks(100'000, 16 * kMiB));
  EXPECT_GT(Stats().bytes_dirty + Stats().bytes_cached, 8 * kMiB) << "a floor keeps it";
  EXPECT_EQ("1", Ask("trim", "").text);
  EXPECT_EQ(0u, Stats().bytes_cached);
  EXPECT_EQ(0u, Stats().bytes_dirty);
  EXPECT_EQ("0", Ask("trim", "").text);
  const std::vector<void*> blocks = Blocks(100'000, 16 * kMiB);
  Free(blocks);
  const std::size_t cached = Stats().bytes_cached;
  Ask("purge", "");
  EXPECT_EQ(0u, Stats().bytes_dirty);
  EXPECT_EQ(cached, Stats().bytes_cached) << "caches are left alone";
  Set("retain_floor", "1M", "1048576");
}

// Of the boundary, by a thread whose bins may hold all that it frees, or not.
std::uint64_t Crossings(std::size_t blocks = 40) {
  const hz_stats_t before = Stats();
  for (int round = 0; round < 10; ++round)
    for (std::size_t size = 16; size < 8000; size += size / 4 + 16) Free(Blocks(size, blocks * size));
  const hz_stats_t after = Stats();
  return after.refills + after.flushes - before.refills - before.flushes;
}

TEST(Ctl, AThreadsCacheShrinksToWhatItMayHoldAndGrowsAgain) {
  if (IsTiny()) GTEST_SKIP() << "no thread caches anything";
  // Who has freed most of what there was caches nothing at all.
  const std::vector<void*> held = Blocks(100'000, 32 * kMiB);
  constexpr std::size_t kMore = 300;  // than any bin holds: a thread that never comes to its boundary stays
  Crossings(kMore);
  const std::uint64_t usual = Crossings();
  Set("thread_cache", "16K", "16384");
  Crossings(kMore);
  const std::uint64_t tight = Crossings();
  EXPECT_GT(tight, 2 * usual + 100);
  Set("thread_cache", "auto", "auto");
  Crossings(kMore);
  EXPECT_LT(Crossings(), tight / 2);
  Free(held);
}

TEST(Ctl, StatisticsAndProfileAreWrittenWhenAsked) {
  std::string said;
  {
    hz_test::Capture capture;
    EXPECT_EQ("1", Ask("write_stats", "").text);
    said = capture.Text();
  }
  EXPECT_EQ(0u, said.find("hz: stats line=")) << said;
  EXPECT_EQ(said.size() - 1, said.find('\n'));
  const Answer profile = Ask("write_profile", "");
  EXPECT_EQ(ENOTSUP, profile.error);
  EXPECT_TRUE(Has(profile.text, IsTiny() ? "no policy" : "HZ_POLICY=observe")) << profile.text;
  if (!IsTiny()) return;  // others may keep one by now
  const Answer heap = Ask("write_heap_profile", "");
  EXPECT_EQ(ENOTSUP, heap.error);
  EXPECT_EQ("this line keeps no heap profile", heap.text);
}

// Of hz7, which has some by which one can be told from another here.
TEST(Ctl, APresetIsWhatItsTableSays) {
  if (!IsTiny()) GTEST_SKIP() << "its presets are others";
  hz_test::InProcessWith({{"HZ_PRESET", "v4"}}, [] {
    EXPECT_EQ("200", Value("retain"));
    EXPECT_EQ("16777216", Value("retain_floor"));
  });
}

TEST(Ctl, ProfilesThatCannotBeWrittenAreSaid) {
  if (IsTiny()) GTEST_SKIP() << "it has none";
  const auto expect = [](int error) {
    EXPECT_EQ(error, Ask("write_profile", "").error);
    EXPECT_EQ(error, Ask("write_heap_profile", "").error);
  };
  const bool has_file = std::getenv("HZ_PROFILE") != nullptr;
  if (!has_file) hz_test::InProcessWith({{"HZ_POLICY", "observe"}}, [&] { expect(ENOTSUP); });
  if (!has_file && std::getenv(hz_test::kInsideProcess) != nullptr) return;
  const std::string nowhere = "/nonexistent/folder/file";
  hz_test::InProcessWith({{"HZ_POLICY", "observe"},
                          {"HZ_PROFILE", nowhere},
                          {"HZ_OPTIONS", "profile_heap:1,profile_heap_file:" + nowhere}},
                         [&] { expect(EIO); });
}

TEST(Ctl, WhatIsTooLongIsCutOff) {
  const std::string all = Value("list");
  char text[100];
  for (const std::size_t room : {std::size_t{1}, std::size_t{2}, std::size_t{50}, sizeof text}) {
    std::memset(text, 'x', sizeof text);
    EXPECT_EQ(0, hz_ctl("list", nullptr, text, room));
    EXPECT_EQ(all.substr(0, room - 1), text);
    if (room < sizeof text) {
      EXPECT_EQ('x', text[room]);
    }
  }
  std::memset(text, 'x', sizeof text);
  EXPECT_EQ(0, hz_ctl("retain", nullptr, text, 0));
  EXPECT_EQ('x', text[0]);
  EXPECT_EQ(0, hz_ctl("retain", nullptr, nullptr, 0));
}

TEST(Ctl, ErrnoStays) {
  errno = 42;
  Ask("retain", "150");
  Ask("retain", "banana");
  Ask("limit_hard", "0");
  Ask("trim", "");
  Ask("list");
  EXPECT_EQ(42, errno);
}

TEST(Ctl, ThreadsMayAskAndSetAtOnce) {
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < 4; ++id) {
    threads.emplace_back([id] {
      const char* const keys[] = {"retain", "retain_floor", "limit_soft", "learn_retain"};
      const char* const values[] = {"200", "256", "512M", "150"};
      for (int i = 0; i < 200; ++i) {
        Ask(keys[id], values[id]);
        Free(Blocks(1000, 20'000));
        if (i % 50 == 0) Ask("list"), Ask("trim", "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ("200", Value("retain"));
  EXPECT_EQ("256", Value("retain_floor"));
  EXPECT_EQ("536870912", Value("limit_soft"));
  EXPECT_EQ(IsTiny() ? ENOTSUP : 0, Ask("learn_retain").error);
}

}  // namespace
