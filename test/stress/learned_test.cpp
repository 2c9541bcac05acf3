// SPDX-License-Identifier: Apache-2.0
//
// A heap that watches its program and deals spare classes out while the program runs: sizes that waste much
// get one, what was allocated before keeps its own, and neither threads nor forks nor sized frees can tell.
// Every test runs in processes of its own, which start with the policy.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "returns/tasks.hpp"
#include "stress/blocks.hpp"
#include "stress/limited.hpp"
#include "stress/threads.hpp"
#include "support/capture.hpp"
#include "support/sanitizers.hpp"
#include "support/summed.hpp"

namespace hz_test {
namespace {

// A page, or a part of one, and a header: in the class above the power of two it wastes a tenth.
constexpr std::size_t kSizes[] = {520, 1032, 2056, 4120, 8216};
constexpr std::size_t kClasses[] = {528, 1040, 2064, 4128, 8224}, kBefore[] = {576, 1152, 2304, 4608, 9216};
constexpr std::size_t kOfEach = 8 * kMiB;

// These tests see a class by what is usable in it.
constexpr const char* kTellsNoClass = "a block has what was asked for, whatever its class";

bool LineLearns() { return std::strcmp(api::LineName(), "hz7") != 0; }

std::size_t UsableOf(std::size_t size) {
  void* block = api::Malloc(size);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  return usable;
}

// The policies that assign classes.
class Dealt : public testing::TestWithParam<const char*> {
 protected:
  void InProcess(void (*test)()) {
    if (HasSeals()) GTEST_SKIP() << kTellsNoClass;
    InProcessWith({{"HZ_POLICY", GetParam()}}, test);
  }
};
INSTANTIATE_TEST_SUITE_P(By, Dealt, testing::Values("sizes", "learn"),
                         [](const auto& by) { return std::string(by.param); });

TEST_P(Dealt, SizesThatWasteMuchGetAClass) {
  InProcess([] {
    Capture said;
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      for (std::size_t bytes = 0; bytes < kOfEach; bytes += kSizes[i]) blocks.push_back(MakeBlock(kSizes[i]));
      EXPECT_EQ(kBefore[i], api::UsableSize(blocks[blocks.size() - kOfEach / kSizes[i] - 1].at));
      EXPECT_EQ(LineLearns() ? kClasses[i] : kBefore[i], api::UsableSize(blocks.back().at));
    }
    for (const Block& block : blocks) {
      EXPECT_TRUE(Intact(block));
      api::FreeSized(block.at, block.size);
    }
    EXPECT_EQ("", said.Text()) << "a size that was true is not found to be false";
    hz_stats_t stats;
    hz_stats(&stats, sizeof stats);
    EXPECT_EQ(LineLearns() ? std::size(kSizes) : 0, stats.classes_dealt);
    // An alignment that a spare class does not keep is kept all the same.
    for (const std::size_t size : kSizes) {
      void* aligned = api::AlignedAlloc(64, size);
      EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(aligned) % 64);
      EXPECT_GE(api::UsableSize(aligned), size);
      api::FreeAlignedSized(aligned, 64, size);
    }
  });
}

TEST_P(Dealt, SizesThatFillTheirClassKeepIt) {
  InProcess([] {
    std::vector<Block> blocks;
    for (const std::size_t size : {std::size_t{1140}, std::size_t{1152}}) {
      for (std::size_t bytes = 0; bytes < kOfEach; bytes += size) blocks.push_back(MakeBlock(size));
    }
    EXPECT_EQ(1152u, UsableOf(1032)) << "nobody asked for it";
    for (const Block& block : blocks) CheckAndFree(block);
  });
}

// 1,040 would not do: of 64 bytes no class below 1,088 keeps it.
TEST_P(Dealt, AlignedBlocksGetAClassThatKeepsTheirAlignment) {
  InProcess([] {
    std::vector<void*> blocks;
    for (std::size_t bytes = 0; bytes < kOfEach; bytes += 1032) blocks.push_back(api::AlignedAlloc(64, 1032));
    EXPECT_EQ(1152u, api::UsableSize(blocks.front()));
    EXPECT_EQ(LineLearns() ? 1088u : 1152u, api::UsableSize(blocks.back()));
    for (void* block : blocks) api::FreeAlignedSized(block, 64, 1032);
  });
}

// What a program was told of blocks to come is true of them.
TEST_P(Dealt, AGoodSizeStaysOne) {
  InProcess([] {
    const std::size_t good = hz_good_size(kSizes[1]);
    std::vector<void*> blocks;
    for (std::size_t bytes = 0; bytes < kOfEach; bytes += kSizes[1]) blocks.push_back(api::Malloc(kSizes[1]));
    EXPECT_EQ(good, api::UsableSize(blocks.back()));
    for (void* block : blocks) api::Free(block);
  });
}

