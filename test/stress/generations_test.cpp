// SPDX-License-Identifier: Apache-2.0
//
// Blocks outlive the threads that made them: generations of short threads, each of which frees what threads
// long gone have left, and leaves blocks for those to come.
#include <gtest/gtest.h>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"

namespace hz_test {
namespace {

TEST(Generations, BlocksSurviveTheirThread) {
  const Watchdog watchdog;
  const unsigned generations = Rounds(200, 40);
  constexpr unsigned kThreads = 8;
  Exchange left;
  for (unsigned generation = 0; generation < generations; ++generation) {
    Together(kThreads, [&](unsigned thread) {
      Random random(Seed() + generation * kThreads + thread);
      std::vector<Block> own;
      for (int i = 0; i < 300; ++i) {
        const unsigned bits = Below(random, 50) == 0 ? 17 : 11;
        own.push_back(MakeBlock(LogSize(random, bits)));
        Block block;
        if (Below(random, 10) < 7 && left.Take(random, block)) CheckAndFree(block);
      }
      for (const Block& block : own) {
        if (Below(random, 4) == 0) {
          CheckAndFree(block);
        } else {
          left.Put(block);
        }
      }
    });
    if (::testing::Test::HasFailure()) break;
  }
  for (const Block& block : left.TakeAll()) CheckAndFree(block);
  ExpectNothingLost();
}

}  // namespace
}  // namespace hz_test
