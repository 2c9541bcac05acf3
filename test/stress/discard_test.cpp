// SPDX-License-Identifier: Apache-2.0
//
// Pages between blocks that live: where a few blocks hold many spans open, the pages of no block go back to
// the system, by trim, and by themselves where there is a purger. Nobody's bytes change, whatever threads and
// forks do meanwhile.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "returns/patience.hpp"
#include "stress/blocks.hpp"
#include "stress/limited.hpp"
#include "stress/threads.hpp"
#include "support/capture.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr std::size_t kSize = 1000, kVolume = 64 * kMiB, kEvery = 64;

// Lines whose free slots carry marks or seals keep their pages; so do those of another size than the heap's.
bool LineDiscards() {
  const std::string line = api::LineName();
  return line != "hz3" && line != "hz3-fast" && line != "hz7" && !HasSeals() && sysconf(_SC_PAGESIZE) == 4096;
}

// Blocks of which every kEvery-th lives on.
std::vector<Block> Survivors(std::size_t volume = kVolume) {
  std::vector<Block> all, left;
  for (std::size_t bytes = 0; bytes < volume; bytes += kSize) all.push_back(MakeBlock(kSize));
  for (std::size_t i = 0; i < all.size(); ++i)
    i % kEvery == 0 ? left.push_back(all[i]) : CheckAndFree(all[i]);
  return left;
}
void CheckAndFreeAll(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) CheckAndFree(block);
}
std::size_t Grown(std::size_t before) { return RssBytes() > before ? RssBytes() - before : 0; }

TEST(Discard, TrimGivesBackPagesBetweenBlocks) {
  InProcessWith({}, [] {
    const std::size_t before = RssBytes();
    std::vector<Block> left = Survivors();
    api::Trim();
    if (LineDiscards() && !kUnderTool) {
      EXPECT_LT(Grown(before), kVolume / 4) << "of 64 KiB that a block holds, a page or two are its own";
    }
    for (int round = 0; round < 3; ++round) {
      for (const Block& block : left) ASSERT_TRUE(Intact(block));
      const std::vector<Block> more = Survivors(kVolume / 4);
      api::Trim();
      left.insert(left.end(), more.begin(), more.end());
    }
    CheckAndFreeAll(left);
  });
}

// A second thread, for there is a purger where there are threads.
class Sleeper {
 public:
  Sleeper() = default;
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_{[this] {
    while (!stop_) SleepFor(0.01);
  }};
};

void PagesGoByThemselves() {
  const Sleeper other;
  const std::size_t before = RssBytes();
  const std::vector<Block> left = Survivors();
  if (LineDiscards()) {
    EXPECT_TRUE(Within(15, [before] { return Grown(before) < kVolume / 4; })) << Grown(before) / kMiB;
  }
  CheckAndFreeAll(left);
}

TEST(Discard, PagesGoByThemselves) {
  if (kUnderTool) GTEST_SKIP() << "shadow memory is resident as well";
  InProcessWith({}, [] { PagesGoByThemselves(); });
}
TEST(Discard, AHeapThatLearnsDoesSoToo) {
  if (kUnderTool) GTEST_SKIP() << "shadow memory is resident as well";
  InProcessWith({{"HZ_POLICY", "learn"}}, [] { PagesGoByThemselves(); });
}

TEST(Discard, WhatMayStayInAnyCaseStays) {
  if (!LineDiscards() || kUnderTool) GTEST_SKIP() << "nothing would go";
  InProcessWith({{"HZ_RETAIN_FLOOR", "1G"}}, [] {
    const Sleeper other;
    const std::size_t before = RssBytes();
    const std::vector<Block> left = Survivors();
    SleepFor(2.5);
    EXPECT_GT(Grown(before), kVolume / 2);
    CheckAndFreeAll(left);
  });
}

TEST(Discard, BesideThreadsNoByteIsLost) {
  InProcessWith({}, [] {
    std::atomic<bool> stop{false};
    std::thread trimmer([&stop] {
      while (!stop) api::Trim();
    });
    Together(4, [](unsigned thread) {
      Random random(thread + 1);
      std::vector<Block> held(3000);
      for (unsigned step = 0; step < (kUnderTool ? 40'000u : 300'000u); ++step) {
        Block& block = held[Below(random, held.size())];
        // Now and then most of them go, so that pages come to be free.
        if (step % 20'000 < 5'000) {
          CheckAndFree(block);
          block = {};
        } else if (block.at == nullptr) {
          block = MakeBlock(1 + LogSize(random, 13));
        }
      }
      CheckAndFreeAll(held);
    });
    stop = true;
    trimmer.join();
  });
}

TEST(Discard, AChildHasTheBlocksToo) {
  InProcessWith({{"HZ_POLICY", "learn"}}, [] {
    std::atomic<bool> stop{false};
    std::thread trimmer([&stop] {
      while (!stop) api::Trim();
    });
    for (int i = 0; i < 30; ++i) {
      const std::vector<Block> left = Survivors(4 * kMiB);
      const pid_t child = fork();
      if (child == 0) {
        bool intact = true;
        for (const Block& block : left) {
          intact &= Intact(block);
          api::Free(block.at);
        }
        api::Trim();
        for (const Block& block : Survivors(kMiB)) intact &= Intact(block);
        _exit(intact ? 0 : 1);
      }
      int status = 0;
      ASSERT_EQ(child, waitpid(child, &status, 0));
      EXPECT_EQ(0, status);
      CheckAndFreeAll(left);
    }
    stop = true;
    trimmer.join();
  });
}

TEST(Discard, ASecondFreeOfWhatLayThereIsReported) {
  InProcessWith({{"HZ_ON_INVALID", "report"}}, [] {
    Capture said;
    std::vector<Block> blocks;
    for (int i = 0; i < 2000; ++i) blocks.push_back(MakeBlock(kSize));
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (i % 16 != 0) CheckAndFree(blocks[i]);
    api::Trim();
    api::Free(blocks[1000 + 1].at);
    api::Trim();
    EXPECT_NE(std::string::npos, said.Text().find("E03")) << said.Text();
    for (std::size_t i = 0; i < blocks.size(); i += 16) CheckAndFree(blocks[i]);
  });
}

}  // namespace
}  // namespace hz_test