// Blocks of every class, as many spans as a look needs: also of those that no spare class is for.
TEST(Learned, AFrozenHeapDealsNoClass) {
  if (HasSeals()) GTEST_SKIP() << kTellsNoClass;
  InProcessWith({{"HZ_POLICY", "frozen"}}, [] {
    std::vector<Block> blocks;
    for (std::size_t bytes = 0; bytes < kOfEach; bytes += kSizes[1]) blocks.push_back(MakeBlock(kSizes[1]));
    EXPECT_EQ(kBefore[1], api::UsableSize(blocks.back().at));
    for (const Block& block : blocks) CheckAndFree(block);
  });
}

TEST(Learned, EveryClassMayGrow) {
  InProcessWith({{"HZ_POLICY", "learn"}}, [] {
    for (std::size_t size = 16; size <= 4 * kMiB; size += size / 4 + 1) {
      std::vector<void*> blocks;
      for (std::size_t i = 0; i < 80 || i * size < 3 * kMiB; ++i) blocks.push_back(api::Malloc(size));
      for (void* block : blocks) {
        EXPECT_LE(size, api::UsableSize(block));
        api::Free(block);
      }
    }
    ExpectNothingLost();
  });
}

// Sizes change from phase to phase, so that a class is dealt out in each; meanwhile others free what was
// allocated before, some with its size, some by realloc, and processes fork.
TEST_P(Dealt, ThreadsAndForksWhileClassesChange) {
  // A fork does not release AddressSanitizer's own locks, and a purger that begins in the child would wait
  // for them, with a thread's memory.
  InProcessWith({{"HZ_POLICY", GetParam()}, {"HZ_BACKGROUND", kAddressSanitizer ? "0" : "1"}}, [] {
    constexpr unsigned kThreads = 4;
    Capture said;
    Exchange passed;
    std::atomic<unsigned> grown{0}, begun{0};
    {
      std::atomic<bool> stop{false};
      const Thread forks([&] {
        // QEMU has a lock for a thread that begins, which a fork does not release: its child would wait for
        // ever. So all threads begin before, and the purger, too.
        while (kEmulated && !stop && (begun < kThreads || (!IsTiny() && Purger() == 0))) usleep(1000);
        while (!stop) {
          const pid_t pid = fork();
          if (pid == 0) {
            bool sound = true;
            for (const std::size_t size : kSizes) {
              for (unsigned i = 0; i < 200; ++i) {
                const Block block = {api::Malloc(size - i % 16), size - i % 16, i};
                FillPattern(block.at, block.size, block.seed);
                sound = sound && api::UsableSize(block.at) >= block.size && Intact(block);
                api::FreeSized(block.at, block.size);
              }
            }
            _exit(sound ? 0 : 1);
          }
          int status = -1;
          EXPECT_EQ(pid, waitpid(pid, &status, 0));
          EXPECT_EQ(0, status);
          usleep(2000);
        }
      });
      Together(kThreads, [&](unsigned id) {
        ++begun;
        Random random(Seed() + id);
        for (std::size_t own = 0; own < std::size(kSizes); ++own) {
          std::vector<Block> blocks;
          for (std::size_t bytes = 0; bytes < kOfEach / kThreads; bytes += kSizes[own]) {
            blocks.push_back(MakeBlock(kSizes[own] - Below(random, 8)));
            if (Below(random, 4) == 0) passed.Put(blocks.back()), blocks.pop_back();
            Block other;
            if (Below(random, 4) == 0 && passed.Take(random, other)) {
              EXPECT_TRUE(Intact(other));
              if (Below(random, 2) == 0) {
                api::FreeSized(other.at, other.size);
              } else {
                other.at = api::Realloc(other.at, other.size + Below(random, 600));
                EXPECT_TRUE(Intact(other));
                api::Free(other.at);
              }
            }
          }
          grown.fetch_add(1);
          for (const Block& block : blocks) {
            EXPECT_TRUE(Intact(block));
            Below(random, 2) == 0 ? api::FreeSized(block.at, block.size) : api::Free(block.at);
          }
        }
      });
      stop = true;
    }
    for (const Block& block : passed.TakeAll()) CheckAndFree(block);
    EXPECT_EQ("", said.Text());
    unsigned dealt = 0;
    for (std::size_t i = 0; i < std::size(kSizes); ++i) dealt += UsableOf(kSizes[i]) < kBefore[i] ? 1 : 0;
    if (LineLearns()) {
      EXPECT_GE(dealt, 3u) << "classes did change";
    }
    EXPECT_EQ(kThreads * std::size(kSizes), grown.load());
    api::Trim();
  });
}

