// SPDX-License-Identifier: Apache-2.0
//
// Retention: the formulas of its header.
#include "box/retain/keep_refill.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace hz_test {
namespace {

using hz::Hysteresis;
using hz::kGiB;
using hz::kMiB;

// The header's words in figures.
constexpr std::size_t Spare(std::size_t recent, std::size_t live, std::size_t percent = Hysteresis::kDefaultPercent) {
  const std::size_t allowed = recent / 100 * percent;
  return Hysteresis::kFloor + (allowed > live ? allowed - live : 0);
}

std::size_t Recent(const Hysteresis::Global& g) { return std::max(g.high.load(), g.before.load()); }

// As if this window had begun some windows ago; with 0 it does not end while a test runs.
void BeganWindowsAgo(Hysteresis::Global& g, std::uint64_t windows) {
  g.began = hz::os::milliseconds() - windows * Hysteresis::kWindowMilliseconds;
}
void StopTheClock(auto& g) { g.began = hz::os::milliseconds(); }

TEST(Hysteresis, NothingOutLeavesTheFloor) {
  Hysteresis::Global g;
  EXPECT_TRUE(Hysteresis::may_wait(g, Hysteresis::kSmall));
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
  g.high = 200 * kMiB;
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
  EXPECT_EQ(800 * kMiB, Recent(g)) << "an eighth is not below an eighth";
  Hysteresis::slots_home(g, 10 * kMiB);
  EXPECT_EQ(720 * kMiB, Recent(g)) << "a byte that comes home takes eight with it";
  Hysteresis::slots_home(g, 90 * kMiB);
  EXPECT_EQ(0u, Recent(g));
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
  EXPECT_EQ(800 * kMiB, Recent(g)) << "an eighth and the bins are left";
  Hysteresis::slots_home(g, 10 * kMiB);
  EXPECT_EQ(720 * kMiB, Recent(g));
}

TEST(Hysteresis, LooseSlotsMayTakeHalfOfTheSpareAndManySmallOnesASixteenth) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 100 * kMiB);
  StopTheClock(g);
  const auto add_loose = [&g](std::size_t bytes) {  // loose from the start, so that live stays
    Hysteresis::slots_out(g, bytes);
    Hysteresis::loose_added(g, bytes);
    g.high = 100 * kMiB;
  };
  const std::size_t spare = Spare(100 * kMiB, 100 * kMiB);
  const std::size_t small = Hysteresis::kSmall;
  const std::size_t large = small + 1;
  const std::size_t few = Hysteresis::kFew;
  ASSERT_LT(spare / 16, few);
  add_loose(few);
  EXPECT_TRUE(Hysteresis::may_wait(g, small));
  add_loose(16);
  EXPECT_FALSE(Hysteresis::may_wait(g, small)) << "more than a few, and more than a sixteenth";
  g.floor = 16 * few;
  EXPECT_TRUE(Hysteresis::may_wait(g, small)) << "no more than a sixteenth";
  g.floor = Hysteresis::kFloor;
  add_loose(spare / 2 - few - 16);
  EXPECT_TRUE(Hysteresis::may_wait(g, large));
  add_loose(2);
  EXPECT_FALSE(Hysteresis::may_wait(g, large));
}

TEST(Hysteresis, WhatWasThereAtEachLookIsUnneeded) {
  Hysteresis::Global g;
  const auto looks = [&g](std::size_t dirty, std::size_t at_last) {
    for (unsigned look = 1; look < Hysteresis::kLooks; ++look) EXPECT_EQ(0u, Hysteresis::unneeded(g, dirty));
    return Hysteresis::unneeded(g, at_last);
  };
  EXPECT_EQ(60 * kMiB, looks(60 * kMiB + Hysteresis::kFloor, 90 * kMiB));
  EXPECT_EQ(20 * kMiB, looks(60 * kMiB, 20 * kMiB + Hysteresis::kFloor)) << "it was used once";
  EXPECT_EQ(0u, looks(60 * kMiB, Hysteresis::kFloor));
  EXPECT_EQ(50 * kMiB, looks(50 * kMiB + Hysteresis::kFloor, 50 * kMiB + Hysteresis::kFloor)) << "nothing is kept";
}

TEST(Hysteresis, APeakCountsForOneWindowAfterItsOwn) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 900 * kMiB);
  BeganWindowsAgo(g, 1);
  Hysteresis::slots_home(g, 100 * kMiB);
  EXPECT_EQ(900 * kMiB, Recent(g));
  BeganWindowsAgo(g, 1);
  Hysteresis::slots_home(g, 50 * kMiB);
  EXPECT_EQ(800 * kMiB, Recent(g)) << "what lived when the window began";
}

