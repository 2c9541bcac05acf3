// SPDX-License-Identifier: Apache-2.0
//
// Who is busy and who is calm, from times alone; and the same times give the same answers.
#include "box/policy/tempo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace hz_test {
namespace {

using hz::Tempo;

class TempoTest : public ::testing::Test {
 protected:
  // A thread spends so many 1024ths of that time at the boundary, in crossings of 8 microseconds.
  void Spend(Tempo::Thread& t, unsigned share, std::uint64_t microseconds) {
    const std::uint64_t end = now_ + microseconds;
    const std::uint64_t step = 8 * 1024 / share;
    while (now_ < end) {
      now_ += step;
      if (Tempo::is_timed(t)) tempo_->crossed(t, now_ - 8, now_);
    }
  }
  const std::unique_ptr<Tempo> tempo_ = std::make_unique<Tempo>();
  std::uint64_t now_ = 1'000'000;
};

// Whatever the rate: so many crossings are timed as tell something, and no more than that costs.
TEST_F(TempoTest, AWindowHasItsSamples) {
  Tempo::Thread t;
  for (const unsigned apart : {1000, 100, 10, 3, 1, 40, 4000}) {  // microseconds
    unsigned timed = 0, all = 0;
    const std::uint64_t settled = now_ + 4 * Tempo::kWindow, end = settled + 50 * Tempo::kWindow;
    for (; now_ < end; now_ += apart) {
      const bool is_timed = Tempo::is_timed(t);
      if (now_ >= settled) timed += is_timed ? 1 : 0, ++all;
      EXPECT_EQ(is_timed, Tempo::stands_for(t) != 0);
      if (is_timed) tempo_->crossed(t, now_, now_);
    }
    EXPECT_LE(timed, 50 * Tempo::kSamples) << apart;
    EXPECT_GE(timed, std::min(all, 50 * Tempo::kSamples / 5)) << apart;
  }
}

TEST_F(TempoTest, WhatIsTimedStandsForTheRest) {
  for (const unsigned apart : {20, 10, 5}) {
    Tempo::Thread t;
    Tempo::Spent spent;
    (void)tempo_->ends_round(now_, 0, spent);
    std::uint64_t stood_for = 0, all = 0;
    for (const std::uint64_t end = now_ + 40 * Tempo::kWindow; now_ < end; now_ += apart, ++all) {
      if (!Tempo::is_timed(t)) continue;
      stood_for += Tempo::stands_for(t);
      tempo_->crossed(t, now_, now_ + all % 2);  // each second one takes a microsecond
    }
    EXPECT_NEAR(1.0, static_cast<double>(stood_for) / static_cast<double>(all), 0.02);
    EXPECT_NEAR(Tempo::kAll / 2.0 / apart, tempo_->spent_so_far().share(), 3) << apart;
  }
}

TEST_F(TempoTest, ACalmThreadIsHalvedAndABusyOneIsFree) {
  Tempo::Thread t;
  Spend(t, 1, 100 * Tempo::kWindow);
  EXPECT_EQ(Tempo::kMostHalvings, t.halvings);
  Spend(t, 100, 3 * Tempo::kWindow);
  EXPECT_EQ(0u, t.halvings);
  Spend(t, 15, 40 * Tempo::kWindow);
  EXPECT_EQ(0u, t.halvings) << "neither busy nor calm: as it was";
}

TEST_F(TempoTest, AProcessIsRoomyAtFirstThenTightAndRoomyAgain) {
  Tempo::Thread t;
  EXPECT_FALSE(tempo_->is_tight(now_));
  Spend(t, 2, Tempo::kCalm + 2 * Tempo::kWindow);
  EXPECT_TRUE(tempo_->is_tight(now_));
  Spend(t, 100, 8 * Tempo::kWindow);
  EXPECT_FALSE(tempo_->is_tight(now_));
  EXPECT_FALSE(tempo_->is_tight(now_ + Tempo::kCalm / 2));
  EXPECT_TRUE(tempo_->is_tight(now_ + Tempo::kCalm + Tempo::kWindow)) << "also if nobody crosses any more";
}

TEST_F(TempoTest, OneBusyThreadOfTwoIsEnough) {
  Tempo::Thread calm, busy;
  (void)tempo_->is_tight(now_);
  for (int i = 0; i < 10000; ++i) {
    now_ += 80;
    if (Tempo::is_timed(busy)) tempo_->crossed(busy, now_ - 8, now_);
    if (i % 16 == 0 && Tempo::is_timed(calm)) tempo_->crossed(calm, now_ - 1, now_);
  }
  EXPECT_FALSE(tempo_->is_tight(now_)) << "half of all windows are";
  EXPECT_EQ(Tempo::kMostHalvings, calm.halvings);
}

// Who waited for a processor within a crossing, or gave many pages back.
TEST_F(TempoTest, OneLongCrossingIsNoBusyThread) {
  Tempo::Thread t;
  (void)tempo_->is_tight(now_);
  Spend(t, 2, 2 * Tempo::kCalm);
  ASSERT_TRUE(tempo_->is_tight(now_));
  while (!Tempo::is_timed(t)) continue;
  tempo_->crossed(t, now_, now_ + 50000);
  EXPECT_TRUE(tempo_->is_tight(now_ + 50000));
}

TEST_F(TempoTest, PresetsMoveTheBars) {
  for (unsigned preset = 0; preset < Tempo::kPresetCount; ++preset) {
    Tempo::Thread t;
    tempo_->choose(preset);
    const std::string_view name = tempo_->preset().name;
    (void)tempo_->is_tight(now_);
    Spend(t, 200, 2 * Tempo::kCalm);
    EXPECT_EQ(name == "small", tempo_->is_tight(now_)) << name;
    EXPECT_EQ(name == "small" ? Tempo::kMostHalvings : 0, t.halvings) << name;
    Spend(t, 1, 20 * Tempo::kCalm);
    EXPECT_EQ(name != "fast", tempo_->is_tight(now_)) << name;
    EXPECT_EQ(name != "fast" ? Tempo::kMostHalvings : 0, t.halvings) << name;
  }
}

TEST_F(TempoTest, ARoundEndsForOneCaller) {
  Tempo::Thread t;
  Tempo::Spent spent;
  EXPECT_FALSE(tempo_->ends_round(now_, Tempo::kRound, spent)) << "it begins";
  Spend(t, 100, Tempo::kRound);
  EXPECT_NEAR(100, tempo_->spent_so_far().share(), 5);
  ASSERT_TRUE(tempo_->ends_round(now_ + 1, Tempo::kRound, spent));
  EXPECT_NEAR(100, spent.share(), 5);
  EXPECT_FALSE(tempo_->ends_round(now_ + 1, Tempo::kRound, spent));
  EXPECT_EQ(0u, tempo_->spent_so_far().share());
}

TEST_F(TempoTest, TheSameTimesGiveTheSameAnswers) {
  const auto replay = [] {
    Tempo tempo;
    std::mt19937 random(7);
    std::vector<Tempo::Thread> threads(5);
    std::vector<unsigned> said;
    std::uint64_t now = 1;
    for (int i = 0; i < 20000; ++i) {
      Tempo::Thread& t = threads[random() % threads.size()];
      now += random() % 300;
      if (!Tempo::is_timed(t) || !tempo.crossed(t, now - random() % 9, now)) continue;
      Tempo::Spent spent;
      said.push_back(t.halvings * 4 + (tempo.is_tight(now) ? 2 : 0));
      if (tempo.ends_round(now, Tempo::kRound, spent)) said.push_back(spent.share());
    }
    return said;
  };
  const std::vector<unsigned> first = replay();
  EXPECT_GT(first.size(), 100u);
  EXPECT_EQ(first, replay());
}

}  // namespace
}  // namespace hz_test
