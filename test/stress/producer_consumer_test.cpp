// SPDX-License-Identifier: Apache-2.0
//
// Every block is freed by another thread than its maker's, in both directions at once and in batches of
// unequal length. Memory stays bounded by what was live at a time, however much went through: what one side
// frees, the other side must find again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr unsigned kRounds = 30;

// Makes and frees blocks for any thread, and knows the most that was live at a time.
class Ledger {
 public:
  Block Make(std::size_t size) {
    const std::size_t now = live_.fetch_add(size) + size;
    std::size_t most = most_.load();
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
    return MakeBlock(size);
  }
  void Free(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      CheckAndFree(block);
      live_ -= block.size;
    }
  }
  // What was there before; half of it in use; and what threads cache and every heap may keep. Many times as
  // much goes through. (A comparison with an earlier round would be one with how far its threads ran ahead of
  // each other then, and with what the purger had time for.)
  std::size_t BytesAllowed() const { return before_ + 2 * most_ + 9 * kMiB; }

 private:
  const std::size_t before_ = RssBytes();
  std::atomic<std::size_t> live_{0}, most_{0};
};

// Two threads, each of which makes batches for the other one and frees those of the other one, with as many
// batches under way as the two speeds make of it.
class Pair {
 public:
  Pair(Barrier& rounds, Ledger& ledger, std::size_t bytes_per_round, std::size_t first_batch,
       std::size_t second_batch)
      : rounds_(rounds), ledger_(ledger), bytes_(bytes_per_round), batches_{first_batch, second_batch} {}

  void Run(unsigned side) {
    Random random(Seed() + side);
    for (unsigned round = 0; round < kRounds; ++round) {
      for (std::size_t made = 0; made < bytes_;) {
        for (std::size_t i = 0; i < batches_[side]; ++i) {
          const Block block = ledger_.Make(LogSize(random, 12));
          made += block.size;
          inbox_[1 - side].Put(block);
        }
        ledger_.Free(inbox_[side].TakeAll());
      }
      rounds_.Wait();
      ledger_.Free(inbox_[side].TakeAll());
      rounds_.Wait();  // nothing is live: measured here
      rounds_.Wait();
    }
  }

 private:
  Barrier& rounds_;
  Ledger& ledger_;
  const std::size_t bytes_;
  const std::size_t batches_[2];
  Exchange inbox_[2];
};

TEST(ProducerConsumer, MemoryStaysBounded) {
  const Watchdog watchdog;
  constexpr unsigned kThreads = 4;
  const std::size_t bytes = Scaled(16, 2) * kMiB;
  Barrier rounds(kThreads + 1);
  Ledger ledger;
  Pair balanced(rounds, ledger, bytes, 1000, 37);
  Pair lopsided(rounds, ledger, bytes, 1, 5000);
  std::size_t rss = 0;
  {
    Thread a([&] { balanced.Run(0); });
    Thread b([&] { balanced.Run(1); });
    Thread c([&] { lopsided.Run(0); });
    Thread d([&] { lopsided.Run(1); });
    for (unsigned round = 0; round < kRounds; ++round) {
      rounds.Wait();
      rounds.Wait();
      rss = std::max(rss, RssBytes());
      rounds.Wait();
    }
  }
  if (!kUnderTool) {
    EXPECT_LE(rss, ledger.BytesAllowed());
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
  Ledger ledger;
  std::atomic<unsigned> freed{0};
  std::size_t rss = 0;
  {
    Thread consumer([&] {
      while (freed.load() != batches) {
        const std::vector<Block> blocks = inbox.TakeAll();
        ledger.Free(blocks);
        freed += static_cast<unsigned>(blocks.size() / kBatch);
        if (blocks.empty()) sched_yield();
      }
    });
    Random random(Seed());
    for (unsigned batch = 0; batch < batches; ++batch) {
      while (batch - freed.load() > kAhead) sched_yield();
      std::vector<Block> blocks;
      for (unsigned i = 0; i < kBatch; ++i) blocks.push_back(ledger.Make(LogSize(random, 11)));
      inbox.PutAll(blocks);
    }
    rss = RssBytes();
  }
  if (!kUnderTool) {
    EXPECT_LE(rss, ledger.BytesAllowed());
  }
  ExpectNothingLost();
}

}  // namespace
}  // namespace hz_test
