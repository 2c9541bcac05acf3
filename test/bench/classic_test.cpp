// SPDX-License-Identifier: Apache-2.0
//
// Loops of the classic programs against their definitions, with an allocator that keeps books: larson,
// alloc_test, xmalloc_test, cache_scratch and cache_thrash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "books.hpp"
#include "classic/alloc_test.hpp"
#include "classic/false_sharing.hpp"
#include "classic/larson.hpp"
#include "classic/xmalloc_test.hpp"
#include "lane/random.hpp"
#include "run_of.hpp"

namespace hz::bench {
namespace {

class ClassicTest : public testing::Test {
 protected:
  void SetUp() override { Books::open(); }

  static void expect_all_freed(const Tally& tally) {
    EXPECT_TRUE(Books::live.empty());
    EXPECT_EQ(Books::unknown, 0U);
    EXPECT_EQ(tally.allocated, Books::allocations);
    EXPECT_EQ(tally.released, Books::releases);
  }
};

TEST_F(ClassicTest, LarsonReplacesRandomBlocksOfAFullTable) {
  const LarsonShape shape(run_of("larson_sanity"));
  ASSERT_EQ(shape.slots, 10'000U);
  ASSERT_EQ(shape.nanoseconds, 5'000'000'000U);
  std::vector<void*> slots(shape.slots);
  Larson<Books> larson(shape, make_random<Mode::kFair>(1, 0), slots.data());
  larson.fill();
  EXPECT_EQ(Books::live.size(), 10'000U);
  std::vector<void*> before = slots;
  EXPECT_TRUE(larson.generation(UINT64_MAX));
  EXPECT_EQ(Books::releases, 100'000U) << "ten rounds";
  EXPECT_EQ(Books::allocations, 110'000U);
  EXPECT_EQ(Books::live.size(), 10'000U);
  EXPECT_EQ(Books::most_live, 10'000U) << "a block is freed before the next one is allocated";
  EXPECT_EQ(Books::smallest, 8U);
  EXPECT_EQ(Books::largest, 1'024U);
  // A slot survives 100,000 draws of 10,000 with the probability e^-10: victims are random, and none is
  // spared.
  const auto last_of_fill = std::count_if(Books::live.begin(), Books::live.end(),
                                          [](const auto& entry) { return entry.second.serial <= 10'000; });
  EXPECT_LT(last_of_fill, 6);
  larson.finish();
  expect_all_freed(larson.tally());
  EXPECT_EQ(Books::untouched, 0U);
}

TEST_F(ClassicTest, LarsonsBlocksAreFreedByThreadsThatDidNotAllocateThem) {
  LarsonShape shape(run_of("larson_hygienic"));
  ASSERT_EQ(shape.slots, 1'000U);
  EXPECT_EQ(shape.min_size, 4'096U);
  EXPECT_EQ(shape.max_size, 32'768U);
  shape.rounds = 1;
  std::vector<void*> slots(shape.slots);
  Larson<Books> larson(shape, make_random<Mode::kFair>(1, 0), slots.data());
  larson.fill();
  std::thread heir([&] {
    larson.inherit();
    larson.generation(UINT64_MAX);
  });
  heir.join();
  // 1,000 draws of 1,000 slots: those drawn for the first time held a block of the first thread.
  EXPECT_NEAR(static_cast<double>(Books::foreign), 632, 50);
  EXPECT_EQ(larson.tally().sent, 1'000U);
  larson.finish();
  expect_all_freed(larson.tally());
}

TEST_F(ClassicTest, LarsonStopsWhenTheTimeIsUp) {
  const LarsonShape shape(run_of("larson_sanity"));
  std::vector<void*> slots(shape.slots);
  Larson<Books> larson(shape, make_random<Mode::kFair>(1, 0), slots.data());
  larson.fill();
  EXPECT_FALSE(larson.generation(0));
  EXPECT_LT(Books::releases, 1'000U);
  larson.finish();
  expect_all_freed(larson.tally());
}

TEST_F(ClassicTest, ParetoFourOfFiveDrawsHitAFifthAndSoOnWithinIt) {
  constexpr int kDraws = 400'000;
  Xorshift64Star random(splitmix64(1));
  int fifth = 0, fifth_of_fifth = 0;
  std::uint32_t largest = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint32_t slot = pareto_slot(random, 65'536);
    fifth += slot < 65'536 / 5;
    fifth_of_fifth += slot < 65'536 / 25;
    largest = std::max(largest, slot);
  }
  EXPECT_NEAR(fifth, 0.795 * kDraws, 0.005 * kDraws);
  EXPECT_NEAR(fifth_of_fifth, 0.795 * fifth, 0.005 * kDraws);
  EXPECT_LT(largest, 65'536U);
  EXPECT_GT(largest, 65'500U);
}

TEST_F(ClassicTest, AllocTestWritesTheWholeBlock) {
  std::uint64_t zeros = 0;
  Books::inspect = [&](const unsigned char* bytes, std::size_t size) {
    zeros += std::count(bytes, bytes + size, 0);
  };
  const AllocTestShape shape(run_of("alloc_test", Mode::kFair, 20'001));
  std::vector<SizedBlock> slots(shape.slots);
  const Tally tally = replace_by_pareto<Books>(shape, make_random<Mode::kFair>(1, 0), slots.data());
  expect_all_freed(tally);
  EXPECT_GT(tally.allocated, 10'000U);
  EXPECT_LT(tally.allocated, 20'001U);
  EXPECT_EQ(zeros, 0U);
  EXPECT_EQ(Books::smallest, 8U);
  EXPECT_GT(Books::largest, 1'000U);
  EXPECT_LT(Books::largest, 1'024U);
}

TEST_F(ClassicTest, XmallocFreesNothingWhereItWasAllocated) {
  XmallocShape shape(run_of("xmalloc_test", Mode::kFair, 20));
  shape.queue = 3;
  const std::uint32_t batch = shape.batch;
  BatchQueue queue(shape.queue, 2);
  XmallocTest<Books> test(shape, queue);
  std::vector<Tally> tallies(4);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back(
        [&, i] { tallies[i] = i < 2 ? test.produce(make_random<Mode::kFair>(1, i)) : test.consume(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tallies[0].released + tallies[1].released, 0U);
  EXPECT_EQ(tallies[2].allocated + tallies[3].allocated, 0U);
  Tally tally;
  for (const Tally& t : tallies) tally += t;
  expect_all_freed(tally);
  EXPECT_EQ(tally.allocated, 2U * 20 * (batch + 1));
  EXPECT_EQ(tally.sent, tally.allocated);
  EXPECT_EQ(Books::foreign, tally.released);
  EXPECT_LE(queue.high_water(), 3U);
  EXPECT_LE(Books::most_live, (3 + 4) * (batch + 1))
      << "the queue, and one batch in the hands of each thread";
  EXPECT_EQ(std::count(Books::sizes.begin(), Books::sizes.end(), sizeof(Batch) + batch * sizeof(void*)), 40);
  EXPECT_EQ(Books::smallest, 8U);
}

TEST_F(ClassicTest, XmallocAloneConsumesEachBatchItself) {
  const XmallocShape shape(run_of("xmalloc_test", Mode::kFair, 7));
  BatchQueue queue(shape.queue, 1);
  const Tally tally = XmallocTest<Books>(shape, queue).produce_and_consume(make_random<Mode::kFair>(1, 0));
  expect_all_freed(tally);
  EXPECT_EQ(tally.allocated, 7U * (shape.batch + 1));
  EXPECT_EQ(tally.sent, 0U);
  EXPECT_EQ(Books::most_live, shape.batch + 1);
}

TEST(BatchQueue, FirstInFirstOutUntilTheLastProducerEnds) {
  Batch batches[3];
  BatchQueue queue(3, 2);
  for (Batch& batch : batches) queue.push(&batch);
  EXPECT_EQ(queue.pop(), &batches[0]);
  queue.push(&batches[0]);
  queue.end_producer();
  EXPECT_EQ(queue.pop(), &batches[1]);
  queue.end_producer();
  EXPECT_EQ(queue.pop(), &batches[2]);
  EXPECT_EQ(queue.pop(), &batches[0]);
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_EQ(queue.high_water(), 3U);
}

TEST_F(ClassicTest, FalseSharingWritesEachByteOfEveryBlockAHundredTimes) {
  std::uint64_t wrong = 0;
  Books::inspect = [&](const unsigned char* bytes, std::size_t size) {
    wrong += size != 8 || std::count(bytes, bytes + size, 100) != 8;
  };
  const FalseSharingShape shape(run_of("cache_thrash", Mode::kFair, 50));
  EXPECT_FALSE(shape.given);
  const Tally tally = write_small_blocks<Books>(shape, nullptr);
  expect_all_freed(tally);
  EXPECT_EQ(tally.calls(), 100U);
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(Books::most_live, 1U);
}

TEST_F(ClassicTest, CacheScratchBeginsByFreeingWhatAnotherThreadAllocated) {
  const FalseSharingShape shape(run_of("cache_scratch", Mode::kFair, 3));
  EXPECT_TRUE(shape.given);
  void* given = Books::allocate(shape.size);
  Tally tally;
  std::thread worker([&] { tally = write_small_blocks<Books>(shape, given); });
  worker.join();
  EXPECT_EQ(Books::calls, (std::vector<std::int64_t>{1, -1, 2, -2, 3, -3, 4, -4}));
  EXPECT_EQ(Books::foreign, 1U);
  EXPECT_EQ(tally.calls(), 7U);
}

}  // namespace
}  // namespace hz::bench
