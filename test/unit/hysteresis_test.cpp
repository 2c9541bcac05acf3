// SPDX-License-Identifier: Apache-2.0
//
// Retention: the formulas of its header.
#include "box/retain/keep_refill.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace hz_test {
namespace {

using hz::Hysteresis;
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
  Hysteresis::attend(g, true);
  EXPECT_TRUE(Hysteresis::may_wait(g, Hysteresis::kSmall));
  EXPECT_EQ(Hysteresis::kFloor, Hysteresis::dirty_limit(g));
  EXPECT_EQ(Hysteresis::kFloor / 4 * 3, Hysteresis::dirty_target(g));
}

TEST(Hysteresis, DirtyIsTheSpareThatLooseSlotsLeave) {
  Hysteresis::Global g;
  Hysteresis::attend(g, true);
  Hysteresis::slots_out(g, 200 * kMiB);
  EXPECT_EQ(Spare(200 * kMiB, 200 * kMiB), Hysteresis::dirty_limit(g));
  EXPECT_EQ(Hysteresis::dirty_limit(g) / 4 * 3, Hysteresis::dirty_target(g));
  Hysteresis::loose_added(g, 20 * kMiB);
  EXPECT_EQ(Spare(200 * kMiB, 180 * kMiB) - 20 * kMiB, Hysteresis::dirty_limit(g));
}

TEST(Hysteresis, AQuarterOfTheSpareMayAlwaysBeDirty) {
  Hysteresis::Global g;
  Hysteresis::attend(g, true);
  Hysteresis::slots_out(g, 200 * kMiB);
  Hysteresis::slots_out(g, 1000 * kMiB);
  Hysteresis::loose_added(g, 1000 * kMiB);
  g.high = 200 * kMiB;
  EXPECT_EQ(Spare(200 * kMiB, 200 * kMiB) / 4, Hysteresis::dirty_limit(g));
}

TEST(Hysteresis, TheRecentPeakCountsWhileTheLoadSwings) {
  Hysteresis::Global g;
  Hysteresis::attend(g, true);
  Hysteresis::slots_out(g, 200 * kMiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 150 * kMiB, 64);
  EXPECT_EQ(Spare(200 * kMiB, 50 * kMiB), Hysteresis::dirty_limit(g));
}

// --- nobody will look later: memory goes back as it is freed

TEST(Hysteresis, WithoutAPurgerLiveBytesAndNotTheirPeakCount) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 800 * kMiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 600 * kMiB, 64);
  EXPECT_EQ(Hysteresis::kAloneFloor + 100 * kMiB, Hysteresis::dirty_limit(g)) << "half of what lives";
  Hysteresis::attend(g, true);
  EXPECT_EQ(Spare(800 * kMiB, 200 * kMiB), Hysteresis::dirty_limit(g));
  Hysteresis::attend(g, false);
  Hysteresis::slots_home(g, 200 * kMiB, 64);
  EXPECT_EQ(Hysteresis::kAloneFloor, Hysteresis::dirty_limit(g));
}

TEST(Hysteresis, WithoutAPurgerTwoOfTheLargestBlocksMayStay) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 100 * kMiB);
  Hysteresis::slots_home(g, 100 * kMiB, 64);
  const auto after_one_of = [&g](std::size_t block) {
    Hysteresis::slots_out(g, block);
    Hysteresis::slots_home(g, block, block);
    return Hysteresis::dirty_limit(g) - Hysteresis::kAloneFloor;
  };
  EXPECT_EQ(0u, after_one_of(Hysteresis::kLeastBlock - 1));
  EXPECT_EQ(16 * kMiB, after_one_of(8 * kMiB));
  EXPECT_EQ(16 * kMiB, after_one_of(kMiB)) << "the largest";
  EXPECT_EQ(16 * kMiB, after_one_of(Hysteresis::kMostBlock + 1)) << "this one is too large";
  EXPECT_EQ(2 * Hysteresis::kMostBlock, after_one_of(Hysteresis::kMostBlock));
}

TEST(Hysteresis, AResidencyBudgetKeepsNoBlocks) {
  hz::KeepRefill::Global g;
  hz::KeepRefill::slots_out(g, 8 * kMiB);
  hz::KeepRefill::slots_home(g, 8 * kMiB, 8 * kMiB);
  EXPECT_EQ(hz::KeepRefill::kFloor, hz::KeepRefill::dirty_limit(g));
}

TEST(Hysteresis, EmptiedIsBelowAnEighthOfTheRecentPeakWhateverBinsMayHold) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 800 * kMiB);
  StopTheClock(g);
  Hysteresis::bins_grown(g, 50 * kMiB);
  Hysteresis::bins_shrunk(g, 10 * kMiB);
  Hysteresis::slots_home(g, 660 * kMiB, 64);
  EXPECT_FALSE(Hysteresis::emptied(g)) << "an eighth and the bins are left";
  Hysteresis::slots_home(g, kMiB, 64);
  EXPECT_TRUE(Hysteresis::emptied(g));
  EXPECT_FALSE(Hysteresis::may_wait(g, 64)) << "nobody would send it home";
  EXPECT_TRUE(Hysteresis::must_go(g));
  Hysteresis::attend(g, true);
  EXPECT_TRUE(Hysteresis::may_wait(g, 64));
}