// --- profiles

constexpr const char* kStep = "HZ_TEST_STEP";
std::string ProfileName() { return "/tmp/hz-learned-" + std::to_string(getpid()) + ".hzprofile"; }

// In a process of its own with these settings.
ChildResult Step(const char* step, std::vector<Setting> settings) {
  settings.emplace_back(kStep, step);
  return RunInProcess(std::move(settings), "", {});
}

// Spare classes that are larger than those behind them, some with slots that keep an alignment.
constexpr std::size_t kHigh[] = {992, 1984, 4032, 8000, 15872};

// As a heap would have written it.
void WriteProfile(const std::string& path) {
  std::string text = "hakozuna-profile 1\n";
  for (const std::size_t size : kHigh) text += "class " + std::to_string(size) + " saves 1\n";
  if (std::FILE* file = std::fopen(path.c_str(), "w")) {
    std::fputs(Summed(text).c_str(), file);
    std::fclose(file);
  }
}

void EverythingWithHighClasses() {
  hz_stats_t stats;
  hz_stats(&stats, sizeof stats);
  EXPECT_EQ(LineLearns() ? std::size(kHigh) : 0, stats.classes_dealt);
  Capture said;
  std::vector<Block> blocks;
  for (const std::size_t size : kHigh) {
    EXPECT_EQ(LineLearns(), UsableOf(size - 3) == size) << size;
    for (std::size_t less = 0; less < 600 && less < size / 2; less += 7) {
      blocks.push_back(MakeBlock(size - less));
      for (std::size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        void* aligned = api::AlignedAlloc(alignment, size - less);
        EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(aligned) % alignment) << size - less;
        EXPECT_LE(size - less, api::UsableSize(aligned));
        FillPattern(aligned, size - less, less);
        api::FreeAlignedSized(aligned, alignment, size - less);
      }
      void* half = api::Realloc(api::Malloc(size - less), (size - less + 1) / 2);
      api::FreeSized(half, (size - less + 1) / 2);
    }
  }
  // By another thread, so that slots cross over; half of them with their size.
  Thread([&blocks] {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_TRUE(Intact(blocks[i])) << blocks[i].size;
      i % 2 == 0 ? api::FreeSized(blocks[i].at, blocks[i].size) : api::Free(blocks[i].at);
    }
  }).Join();
  EXPECT_EQ("", said.Text());
  ExpectNothingLost();
}

// What is wrong is found in them as in any class, and told with the size that they have.
void WrongFreesInHighClasses() {
  Capture said;
  auto* block = static_cast<char*>(api::Malloc(1980));
  api::Free(block + 16);
  api::FreeSized(block, 3000);
  const std::string text = said.Text();
  const std::string size = LineLearns() ? " class=1984 " : " class=2048 ";
  EXPECT_NE(std::string::npos, text.find("E04 interior-pointer")) << text;
  EXPECT_NE(std::string::npos, text.find("E05 size-mismatch")) << text;
  EXPECT_NE(text.find(size), text.rfind(size)) << "both: " << text;
}