TEST(Hysteresis, AWindowInWhichNobodyLookedEndsToo) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 900 * kMiB);
  BeganWindowsAgo(g, 2);
  Hysteresis::slots_home(g, 600 * kMiB);
  EXPECT_EQ(300 * kMiB, Recent(g));
}

TEST(Hysteresis, TheFirstLookAtTheClockIsNoEnd) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 64 * kMiB);
  Hysteresis::slots_home(g, kMiB);
  EXPECT_EQ(64 * kMiB, Recent(g));
}

TEST(Hysteresis, IdleThePeakIsForgottenInTwoBeats) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 64 * kMiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 32 * kMiB);
  Hysteresis::rest(g, false);
  Hysteresis::rest(g, true);
  EXPECT_EQ(64 * kMiB, Recent(g));
  Hysteresis::rest(g, true);
  EXPECT_EQ(32 * kMiB, Recent(g));
}

TEST(Hysteresis, WhereAPurgerMayComeTheClockDecides) {
  Hysteresis::Global g;
  std::thread([] {}).join();
  ASSERT_FALSE(hz::os::never_had_threads());
  Hysteresis::slots_out(g, 800 * kMiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 800 * kMiB);
  EXPECT_EQ(800 * kMiB, Recent(g));
  g.has_purger = false;
  Hysteresis::slots_home(g, 0);
  Hysteresis::slots_out(g, kMiB);
  Hysteresis::slots_home(g, kMiB);
  EXPECT_EQ(792 * kMiB, Recent(g));
}

// 16 GiB are wanted back at once, or after the 33 s that they are worth.
template <class Retain>
void EmptyAndFillAgain(typename Retain::Global& g, std::uint64_t milliseconds) {
  Retain::slots_out(g, 16 * kGiB);
  Retain::slots_home(g, 16 * kGiB);
  g.forgot_at = hz::os::milliseconds() - milliseconds;
  Retain::slots_out(g, 16 * kGiB);
  StopTheClock(g);
  Retain::slots_home(g, 16 * kGiB);
}

TEST(Hysteresis, WhatIsWantedBackAtOnceIsKeptForAWhile) {
  Hysteresis::Global g;
  g.has_purger = false;
  EmptyAndFillAgain<Hysteresis>(g, 0);
  EXPECT_EQ(16 * kGiB, Recent(g));
  EXPECT_GE(g.hold_until, g.forgot_at + std::size_t{Hysteresis::kHold} * 16 * kGiB / Hysteresis::kSoon);
  g.hold_until = hz::os::milliseconds();
  Hysteresis::slots_out(g, 16 * kGiB);
  Hysteresis::slots_home(g, 16 * kGiB);
  EXPECT_EQ(0u, Recent(g)) << "the while is over";
}

TEST(Hysteresis, WhatIsWantedBackLaterWasRightToGo) {
  Hysteresis::Global g;
  g.has_purger = false;
  EmptyAndFillAgain<Hysteresis>(g, 40'000);
  EXPECT_EQ(0u, Recent(g));
}

TEST(Hysteresis, AHighPeakOfLongAgoHidesNoRegret) {
  Hysteresis::Global g;
  g.has_purger = false;
  Hysteresis::slots_out(g, 64 * kGiB);
  Hysteresis::slots_home(g, 64 * kGiB);
  g.forgot_at = hz::os::milliseconds() - 200'000;
  EmptyAndFillAgain<Hysteresis>(g, 0);
  EXPECT_EQ(16 * kGiB, Recent(g));
}

TEST(Hysteresis, LessThanHalfIsNoRegret) {
  Hysteresis::Global g;
  g.has_purger = false;
  Hysteresis::slots_out(g, 16 * kGiB);
  Hysteresis::slots_home(g, 16 * kGiB);
  Hysteresis::slots_out(g, 8 * kGiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 8 * kGiB);
  EXPECT_EQ(0u, Recent(g));
}

TEST(Hysteresis, AResidencyBudgetIsNotHeldUp) {
  hz::KeepRefill::Global g;
  g.has_purger = false;
  EmptyAndFillAgain<hz::KeepRefill>(g, 0);
  EXPECT_EQ(0u, std::max(g.high.load(), g.before.load()));
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
