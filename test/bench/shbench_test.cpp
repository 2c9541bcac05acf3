// SPDX-License-Identifier: Apache-2.0
//
// sh6bench and sh8bench against their definitions, with an allocator that keeps books: the distribution of
// sizes, the order in which blocks are freed, and what becomes of the last third.
#include "classic/shbench.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include "books.hpp"
#include "run_of.hpp"

namespace hz::bench {
namespace {

class ShbenchTest : public testing::Test {
 protected:
  void SetUp() override { Books::open(); }

  // A thread that sends to itself.
  static Tally run_alone(const ShbenchShape& shape) {
    std::vector<void*> entries(shape.ring);
    std::vector<void*> slots(shape.blocks());
    SpscRing ring(entries.data(), entries.size());
    const Tally tally = Shbench<Books>(shape, slots.data(), ring, ring).run();
    EXPECT_TRUE(Books::live.empty());
    EXPECT_EQ(Books::unknown, 0U);
    EXPECT_EQ(Books::untouched, 0U);
    EXPECT_EQ(tally.allocated, Books::allocations);
    EXPECT_EQ(tally.released, Books::releases);
    return tally;
  }

  // Sizes 1, 2, 3, 4, 1, 2, 1, 1: few enough to write down every call.
  static ShbenchShape small_shape(const char* lane, std::uint64_t sweeps) {
    ShbenchShape shape(run_of(lane, Mode::kFair, sweeps));
    shape.max_size = 4;
    shape.ring = 8;
    return shape;
  }
};

TEST_F(ShbenchTest, ASizeComesMaxBySizeTimesInASweep) {
  const ShbenchShape shape(run_of("sh6bench", Mode::kFair, 2));
  EXPECT_EQ(shape.blocks(), 7'069U);
  run_alone(shape);
  std::map<std::size_t, std::size_t> count;
  for (const std::size_t size : Books::sizes) ++count[size];
  ASSERT_EQ(count.size(), 1'000U);
  for (const auto& [size, n] : count) EXPECT_EQ(n, 2 * (1'000 / size)) << size;
}

TEST_F(ShbenchTest, Sh6FreesForwardsThenBackwardsAndKeepsTheLastThirdForARound) {
  run_alone(small_shape("sh6bench", 2));
  EXPECT_EQ(Books::sizes, (std::vector<std::size_t>{1, 2, 3, 4, 1, 2, 1, 1, 1, 2, 3, 4, 1, 2, 1, 1}));
  EXPECT_EQ(Books::calls, (std::vector<std::int64_t>{
                              1,  2,   3,   4,   5,   6,   7,   8,           // fill
                              -1, -4,  -7,                                   // forwards
                              -8, -5,  -2,                                   // backwards
                              9,  10,  -3,  11,  12,  13,  -6,  14, 15, 16,  // places of the last third
                              -9, -12, -15, -16, -13, -10, -11, -14}));      // and what is left at the end
}

TEST_F(ShbenchTest, Sh8SendsTheLastThird) {
  const Tally tally = run_alone(small_shape("sh8bench", 2));
  EXPECT_EQ(Books::calls,
            (std::vector<std::int64_t>{1,   2,  3,  4,  5,  6,  7,  8,  -1, -4,  -7,  -8,  -5,  -2,  //
                                       -3,  -6,  // arrived, freed before the next sweep
                                       9,   10, 11, 12, 13, 14, 15, 16, -9, -12, -15, -16, -13, -10,  //
                                       -11, -14}));
  EXPECT_EQ(tally.sent, 4U);
}

TEST_F(ShbenchTest, Sh8ThreadsFreeEachOthersBlocksAlsoThroughATinyRing) {
  ShbenchShape shape(run_of("sh8bench", Mode::kFair, 5));
  shape.max_size = 100;
  shape.ring = 4;
  constexpr unsigned kThreads = 3;
  std::vector<void*> entries(kThreads * shape.ring);
  std::vector<void*> slots(kThreads * shape.blocks());
  std::deque<SpscRing> rings;  // stay where they are
  for (unsigned i = 0; i < kThreads; ++i) rings.emplace_back(entries.data() + i * shape.ring, shape.ring);
  std::vector<Tally> tallies(kThreads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      SpscRing& receive = rings[(i + kThreads - 1) % kThreads];
      tallies[i] = Shbench<Books>(shape, slots.data() + i * shape.blocks(), rings[i], receive).run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  Tally tally;
  for (const Tally& t : tallies) tally += t;
  EXPECT_TRUE(Books::live.empty());
  EXPECT_EQ(Books::unknown, 0U);
  EXPECT_EQ(tally.released, tally.allocated);
  EXPECT_EQ(tally.sent, kThreads * 5 * (shape.blocks() / 3));
  EXPECT_EQ(Books::foreign, tally.sent);
}

}  // namespace
}  // namespace hz::bench
