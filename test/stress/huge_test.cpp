// SPDX-License-Identifier: Apache-2.0
//
// Blocks beyond the largest class: they grow and shrink with their content, many threads at once, and the
// process is left with few mappings.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "stress/blocks.hpp"
#include "stress/limited.hpp"
#include "stress/threads.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

unsigned Mappings() {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return 0;
  unsigned lines = 0;
  for (int c = std::fgetc(maps); c != EOF; c = std::fgetc(maps)) lines += c == '\n' ? 1 : 0;
  std::fclose(maps);
  return lines;
}

constexpr unsigned kMostMappings = 2000;

void Resize(Block& block, std::size_t size) {
  const std::size_t kept = size < block.size ? size : block.size;
  void* moved = api::Realloc(block.at, size);
  ASSERT_NE(nullptr, moved) << size;
  block.at = moved;
  EXPECT_TRUE(HasPattern(moved, kept, block.seed)) << "after realloc from " << block.size << " to " << size;
  FillPattern(moved, size, block.seed);
  block.size = size;
}

TEST(Huge, GrowsAndShrinksWithItsContent) {
  const Watchdog watchdog;
  const std::size_t most = Scaled(256, 32) * kMiB;
  Block block = MakeBlock(1024);
  while (block.size < most && !HasFailure())
    Resize(block, block.size + block.size / 2 < most ? block.size * 3 / 2 : most);
  while (block.size > 1024 && !HasFailure()) Resize(block, block.size / 3);
  CheckAndFree(block);
  EXPECT_LT(Mappings(), kMostMappings);
  ExpectNothingLost();
}

// A block that was moved grows where it lies, over memory that lay elsewhere before, and moves again:
// whatever the pages' history, the content comes along.
TEST(Huge, GrowsOverMemoryThatWasMovedBefore) {
  const Watchdog watchdog;
  Random random(Seed());
  constexpr unsigned kBlocks = 6;
  constexpr std::size_t kMost = 24 * kMiB;
  Block blocks[kBlocks];
  for (Block& block : blocks) block = MakeBlock(5 * kMiB);
  for (unsigned i = 0; i < Rounds(150, 40) && !HasFailure(); ++i) {
    Block& block = blocks[Below(random, kBlocks)];
    if (Below(random, 4) == 0 || block.size > kMost) {
      CheckAndFree(block);
      block = MakeBlock(5 * kMiB + Below(random, 4 * kMiB));
    } else {
      Resize(block, block.size / 2 + Below(random, block.size + block.size / 2));
    }
  }
  for (const Block& block : blocks) CheckAndFree(block);
  EXPECT_LT(Mappings(), kMostMappings);
  ExpectNothingLost();
}

// Only some pages are touched: it is the number of blocks that counts here.
TEST(Huge, ManyThreadsWithManyBlocks) {
  const Watchdog watchdog;
  const unsigned rounds = Rounds(200, 20);
  Exchange passed;
  Together(6, [&](unsigned thread) {
    Random random(Seed() + thread);
    for (unsigned round = 0; round < rounds; ++round) {
      const std::size_t size = 5 * kMiB + Below(random, 59 * kMiB);
      char* at = static_cast<char*>(api::Malloc(size));
      ASSERT_NE(nullptr, at);
      const Block block = {at, 64, FreshSeed()};
      at[size - 1] = 'e';
      at[api::UsableSize(at) - 1] = 'e';
      FillPattern(at, block.size, block.seed);
      if (Below(random, 3) == 0) {
        Block longer = block;
        longer.at = api::Realloc(at, size + Below(random, 32 * kMiB));
        passed.Put(longer);
      } else {
        passed.Put(block);
      }
      Block other;
      if (passed.Take(random, other)) CheckAndFree(other);
    }
  });
  for (const Block& block : passed.TakeAll()) CheckAndFree(block);
  EXPECT_LT(Mappings(), kMostMappings);
  ExpectNothingLost();
}

// Two threads free one block at once: one of them does, and the other is told.
TEST(Huge, FreedByTwoAtOnceIsFreedOnce) {
  constexpr unsigned kRounds = Scaled(3000, 300);
  if (std::getenv(kInsideProcess) == nullptr) {
    const ChildResult result = RunInProcess({{"HZ_ON_INVALID", "report"}}, "", {});
    ASSERT_EQ(0, result.exit_code) << "signal " << result.signal << "\n"
                                   << result.out << result.err.substr(0, 2000);
    unsigned told = 0;
    for (std::size_t at = result.err.find("hz: error: E0"); at != std::string::npos;
         at = result.err.find("hz: error: E0", at + 1)) {
      const std::string code = result.err.substr(at + 11, 3);
      EXPECT_TRUE(code == "E02" || code == "E03") << code;
      ++told;
    }
    EXPECT_EQ(kRounds, told) << result.err.substr(0, 2000);
    return;
  }
  const Watchdog watchdog;
  const hz_stats_t before = HeapStats();
  void* block = nullptr;
  std::atomic<unsigned> arrived{0};
  // Awake, so that both set out within nanoseconds of each other.
  const auto meet = [&](unsigned times) {
    ++arrived;
    for (unsigned spins = 0; arrived < 2 * times; ++spins) {
      if (spins % 10000 == 9999) std::this_thread::yield();
    }
  };
  Block others[2];
  Together(2, [&](unsigned thread) {
    for (unsigned round = 0; round < kRounds; ++round) {
      if (thread == 0) block = api::Malloc(5 * kMiB);
      meet(3 * round + 1);
      api::Free(block);
      meet(3 * round + 2);
      // Were it free twice, two would get it.
      others[thread] = {api::Malloc((5 + round % 3) * kMiB), 1000, FreshSeed()};
      FillPattern(others[thread].at, 1000, others[thread].seed);
      meet(3 * round + 3);
      CheckAndFree(others[thread]);
    }
  });
  if (kHeapIsOurs) {
    EXPECT_LE(HeapStats().bytes_held, before.bytes_held + 20 * kMiB);
  }
}

}  // namespace
}  // namespace hz_test
