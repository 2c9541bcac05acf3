// SPDX-License-Identifier: Apache-2.0
//
// Threads wake and sleep under the purger, and every byte is kept: bursts of making, checking and freeing
// blocks, some of them other threads' blocks, between sleeps as long as the purger's own. HZ_TEST_SEED
// repeats the choices, HZ_TEST_SECONDS or HZ_TEST_LONG=1 lengthen it.
#include <gtest/gtest.h>

#include "returns/patience.hpp"
#include "stress/blocks.hpp"
#include "stress/threads.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr unsigned kThreads = 8;

struct Share {
  std::vector<Block> blocks;
  std::size_t bytes = 0;
};

// Each thread sometimes holds this much; together far more than the heap that needs no purger.
constexpr std::size_t kMost = (kUnderTool ? 4 : 12) * kMiB;

void Grow(Random& random, Share& own, std::size_t until) {
  while (own.bytes < until) {
    own.blocks.push_back(MakeBlock(LogSize(random, Below(random, 50) == 0 ? 21 : 13)));
    own.bytes += own.blocks.back().size;
  }
}

void Shrink(Random& random, Share& own, Exchange& passed, std::size_t until) {
  while (own.bytes > until) {
    std::swap(own.blocks[Below(random, own.blocks.size())], own.blocks.back());
    const Block block = own.blocks.back();
    own.blocks.pop_back();
    own.bytes -= block.size;
    if (Below(random, 3) == 0) {
      passed.Put(block);
    } else {
      CheckAndFree(block);
    }
  }
}

void Live(unsigned thread, Exchange& passed, double end) {
  Random random(Seed() + thread);
  Share own;
  while (Now() < end && !::testing::Test::HasFailure()) {
    for (std::size_t bursts = 1 + Below(random, 4); bursts != 0; --bursts) {
      Grow(random, own, Below(random, kMost));
      Shrink(random, own, passed, Below(random, kMost));
    }
    for (const Block& block : own.blocks) EXPECT_TRUE(Intact(block));
    for (const Block& block : passed.TakeAll()) CheckAndFree(block);
    if (Below(random, 4) == 0) Shrink(random, own, passed, 0);
    SleepFor(0.02 + 0.001 * static_cast<double>(Below(random, Below(random, 8) == 0 ? 1500 : 380)));
  }
  Shrink(random, own, passed, 0);
}

TEST(Purger, KeepsEveryByteOfThreadsThatWakeAndSleep) {
  const auto seconds = static_cast<double>(NumberFrom("HZ_TEST_SECONDS", Long() ? 300 : Quick() ? 2 : 8));
  const Watchdog watchdog(static_cast<unsigned>(seconds) + 200);
  std::printf("HZ_TEST_SEED=%" PRIu64 "\n", Seed());
  Exchange passed;
  const double end = Now() + seconds;
  Together(kThreads, [&](unsigned thread) { Live(thread, passed, end); });
  for (const Block& block : passed.TakeAll()) CheckAndFree(block);
  ExpectNothingLost();
}

}  // namespace
}  // namespace hz_test
