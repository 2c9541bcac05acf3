// SPDX-License-Identifier: Apache-2.0
//
// Random walks while the system calls of the heap fail at random: one in so many, some kinds of them or all.
// Nothing that the heap holds may suffer, and when the calls work again, so does everything. HZ_TEST_SEED
// repeats a walk.
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "fault/failing_calls.hpp"
#include "fault/walk.hpp"
#include "stress/threads.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr unsigned kBits = 24;

// Calls fail for a while, all of them or rarely one; or they work.
void Trouble(Random& random) {
  if (Below(random, 3) != 0) return;
  const std::size_t dice = Below(random, 8);
  const unsigned all = failing::kMemory;  // GoogleTest's own calls are none of them
  if (dice < 2) return failing::None();
  if (dice < 4) return failing::Sometimes(1, all);
  failing::Sometimes(1 + static_cast<unsigned>(Below(random, 8)), dice == 7 ? all : 1U + random() % all);
}

// How often the heap had to say no.
unsigned WalkAmongFailures(unsigned threads, unsigned steps, std::uint64_t seed) {
  Verdict verdict;
  Mailbox mailbox;
  std::vector<std::unique_ptr<Walk>> walks;
  for (unsigned i = 0; i < threads; ++i) {
    walks.push_back(std::make_unique<Walk>(verdict, mailbox, seed * 100 + i, kBits));
  }
  if (threads == 1) {
    walks[0]->Run(steps, Trouble);
  } else {
    Together(threads, [&](unsigned i) { walks[i]->Run(steps, Trouble); });
  }
  failing::None();
  const unsigned refused = EndWalks(verdict, walks, steps, kBits);
  ExpectNothingLost();
  return refused;
}

// Until the heap had to say no, too: where what it has at hand is enough, one walk in twenty goes without.
void Turns(unsigned threads, unsigned steps) {
  constexpr unsigned kAtMost = 40;
  const Watchdog watchdog(Long() ? 3000 : 240);
  const unsigned turns = Long() ? 200 : Quick() ? 1 : 2;
  unsigned refused = 0;
  const auto enough = [&](unsigned turn) { return turn >= turns && (refused != 0 || turn >= kAtMost); };
  for (unsigned turn = 0; !enough(turn) && !::testing::Test::HasFailure(); ++turn) {
    SCOPED_TRACE("HZ_TEST_SEED=" + std::to_string(Seed()) + " turn " + std::to_string(turn));
    refused += WalkAmongFailures(threads, steps, Seed() + turn);
  }
  EXPECT_GT(failing::Failures(), 0U);
  EXPECT_GT(refused, 0U) << "no failure was felt";
}

TEST(FailingCalls, OneThread) { Turns(1, Scaled(8000, 2000)); }
TEST(FailingCalls, FourThreads) { Turns(4, Scaled(3000, 800)); }

// Purging is a favour: without it the heap only stays larger.
TEST(FailingCalls, PurgesThatAllFail) {
  const Watchdog watchdog;
  failing::Sometimes(1, failing::kAdvise);
  Verdict verdict;
  Mailbox mailbox;
  Walk walk(verdict, mailbox, Seed(), kBits);
  walk.Run(Scaled(4000, 1000), [](Random&) {});
  EXPECT_EQ(0U, walk.Refused());
  walk.CheckAll();
  walk.FreeAll();
  EXPECT_GT(failing::Failures(), 0U);
  failing::None();
  verdict.Tell();
  ExpectNothingLost();
}

// Where the system takes no pages (they are locked, and Linux is older than 5.18), a busy program is not made
// to pay for asking: a step of a sweep now and then, and not all of them.
TEST(FailingCalls, SweepsThatAreRefusedAreFew) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  if (kUnderTool) GTEST_SKIP() << "too slow to be busy";
  const Watchdog watchdog;
  constexpr unsigned kBlocks = 400'000, kEvery = 32, kSize = 600;
  std::vector<void*> blocks;
  for (unsigned i = 0; i < kBlocks; ++i) blocks.push_back(api::Malloc(kSize));
  failing::Sometimes(1, failing::kAdvise);
  for (unsigned i = 0; i < kBlocks; ++i)
    if (i % kEvery != 0) api::Free(std::exchange(blocks[i], nullptr));
  Together(2, [](unsigned) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    for (unsigned turn = 0; std::chrono::steady_clock::now() < end; ++turn)
      api::Free(api::Malloc(1 + turn % 2000));  // in secure one of no bytes has pages of its own
  });
  EXPECT_LT(failing::Failures(), kBlocks / 20) << "sweeps that go on have 72,000";
  failing::None();
  for (void* block : blocks) api::Free(block);
  ExpectNothingLost();
}