// However slowly it came about.
TEST(Hysteresis, EmptiedAreAlsoAFewLiveBytesInManySpans) {
  Hysteresis::Global g;
  Hysteresis::span_used(g, 96 * kMiB);
  Hysteresis::span_used(g, 32 * kMiB);
  Hysteresis::span_retired(g, 64 * kMiB);
  Hysteresis::slots_out(g, 2 * kMiB);
  EXPECT_FALSE(Hysteresis::emptied(g));
  Hysteresis::slots_home(g, 64, 64);
  EXPECT_TRUE(Hysteresis::emptied(g));
}

TEST(Hysteresis, ASmallProcessIsNeverEmptied) {
  Hysteresis::Global g;
  Hysteresis::span_used(g, Hysteresis::kFewSpans);
  Hysteresis::slots_out(g, Hysteresis::kSmallProcess);
  StopTheClock(g);
  Hysteresis::slots_home(g, Hysteresis::kSmallProcess, 64);
  EXPECT_FALSE(Hysteresis::emptied(g));
}

// All at once if it was there for a while; not again before it can have been written once more.
TEST(Hysteresis, AloneGivesBackNoFasterThanPagesAreWritten) {
  constexpr std::size_t kAll = hz::kGiB;  // some 400 ms
  Hysteresis::Global g;
  Hysteresis::slots_out(g, kAll);
  Hysteresis::slots_home(g, kAll, 64);
  for (unsigned part = 0; part < 4; ++part) {
    EXPECT_TRUE(Hysteresis::may_purge(g)) << part;
    Hysteresis::purged(g, kAll / 4);
  }
  Hysteresis::purged(g, kAll / 4);
  EXPECT_FALSE(Hysteresis::may_purge(g));
  Hysteresis::attend(g, true);
  EXPECT_TRUE(Hysteresis::may_purge(g)) << "a purger looks after it";
}

TEST(Hysteresis, LooseSlotsMayTakeHalfOfTheSpareAndManySmallOnesASixteenth) {
  Hysteresis::Global g;
  Hysteresis::attend(g, true);
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
  constexpr std::size_t kFloor = Hysteresis::kAloneFloor;
  const auto looks = [&g](std::size_t dirty, std::size_t at_last) {
    for (unsigned look = 1; look < Hysteresis::kLooks; ++look)
      EXPECT_EQ(0u, Hysteresis::unneeded(g, dirty, false).dirty);
    return Hysteresis::unneeded(g, at_last, false);
  };
  EXPECT_EQ(60 * kMiB, looks(60 * kMiB + kFloor, 90 * kMiB).dirty);
  EXPECT_EQ(20 * kMiB, looks(60 * kMiB, 20 * kMiB + kFloor).dirty) << "it was used once";
  EXPECT_EQ(0u, looks(60 * kMiB, kFloor).dirty);
  EXPECT_EQ(50 * kMiB, looks(50 * kMiB + kFloor, 50 * kMiB + kFloor).dirty) << "nothing is kept";
  EXPECT_EQ(0u, looks(0, 0).loose);
  Hysteresis::loose_added(g, 100);
  EXPECT_EQ(100u, looks(0, 0).loose) << "there is no floor for what keeps spans";
}

TEST(Hysteresis, WhileAllAreIdleNobodyNeedsAnything) {
  Hysteresis::Global g;
  Hysteresis::loose_added(g, 100);
  const hz::Unneeded unneeded = Hysteresis::unneeded(g, kMiB + Hysteresis::kAloneFloor, true);
  EXPECT_EQ(100u, unneeded.loose);
  EXPECT_EQ(kMiB, unneeded.dirty);
}

TEST(Hysteresis, APeakCountsForOneWindowAfterItsOwn) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 900 * kMiB);
  BeganWindowsAgo(g, 1);
  Hysteresis::slots_home(g, 100 * kMiB, 64);
  EXPECT_EQ(900 * kMiB, Recent(g));
  BeganWindowsAgo(g, 1);
  Hysteresis::slots_home(g, 50 * kMiB, 64);
  EXPECT_EQ(800 * kMiB, Recent(g)) << "what lived when the window began";
}

TEST(Hysteresis, AWindowInWhichNobodyLookedEndsToo) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 900 * kMiB);
  BeganWindowsAgo(g, 2);
  Hysteresis::slots_home(g, 600 * kMiB, 64);
  EXPECT_EQ(300 * kMiB, Recent(g));
}

TEST(Hysteresis, TheFirstLookAtTheClockIsNoEnd) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 64 * kMiB);
  Hysteresis::slots_home(g, kMiB, 64);
  EXPECT_EQ(64 * kMiB, Recent(g));
}

TEST(Hysteresis, IdleThePeakIsForgottenInTwoBeats) {
  Hysteresis::Global g;
  Hysteresis::slots_out(g, 64 * kMiB);
  StopTheClock(g);
  Hysteresis::slots_home(g, 32 * kMiB, 64);
  Hysteresis::rest(g, false);
  Hysteresis::rest(g, true);
  EXPECT_EQ(64 * kMiB, Recent(g));
  Hysteresis::rest(g, true);
  EXPECT_EQ(32 * kMiB, Recent(g));
}

TEST(Hysteresis, PercentAndFloorAreSettings) {
  Hysteresis::Global g;
  Hysteresis::set(g, {.percent = 200, .floor = 7 * kMiB});
  Hysteresis::set(g, {});
  Hysteresis::attend(g, true);
  Hysteresis::slots_out(g, 100 * kMiB);
  EXPECT_EQ(7 * kMiB + 100 * kMiB / 100 * 200 - 100 * kMiB, Hysteresis::dirty_limit(g));
}

}  // namespace
}  // namespace hz_test
