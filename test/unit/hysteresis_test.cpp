// SPDX-License-Identifier: Apache-2.0
//
// Retention: the formulas of its header.
#include "box/retain/hysteresis.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace hz_test {
namespace {

using hz::Hysteresis;
using hz::kMiB;

// The header's words in figures.
constexpr std::size_t Spare(std::size_t recent, std::size_t live, std::size_t percent = Hysteresis::kDefaultPercent) {
  const std::size_t allowed = recent / 100 * percent;
  return Hysteresis::kFloor + (allowed > live ? allowed - live : 0);
}

// Decay goes by a clock; in most tests it must not come due.
void StopTheClock(Hysteresis::Global& g) { g.decayed_at = hz::os::milliseconds(); }

TEST(Hysteresis, NothingOutLeavesTheFloor) {
  Hysteresis::Global g;
  EXPECT_TRUE(Hysteresis::may_wait(g));
  EXPECT_EQ(Hysteresis::kFloor, Hysteresis::dirty_limit(g));
  EXPECT_EQ(Hysteresis::kFloor / 4 * 3, Hysteresis::dirty_target(g));
}

TEST(Hysteresis, DirtyIsTheSpareThatLooseSlotsLeave) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 200 * kMiB);
  EXPECT_EQ(Spare(200 * kMiB, 200 * kMiB), Hysteresis::dirty_limit(g));
  EXPECT_EQ(Hysteresis::dirty_limit(g) / 4 * 3, Hysteresis::dirty_target(g));
  Hysteresis::loose_added(g, 20 * kMiB);
  EXPECT_EQ(Spare(200 * kMiB, 180 * kMiB) - 20 * kMiB, Hysteresis::dirty_limit(g));
}

TEST(Hysteresis, AQuarterOfTheSpareMayAlwaysBeDirty) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 200 * kMiB);
  Hysteresis::slots_out(g, 1000 * kMiB);
  Hysteresis::loose_added(g, 1000 * kMiB);
  g.recent = 200 * kMiB;
  EXPECT_EQ(Spare(200 * kMiB, 200 * kMiB) / 4, Hysteresis::dirty_limit(g));
}

TEST(Hysteresis, TheRecentPeakCountsWhileTheLoadSwings) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 200 * kMiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 150 * kMiB);
  EXPECT_EQ(Spare(200 * kMiB, 50 * kMiB), Hysteresis::dirty_limit(g));
}

TEST(Hysteresis, AProgramThatEmptiesItselfIsSmallAtOnce) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 800 * kMiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 700 * kMiB);
  EXPECT_EQ(800 * kMiB, g.recent.load()) << "an eighth is not below an eighth";
  Hysteresis::slots_home(g, 10 * kMiB);
  EXPECT_EQ(720 * kMiB, g.recent.load()) << "a byte that comes home takes eight with it";
  Hysteresis::slots_home(g, 90 * kMiB);
  EXPECT_EQ(0u, g.recent.load());
  EXPECT_EQ(Hysteresis::kFloor, Hysteresis::dirty_limit(g));
}

// What thread bins may hold is no sign that the program is still busy.
TEST(Hysteresis, BinsDoNotHideThatAProgramEmptiesItself) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 800 * kMiB);
  StopTheClock(g);
  Hysteresis::bins_grown(g, 50 * kMiB);
  Hysteresis::bins_shrunk(g, 10 * kMiB);
  Hysteresis::slots_home(g, 660 * kMiB);
  EXPECT_EQ(800 * kMiB, g.recent.load()) << "an eighth and the bins are left";
  Hysteresis::slots_home(g, 10 * kMiB);
  EXPECT_EQ(720 * kMiB, g.recent.load());
}

TEST(Hysteresis, LooseSlotsMayTakeHalfOfTheSpare) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 100 * kMiB);
  StopTheClock(g);
  const std::size_t half = Spare(100 * kMiB, 100 * kMiB) / 2;
  Hysteresis::slots_out(g, half);  // loose from the start, so that live stays
  Hysteresis::loose_added(g, half);
  g.recent = 100 * kMiB;
  EXPECT_TRUE(Hysteresis::may_wait(g));
  Hysteresis::slots_out(g, 2);
  Hysteresis::loose_added(g, 2);
  g.recent = 100 * kMiB;
  EXPECT_FALSE(Hysteresis::may_wait(g));
}

TEST(Hysteresis, RecentFallsByAnEighthOfTheWayEach100Milliseconds) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 900 * kMiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 100 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(Hysteresis::kDecayMilliseconds + 20));
  Hysteresis::slots_home(g, 0);
  // Asleep for longer on a busy machine: any whole number of periods.
  std::size_t over = 100 * kMiB;
  int periods = 0;
  for (; periods < 600 && 800 * kMiB + over != g.recent.load(); ++periods) over -= over / 8;
  EXPECT_GE(periods, 1);
  EXPECT_LT(periods, 600) << g.recent.load();
}

TEST(Hysteresis, ALongSleepMakesUpForManyPeriods) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 900 * kMiB);
  g.decayed_at = hz::os::milliseconds() - 200 * Hysteresis::kDecayMilliseconds;
  Hysteresis::slots_home(g, 600 * kMiB);
  EXPECT_GE(g.recent.load(), 300 * kMiB);
  EXPECT_LE(g.recent.load(), 300 * kMiB + hz::kPage);
}

TEST(Hysteresis, TheFirstLookAtTheClockEnds) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 64 * kMiB);
  g.decayed_at = 0;
  Hysteresis::slots_home(g, kMiB);
  EXPECT_GE(g.recent.load(), 63 * kMiB);
}

TEST(Hysteresis, PercentAndFloorAreSettings) {
  Hysteresis::Global g;
  g.percent = 200;
  g.floor = 7 * kMiB;
  Hysteresis::slots_out(g, 100 * kMiB);
  EXPECT_EQ(7 * kMiB + 100 * kMiB / 100 * 200 - 100 * kMiB, Hysteresis::dirty_limit(g));
}

}  // namespace
}  // namespace hz_test