TEST(Learned, ClassesAtTheEndOfTheirDoubling) {
  if (HasSeals()) GTEST_SKIP() << kTellsNoClass;
  if (const char* step = std::getenv(kStep)) {
    return std::strcmp(step, "wrong") == 0 ? WrongFreesInHighClasses() : EverythingWithHighClasses();
  }
  const std::string path = ProfileName();
  WriteProfile(path);
  ChildResult result = Step("right", {{"HZ_PROFILE", path}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  result = Step("wrong", {{"HZ_PROFILE", path}, {"HZ_ON_INVALID", "report"}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  unlink(path.c_str());
}

TEST(Learned, WhatOneProcessObservedAnotherStartsFrom) {
  if (HasSeals()) GTEST_SKIP() << kTellsNoClass;
  if (const char* step = std::getenv(kStep)) {
    const bool observes = std::strcmp(step, "observe") == 0;
    if (observes) {
      std::vector<Block> blocks;
      for (std::size_t bytes = 0; bytes < kOfEach; bytes += 1032) blocks.push_back(MakeBlock(1032));
      for (const Block& block : blocks) CheckAndFree(block);
    }
    const bool dealt = std::strcmp(step, "start") == 0 && LineLearns();
    EXPECT_EQ(dealt ? 1040u : 1152u, UsableOf(1032)) << step;
    return;
  }
  const std::string path = ProfileName();
  ChildResult result = Step("observe", {{"HZ_POLICY", "observe"}, {"HZ_PROFILE", path}});
  ASSERT_EQ(0, result.exit_code) << result.out << result.err;
  EXPECT_EQ("", result.err);
  EXPECT_EQ(LineLearns() ? 0 : -1, access(path.c_str(), R_OK)) << "it was written at the exit";
  result = Step("nowhere", {{"HZ_POLICY", "observe"}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  if (LineLearns()) {
    EXPECT_EQ("hz: warning: HZ_POLICY=observe writes no profile, for HZ_PROFILE names no file\n", result.err);
  }
  result = Step("nowhere", {{"HZ_POLICY", "observe"}, {"HZ_PROFILE", "/dev/full"}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  if (LineLearns()) {
    EXPECT_EQ("hz: warning: profile /dev/full: it cannot be written\n", result.err);
  }
  // A pipe that nobody reads: else the process would never end.
  const std::string pipe = path + ".pipe";
  ASSERT_EQ(0, mkfifo(pipe.c_str(), 0600));
  result = Step("nowhere", {{"HZ_POLICY", "observe"}, {"HZ_PROFILE", pipe}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  if (LineLearns()) {
    EXPECT_EQ("hz: warning: profile " + pipe + ": it cannot be written\n", result.err);
  }
  unlink(pipe.c_str());
  result = Step("start", {{"HZ_PROFILE", path}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  if (LineLearns()) {
    EXPECT_EQ("", result.err);
  }
  // A byte more, and it is none.
  if (std::FILE* file = std::fopen(path.c_str(), "a")) {
    std::fputc('\n', file);
    std::fclose(file);
  }
  result = Step("damaged", {{"HZ_PROFILE", path}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  if (LineLearns()) {
    EXPECT_EQ("hz: warning: profile " + path + ": it is damaged; ignored\n", result.err);
  }
  unlink(path.c_str());
  result = Step("missing", {{"HZ_PROFILE", path}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  if (LineLearns()) {
    EXPECT_EQ("hz: warning: profile " + path + ": it cannot be read; ignored\n", result.err);
  }
}

std::string OfProcess(const std::string& path, pid_t pid) { return path + "." + std::to_string(pid); }

// Also the children of forks, which may have left somebody behind who was writing. Ends without what is done
// at the exit.
void AskForProfiles() {
  std::vector<Block> blocks;
  for (std::size_t bytes = 0; bytes < kOfEach; bytes += 1032) blocks.push_back(MakeBlock(1032));
  std::atomic<unsigned> written{0};
  Together(4, [&](unsigned id) {
    for (unsigned i = 0; i < 50; ++i) {
      if (id == 0 && fork() == 0) _exit(hz_write_profile() == 1 ? 0 : 1);
      written += hz_write_profile() == 1 ? 1 : 0;
      CheckAndFree(MakeBlock(1032));
    }
  });
  EXPECT_EQ(LineLearns(), written != 0) << written;
  const std::string path = std::getenv("HZ_PROFILE");
  int status = 0;
  unsigned children = 0;
  for (pid_t pid = 0; (pid = wait(&status)) > 0; ++children) {
    EXPECT_EQ(LineLearns(), status == 0) << status;
    unlink(OfProcess(path.substr(0, path.size() - 3), pid).c_str());
  }
  EXPECT_EQ(50u, children);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

// Asked for by several threads while others allocate: each file that is written is whole.
TEST(Learned, AProfileOnRequest) {
  if (HasSeals()) GTEST_SKIP() << kTellsNoClass;
  const std::string path = ProfileName();
  if (const char* step = std::getenv(kStep)) {
    if (std::strcmp(step, "ask") == 0) AskForProfiles();
    EXPECT_EQ(0, hz_write_profile()) << "this one does not observe";
    const bool dealt = std::strcmp(step, "start") == 0 && LineLearns();
    EXPECT_EQ(dealt ? 1040u : 1152u, UsableOf(1032));
    return;
  }
  EXPECT_EQ(0, Step("frozen", {{"HZ_PROFILE", "/dev/null"}}).exit_code);
  const ChildResult asked = Step("ask", {{"HZ_POLICY", "observe"}, {"HZ_PROFILE", path + ".%p"}});
  EXPECT_EQ(0, asked.exit_code) << asked.out << asked.err;
  const std::string file = OfProcess(path, asked.pid);
  EXPECT_EQ(LineLearns() ? 0 : -1, access(file.c_str(), R_OK));
  const ChildResult result = Step("start", {{"HZ_PROFILE", file}});
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  if (LineLearns()) {
    EXPECT_EQ("", result.err);
  }
  unlink(file.c_str());
}

}  // namespace
}  // namespace hz_test
