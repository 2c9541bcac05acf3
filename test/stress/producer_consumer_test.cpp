// SPDX-License-Identifier: Apache-2.0
//
// Every block is freed by another thread than its maker's, in both directions at once and in batches of unequal length.
// Memory stays bounded: what one side frees, the other side must find again.
#include <gtest/gtest.h>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr unsigned kRounds = 20;

// Two threads, each of which makes batches for the other one and frees those of the other one, with as many batches
// under way as the two speeds make of it.
class Pair {
 public:
  Pair(Barrier& rounds, std::size_t bytes_per_round, std::size_t first_batch, std::size_t second_batch)
      : rounds_(rounds), bytes_(bytes_per_round), batches_{first_batch, second_batch} {}

  void Run(unsigned side) {
    Random random(Seed() + side);
    for (unsigned round = 0; round < kRounds; ++round) {
      for (std::size_t made = 0; made < bytes_;) {
        for (std::size_t i = 0; i < batches_[side]; ++i) {
          const Block block = MakeBlock(LogSize(random, 12));
          made += block.size;
          inbox_[1 - side].Put(block);
        }
        for (const Block& block : inbox_[side].TakeAll()) CheckAndFree(block);
      }
      rounds_.Wait();
      for (const Block& block : inbox_[side].TakeAll()) CheckAndFree(block);
      rounds_.Wait();  // nothing is live: measured here
      rounds_.Wait();
    }
  }

 private:
  Barrier& rounds_;
  const std::size_t bytes_;
  const std::size_t batches_[2];
  Exchange inbox_[2];
};

TEST(ProducerConsumer, MemoryStaysBounded) {
  const Watchdog watchdog;
  constexpr unsigned kThreads = 4;
  const std::size_t bytes = Scaled(16, 2) * kMiB;
  Barrier rounds(kThreads + 1);
  Pair balanced(rounds, bytes, 1000, 37);
  Pair lopsided(rounds, bytes, 1, 5000);
  std::size_t rss[kRounds] = {};
  {
    Thread a([&] { balanced.Run(0); });
    Thread b([&] { balanced.Run(1); });
    Thread c([&] { lopsided.Run(0); });
    Thread d([&] { lopsided.Run(1); });
    for (unsigned round = 0; round < kRounds; ++round) {
      rounds.Wait();
      rounds.Wait();
      rss[round] = RssBytes();
      rounds.Wait();
    }
  }
  if (!kSanitized) {
    EXPECT_LE(rss[kRounds - 1], rss[4] + rss[4] / 2);
  }
  ExpectNothingLost();
}

// One side only makes, the other only frees: every slot has to find its way back.
TEST(ProducerConsumer, OneWayStreamStaysBounded) {
  const Watchdog watchdog;
  const unsigned batches = Scaled(2000, 200);
  constexpr unsigned kBatch = 500;
  constexpr unsigned kAhead = 8;
  Exchange inbox;
  std::atomic<unsigned> freed{0};
  std::size_t early = 0, late = 0;
  {
    Thread consumer([&] {
      while (freed.load() != batches) {
        const std::vector<Block> blocks = inbox.TakeAll();
        for (const Block& block : blocks) CheckAndFree(block);
        freed += static_cast<unsigned>(blocks.size() / kBatch);
        if (blocks.empty()) sched_yield();
      }
    });
    Random random(Seed());
    for (unsigned batch = 0; batch < batches; ++batch) {
      while (batch - freed.load() > kAhead) sched_yield();
      std::vector<Block> blocks;
      for (unsigned i = 0; i < kBatch; ++i) blocks.push_back(MakeBlock(LogSize(random, 11)));
      inbox.PutAll(blocks);
      if (batch == batches / 4) early = RssBytes();
    }
    late = RssBytes();
  }
  if (!kSanitized) {
    EXPECT_LE(late, early + early / 2);
  }
  ExpectNothingLost();
}

}  // namespace
}  // namespace hz_test
