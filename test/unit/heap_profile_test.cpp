// SPDX-License-Identifier: Apache-2.0
//
// The chance of samples: countdowns are geometric, whatever the class, and so is their least, one. What the
// tables make of samples is tested with heaps (test/heap_profile).
#include "heap/samples/sampling.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace hz_test {
namespace {

using hz::Countdown;
using hz::HeapProfile;

class HeapProfileTest : public ::testing::Test {
 protected:
  HeapProfileTest() : before_(HeapProfile::state.interval.exchange(kInterval)) {}
  ~HeapProfileTest() override { HeapProfile::state.interval = before_; }

  static constexpr std::uint64_t kInterval = 4096;
  const std::uint64_t before_;
};

// Mean, variance and the chance of the first one, within six standard errors.
TEST_F(HeapProfileTest, CountdownsAreGeometric) {
  constexpr int kDraws = 200'000;
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{512}, std::size_t{4096}, std::size_t{16384}}) {
    SCOPED_TRACE(bytes);
    const double p = -std::expm1(-static_cast<double>(bytes) / kInterval);
    Countdown countdown = {.rates = {.interval = kInterval}};
    double sum = 0, squares = 0, ones = 0;
    for (int i = 0; i < kDraws; ++i) {
      countdown.left[1] = 0;
      hz::Sampling::draw(countdown, 1, bytes);
      const auto n = static_cast<double>(countdown.left[1]);
      ASSERT_GE(n, 1);
      sum += n;
      squares += n * n;
      ones += n == 1 ? 1 : 0;
    }
    const double variance = (1 - p) / (p * p), mean = sum / kDraws;
    EXPECT_NEAR(1 / p, mean, 6 * std::sqrt(variance / kDraws));
    EXPECT_NEAR(p, ones / kDraws, 6 * std::sqrt(p * (1 - p) / kDraws));
    // The variance of a sample's variance: v * v * (kurtosis - 1), and the kurtosis is 9 + 1 / v.
    EXPECT_NEAR(variance, squares / kDraws - mean * mean,
                6 * std::sqrt((8 * variance * variance + variance) / kDraws) + variance / 1e4);
  }
}

TEST_F(HeapProfileTest, ADrawnOneStays) {
  Countdown countdown = {.rates = {.interval = kInterval}};
  hz::Sampling::draw(countdown, 3, 64);
  const std::uint64_t left = countdown.left[3];
  hz::Sampling::draw(countdown, 3, 64);
  EXPECT_EQ(left, countdown.left[3]);
  EXPECT_EQ(0u, countdown.left[2]);
}

// Of those that a thread does not answer for, and of huge blocks, each by itself.
TEST_F(HeapProfileTest, HugeBlocksHaveTheChanceOfTheirSize) {
  constexpr int kDraws = 100'000;
  Countdown countdown = {.rates = {.interval = kInterval}};
  for (const std::size_t bytes : {std::size_t{1024}, std::size_t{8192}}) {
    const double p = -std::expm1(-static_cast<double>(bytes) / kInterval);
    int samples = 0;
    for (int i = 0; i < kDraws; ++i) {
      if (hz::Sampling::next(countdown, hz::kHugeBin, bytes, false) == hz::Sample::kNone) continue;
      ++samples;
      HeapProfile::give_up();
    }
    EXPECT_NEAR(p * kDraws, samples, 6 * std::sqrt(p * (1 - p) * kDraws));
    EXPECT_EQ(hz::Sample::kNone, hz::Sampling::next(countdown, hz::kHugeBin, std::size_t{1} << 40, true))
        << "our own work";
  }
}

// One countdown, and neither kind of sample knows of the other.
TEST_F(HeapProfileTest, GuardedSamplesComeBesideThem) {
  constexpr int kAllocations = 400'000;
  constexpr double kEvery = 50;
  const std::size_t page = std::exchange(hz::GuardedPool::state.page, 4096);
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{512}, std::size_t{8192}}) {
    SCOPED_TRACE(bytes);
    Countdown countdown = {.rates = {.interval = kInterval, .every = static_cast<std::uint64_t>(kEvery)}};
    double profiled = 0, guarded = 0;
    for (int i = 0; i < kAllocations; ++i) {
      const hz::Sample sample = hz::Sampling::next(countdown, 1, bytes, false);
      profiled += sample == hz::Sample::kRecorded ? 1 : 0;
      guarded += sample == hz::Sample::kOwned ? 1 : 0;
      if (sample == hz::Sample::kRecorded) HeapProfile::give_up();
    }
    const double p = -std::expm1(-static_cast<double>(bytes) / kInterval);
    const double g = bytes <= 4096 ? (1 - p) / kEvery : 0;
    EXPECT_NEAR(p * kAllocations, profiled, 6 * std::sqrt(p * (1 - p) * kAllocations));
    EXPECT_NEAR(g * kAllocations, guarded, 6 * std::sqrt(g * (1 - g) * kAllocations));
  }
  hz::GuardedPool::state.page = page;
}

}  // namespace
}  // namespace hz_test
