// SPDX-License-Identifier: Apache-2.0
//
// A thread sleeps while others free its blocks: they wait for it, and when it wakes they are all there.
#include <gtest/gtest.h>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

TEST(IdleOwner, FindsItsBlocksAgain) {
  const Watchdog watchdog;
  constexpr unsigned kStrangers = 3;
  constexpr unsigned kRounds = 8;
  const unsigned count = Scaled(60000, 5000);
  Barrier turn(kStrangers + 1);
  std::vector<Block> blocks(count);
  std::size_t rss[kRounds] = {};
  {
    Thread owner([&] {
      for (std::size_t& measured : rss) {
        Random random(Seed());  // the same sizes in every round
        for (Block& block : blocks) block = MakeBlock(LogSize(random, 11));
        measured = RssBytes();
        turn.Wait();
        turn.Wait();  // asleep
      }
    });
    Together(kStrangers, [&](unsigned stranger) {
      for (unsigned round = 0; round < kRounds; ++round) {
        turn.Wait();
        for (unsigned i = stranger; i < count; i += kStrangers) CheckAndFree(blocks[i]);
        turn.Wait();
      }
    });
  }
  if (!kUnderTool) {
    EXPECT_LE(rss[kRounds - 1], rss[1] + rss[1] / 4);
  }
  ExpectNothingLost();
}

// The owner never wakes again before the end, and others need the memory.
TEST(IdleOwner, DoesNotHoldBackWhatOthersNeed) {
  const Watchdog watchdog;
  const unsigned count = Scaled(60000, 5000);
  std::vector<Block> blocks(count);
  Barrier made(2), done(2);
  Thread owner([&] {
    for (Block& block : blocks) block = MakeBlock(500);
    made.Wait();
    done.Wait();
  });
  made.Wait();
  const std::size_t before = RssBytes();
  for (int round = 0; round < 10; ++round) {
    for (const Block& block : blocks) CheckAndFree(block);
    for (Block& block : blocks) block = MakeBlock(500);
  }
  if (!kUnderTool) {
    EXPECT_LE(RssBytes(), before * 5 / 2);
  }
  for (const Block& block : blocks) CheckAndFree(block);
  done.Wait();
  owner.Join();
  ExpectNothingLost();
}

}  // namespace
}  // namespace hz_test
