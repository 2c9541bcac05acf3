// SPDX-License-Identifier: Apache-2.0
//
// The latency lane: the histogram against sorted numbers, the loop against its definition, and a call that is
// slow shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "books.hpp"
#include "latency/histogram.hpp"
#include "latency/timed_churn.hpp"
#include "run_of.hpp"

namespace hz::bench {
namespace {

TEST(Histogram, BucketsFollowEachOtherWithoutAGap) {
  std::size_t last = 0;
  for (std::uint64_t ticks = 0; ticks < 100'000; ++ticks) {
    const std::size_t bucket = Histogram::bucket(ticks);
    ASSERT_TRUE(bucket == last || bucket == last + 1) << ticks;
    ASSERT_GE(Histogram::most_in(bucket), ticks);
    ASSERT_LE(Histogram::most_in(bucket), ticks + ticks / 32);
    ASSERT_TRUE(bucket == last || Histogram::most_in(last) == ticks - 1) << ticks;
    last = bucket;
  }
  EXPECT_EQ(Histogram::most_in(Histogram::bucket(UINT64_MAX)), UINT64_MAX);
}

TEST(Histogram, PercentilesAreThoseOfTheSortedTimes) {
  const auto histogram = std::make_unique<Histogram>(Histogram{});
  EXPECT_EQ(histogram->percentile(500'000), 0U);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> times;
  for (int i = 0; i < 30'001; ++i) times.push_back(random() >> (20 + random() % 40));
  for (const std::uint64_t time : times) histogram->add(time);
  std::sort(times.begin(), times.end());
  EXPECT_EQ(histogram->count(), times.size());
  EXPECT_EQ(histogram->longest(), times.back());
  for (const std::uint64_t parts : {1U, 500'000U, 990'000U, 999'000U, 999'900U, 1'000'000U}) {
    const std::uint64_t exact = times[(times.size() * parts + 999'999) / 1'000'000 - 1];
    EXPECT_GE(histogram->percentile(parts), exact) << parts;
    EXPECT_LE(histogram->percentile(parts), exact + exact / 32) << parts;
  }
}

TEST(Histogram, TwoTogether) {
  const auto one = std::make_unique<Histogram>(Histogram{});
  const auto other = std::make_unique<Histogram>(Histogram{});
  one->add(10);
  other->add(1000);
  other->add(20);
  *one += *other;
  EXPECT_EQ(one->count(), 3U);
  EXPECT_EQ(one->longest(), 1000U);
  EXPECT_EQ(one->percentile(500'000), 20U);
}

class LatencyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Books::open();
    board_->at_work = 1;
  }

  template <class Allocator = Books>
  Tally run(const bench::Run& run) {
    const LatencyShape shape(run);
    std::vector<void*> slots(shape.slots);
    TimedChurn<Allocator> churn(shape, slots.data(), *board_, *times_);
    churn.run(run.seed, 0);
    return churn.tally();
  }

  std::unique_ptr<Board> board_ = std::make_unique<Board>();
  std::unique_ptr<CallHistograms> times_ = std::make_unique<CallHistograms>(CallHistograms{});
};

TEST_F(LatencyTest, EveryCallIsTimedAndEverythingIsFreed) {
  const Tally tally = run(run_of("latency", Mode::kFair, 200'000));
  EXPECT_TRUE(Books::live.empty());
  EXPECT_EQ(Books::unknown, 0U);
  EXPECT_EQ(tally.allocated, Books::allocations);
  EXPECT_EQ(tally.released, Books::releases);
  EXPECT_EQ(times_->allocate.count(), tally.allocated);
  EXPECT_EQ(times_->release.count(), tally.released);
}

TEST_F(LatencyTest, SizesAreMixedAndSomeBlocksGoOverTheBoard) {
  const Tally tally = run(run_of("latency", Mode::kFair, 400'000));
  EXPECT_GE(Books::smallest, 16U);
  EXPECT_GT(Books::largest, 1U << 20);
  EXPECT_LE(Books::largest, 4U << 20);
  const auto large =
      std::count_if(Books::sizes.begin(), Books::sizes.end(), [](std::size_t n) { return n > 32'768; });
  EXPECT_NEAR(static_cast<double>(large) / static_cast<double>(tally.allocated), 0.001, 0.0003);
  const double occupied = static_cast<double>(tally.released);  // what a phase frees among them
  EXPECT_GT(static_cast<double>(tally.sent), 0.15 * occupied);
  EXPECT_LT(static_cast<double>(tally.sent), 0.22 * occupied);
}

TEST_F(LatencyTest, APhaseFreesAllSlots) {
  bench::Run shorter = run_of("latency", Mode::kFair, 40'000);
  shorter.lane.definition.set("phase", 10'000);
  shorter.lane.definition.set("remote_percent", 0);
  run(shorter);
  // Live blocks fall to none four times, the last time at the end.
  std::size_t live = 0, fell = 0;
  for (const std::int64_t call : Books::calls) {
    live += call > 0 ? 1 : std::size_t(-1);
    fell += live == 0 ? 1 : 0;
  }
  EXPECT_GE(fell, 4U);
  EXPECT_LE(fell, 12U);
}

// Every hundredth allocation waits.
struct Slow : Books {
  static inline unsigned calls = 0;
  static void* allocate(std::size_t size) {
    if (++calls % 100 == 0) {
      const std::uint64_t start = now_ns();
      while (now_ns() - start < 2'000'000) continue;
    }
    return Books::allocate(size);
  }
};

TEST_F(LatencyTest, SlowCallsAreSeenWhereTheyAre) {
  const Stopwatch watch;
  run<Slow>(run_of("latency", Mode::kFair, 20'000));
  const double ns = watch.tick_ns();
  ASSERT_GT(Slow::calls, 5'000U);
  EXPECT_LT(static_cast<double>(times_->allocate.percentile(900'000)) * ns, 1'900'000);
  EXPECT_GE(static_cast<double>(times_->allocate.percentile(999'000)) * ns, 1'900'000);
  EXPECT_GE(static_cast<double>(times_->allocate.longest()) * ns, 1'900'000);
  EXPECT_LT(static_cast<double>(times_->release.percentile(900'000)) * ns, 1'900'000);
}

}  // namespace
}  // namespace hz::bench