// A block of zeros moves to memory that is full of something else and that the system will not take back.
TEST(FailingCalls, ZerosStayZerosWhereNothingIsPurged) {
  if (IsTiny()) GTEST_SKIP() << "it keeps no pages of huge blocks";
  const Watchdog watchdog;
  constexpr std::size_t kFrom = 16 * kMiB;
  void* dirt = api::Malloc(64 * kMiB);
  ASSERT_NE(nullptr, dirt);
  std::memset(dirt, 0xD1, 64 * kMiB);
  failing::Sometimes(1, failing::kMap | failing::kMove | failing::kAdvise);
  api::Free(dirt);
  void* block = api::Calloc(1, kFrom);
  void* in_the_way = api::Malloc(8 * kMiB);
  ASSERT_NE(nullptr, block);
  ASSERT_NE(nullptr, in_the_way);
  void* const larger = api::Realloc(block, kFrom + 8 * kMiB);
  ASSERT_TRUE(larger != nullptr || HasSeals()) << "pages that may not be touched are opened by the system";
  if (larger != nullptr) block = larger;
  EXPECT_TRUE(IsFilledWith(block, kFrom, 0));
  EXPECT_GT(failing::Failures(), 0U);
  failing::None();
  api::Free(block);
  api::Free(in_the_way);
  ExpectNothingLost();
}

// What has left is not lost, wherever the system stopped.
TEST(FailingCalls, AMoveThatStopsHalfWayLosesNothing) {
  if (IsTiny() || HasSeals()) GTEST_SKIP() << "it moves no pages";
  const Watchdog watchdog;
  constexpr std::size_t kSize = 16 * kMiB;
  for (const std::size_t stop : {std::size_t{64} << 10, 5 * kMiB, kSize - (std::size_t{64} << 10)}) {
    void* block = api::Malloc(kSize);
    void* in_the_way = api::Malloc(8 * kMiB);
    ASSERT_NE(nullptr, block);
    ASSERT_NE(nullptr, in_the_way);
    FillPattern(block, kSize, stop);
    failing::StopMovesAfter(stop);
    const std::uint64_t before = failing::Failures();
    void* grown = api::Realloc(block, 3 * kSize);
    EXPECT_GT(failing::Failures(), before) << "nothing was moved";
    failing::None();
    if (grown != nullptr) block = grown;
    EXPECT_TRUE(HasPattern(block, kSize, stop)) << stop;
    api::Free(block);
    api::Free(in_the_way);
    api::Trim();  // so that the next one goes where nothing is, as pages do
  }
  ExpectNothingLost();
}

// Between the system's unmapping of a move's target and its failure, another thread's mapping may land in the
// hole. It is not ours to write to, to purge, or to hand out, and the block that was to move is as it was, or
// at another place.
TEST(FailingCalls, WhatOthersMappedIntoAHoleIsTheirs) {
  if (IsTiny() || HasSeals()) GTEST_SKIP() << "it moves no pages";
  const Watchdog watchdog;
  constexpr std::size_t kSize = 16 * kMiB;
  for (const bool from_end : {false, true}) {
    for (const std::size_t offset : {std::size_t{0}, 5 * kMiB}) {
      void* block = api::Malloc(kSize);
      void* in_the_way = api::Malloc(8 * kMiB);
      ASSERT_NE(nullptr, block);
      ASSERT_NE(nullptr, in_the_way);
      FillPattern(block, kSize, 3);
      failing::Squat(offset, from_end);
      void* grown = api::Realloc(block, 3 * kSize);
      failing::None();
      if (grown != nullptr) block = grown;
      EXPECT_TRUE(HasPattern(block, kSize, 3));
      const void* theirs = failing::Squatted();
      ASSERT_NE(nullptr, theirs) << "nothing was moved";
      EXPECT_TRUE(IsFilledWith(theirs, failing::kSquattedBytes, failing::kSquatter));
      api::Free(block);
      api::Free(in_the_way);
      std::vector<void*> others;
      for (int i = 0; i < 10; ++i) {
        others.push_back(api::Malloc(12 * kMiB));
        ASSERT_NE(nullptr, others.back());
        std::memset(others.back(), 0, 12 * kMiB);
      }
      for (void* at : others) api::Free(at);
      api::Trim();
      EXPECT_TRUE(IsFilledWith(theirs, failing::kSquattedBytes, failing::kSquatter));
    }
  }
}

}  // namespace
}  // namespace hz_test
