// SPDX-License-Identifier: Apache-2.0
//
// Retention: the formulas of its header.
#include "box/retain/keep_refill.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "contract/retain_boxes.hpp"

namespace hz_test {
namespace {

using hz::Hysteresis;
using hz::kMiB;

// The header's words in figures.
constexpr std::size_t Spare(std::size_t recent, std::size_t live,
                            std::size_t percent = Hysteresis::kDefaultPercent) {
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
  Alone<Hysteresis> g;
  Hysteresis::set_purger(g, true);
  EXPECT_TRUE(g.may_wait(Hysteresis::kSmall));
  EXPECT_EQ(Hysteresis::kFloor, g.dirty_limit());
  EXPECT_EQ(Hysteresis::kFloor / 4 * 3, g.dirty_target());
}

TEST(Hysteresis, DirtyIsTheSpareThatLooseSlotsLeave) {
  Alone<Hysteresis> g;
  Hysteresis::set_purger(g, true);
  g.slots_out(200 * kMiB);
  EXPECT_EQ(Spare(200 * kMiB, 200 * kMiB), g.dirty_limit());
  EXPECT_EQ(g.dirty_limit() / 4 * 3, g.dirty_target());
  g.waiting_added(20 * kMiB);
  EXPECT_EQ(Spare(200 * kMiB, 180 * kMiB) - 20 * kMiB, g.dirty_limit());
}

TEST(Hysteresis, AQuarterOfTheSpareMayAlwaysBeDirty) {
  Alone<Hysteresis> g;
  Hysteresis::set_purger(g, true);
  g.slots_out(200 * kMiB);
  g.slots_out(1000 * kMiB);
  g.waiting_added(1000 * kMiB);
  g.high = 200 * kMiB;
  EXPECT_EQ(Spare(200 * kMiB, 200 * kMiB) / 4, g.dirty_limit());
}

TEST(Hysteresis, TheRecentPeakCountsWhileTheLoadSwings) {
  Alone<Hysteresis> g;
  Hysteresis::set_purger(g, true);
  g.slots_out(200 * kMiB);
  StopTheClock(g);
  g.slots_returned(150 * kMiB);
  EXPECT_EQ(Spare(200 * kMiB, 50 * kMiB), g.dirty_limit());
}

// --- nobody will look later: memory goes back as it is freed

TEST(Hysteresis, WithoutAPurgerLiveBytesAndNotTheirPeakCount) {
  Alone<Hysteresis> g;
  g.slots_out(800 * kMiB);
  StopTheClock(g);
  g.slots_returned(600 * kMiB);
  EXPECT_EQ(Hysteresis::kAloneFloor + 100 * kMiB, g.dirty_limit()) << "half of what lives";
  Hysteresis::set_purger(g, true);
  EXPECT_EQ(Spare(800 * kMiB, 200 * kMiB), g.dirty_limit());
  Hysteresis::set_purger(g, false);
  g.slots_returned(200 * kMiB);
  EXPECT_EQ(Hysteresis::kAloneFloor, g.dirty_limit());
}

TEST(Hysteresis, SlackIsManyFreeSlotsInSpans) {
  Alone<Hysteresis> g;
  g.span_used(64 * kMiB);
  g.slots_out(64 * kMiB - Hysteresis::kLeastLittle);
  EXPECT_FALSE(g.has_slack(0));
  EXPECT_TRUE(g.has_slack(kMiB)) << "so much of it lies in no span";
  g.slots_returned(64);
  EXPECT_TRUE(g.has_slack(0));
}

TEST(Hysteresis, WhatMayStayIsLittleBesideTheMostThatSpansWere) {
  Alone<Hysteresis> g;
  g.span_used(hz::kGiB);
  EXPECT_EQ(hz::kGiB / Hysteresis::kLittleShare, Hysteresis::little(g));
  g.span_retired(hz::kGiB - 64 * kMiB);
  EXPECT_EQ(hz::kGiB / Hysteresis::kLittleShare, Hysteresis::little(g));
}

TEST(Hysteresis, LiveIsNeitherWhatWaitsNorHalfOfWhatBinsMayHold) {
  Alone<Hysteresis> g;
  g.slots_out(100 * kMiB);
  g.waiting_added(10 * kMiB);
  g.bins_grown(30 * kMiB);
  g.bins_shrunk(10 * kMiB);
  EXPECT_EQ(80 * kMiB, g.live_bytes());
}

TEST(Hysteresis, AProcessThatWasAlwaysSmallHasNoSlack) {
  Alone<Hysteresis> g;
  g.span_used(64 * kMiB);
  g.slots_out(Hysteresis::kSmallProcess);
  g.slots_returned(Hysteresis::kSmallProcess);
  EXPECT_FALSE(g.has_slack(0));
  g.slots_out(Hysteresis::kSmallProcess + 1);
  EXPECT_TRUE(g.has_slack(0));
}

// However slowly it came about.
TEST(Hysteresis, SparseAreAFewSlotsInManySpans) {
  Alone<Hysteresis> g;
  g.span_used(96 * kMiB);
  g.span_used(32 * kMiB);
  g.span_retired(64 * kMiB);
  g.slots_out(2 * kMiB);
  EXPECT_FALSE(g.sparse(0));
  EXPECT_TRUE(g.sparse(kMiB)) << "so much of it lies in no span";
  g.slots_returned(64);
  EXPECT_TRUE(g.sparse(0));
}

// By what lies free in spans; huge blocks lie in none.
TEST(Hysteresis, ThreadsSpreadWhileLittleIsFreeInSpans) {
  Alone<Hysteresis> g;
  EXPECT_TRUE(g.may_spread(0));
  g.slots_out(320 * kMiB);
  g.span_used(320 * kMiB + 10 * kMiB + Hysteresis::kSpreadFreely);
  EXPECT_TRUE(g.may_spread(0));
  EXPECT_FALSE(g.may_spread(64 * kMiB)) << "of what is out, so much is in no span";
  g.span_used(64 * hz::kKiB);
  EXPECT_FALSE(g.may_spread(0));
  g.slots_returned(320 * kMiB);
  EXPECT_FALSE(g.may_spread(0));
}

// Growth pays for kReturns returns of all that there was, in spans or not; then time does.
TEST(Hysteresis, WithoutAPurgerWhatGoesBackIsPaidFor) {
  constexpr std::size_t kAll = 64 * hz::kGiB;  // so much that no time that a test takes pays for it
  Alone<Hysteresis> g;
  EXPECT_EQ(0u, Hysteresis::paid_for(g));
  g.span_used(kAll);
  g.slots_out(kAll / 4 * 3);
  g.slots_returned(kAll / 4 * 3);
  EXPECT_EQ(Hysteresis::kReturns * kAll, Hysteresis::paid_for(g)) << "of spans, however full they were";
  Hysteresis::purged(g, kAll);
  EXPECT_GE(Hysteresis::paid_for(g), (Hysteresis::kReturns - 1) * kAll);
  EXPECT_LT(Hysteresis::paid_for(g), Hysteresis::kReturns * kAll);
  Hysteresis::purged_before(g, kAll / 2);
  EXPECT_GE(Hysteresis::paid_for(g), (Hysteresis::kReturns - 1) * kAll + kAll / 2)
      << "it was none that one pays for";
  for (std::size_t i = 0; i < Hysteresis::kReturns; ++i) Hysteresis::purged(g, kAll);
  EXPECT_EQ(0u, Hysteresis::paid_for(g));
  g.span_used(kAll);
  EXPECT_GT(Hysteresis::paid_for(g), kAll) << "it has grown";
}

TEST(Hysteresis, TimePaysToo) {
  constexpr std::size_t kAll = 4 * kMiB;
  Alone<Hysteresis> g;
  g.slots_out(kAll);
  for (std::size_t i = 0; i < Hysteresis::kReturns; ++i) Hysteresis::purged(g, kAll);
  std::this_thread::sleep_for(
      std::chrono::microseconds(Hysteresis::kReturns * kAll / Hysteresis::kBytesPerMicrosecond));
  EXPECT_EQ(Hysteresis::kReturns * kAll, Hysteresis::paid_for(g))
      << "after a sleep all may be returned, and no more";
}

TEST(Hysteresis, APurgerPaysNothingAndAResidencyBudgetNeither) {
  Alone<Hysteresis> g;
  g.slots_out(kMiB);
  Hysteresis::set_purger(g, true);
  Hysteresis::purged(g, hz::kGiB);
  EXPECT_EQ(Hysteresis::kReturns * kMiB, Hysteresis::paid_for(g));
  Alone<hz::KeepRefill> budget;
  hz::KeepRefill::purged(budget, hz::kGiB);
  EXPECT_EQ(~std::size_t{0}, hz::KeepRefill::paid_for(budget));
}

TEST(Hysteresis, WaitingSlotsMayTakeHalfOfTheSpareAndManySmallOnesASixteenth) {
  Alone<Hysteresis> g;
  Hysteresis::set_purger(g, true);
  g.slots_out(100 * kMiB);
  StopTheClock(g);
  const auto add_waiting = [&g](std::size_t bytes) {  // waiting from the start, so that live stays
    g.slots_out(bytes);
    g.waiting_added(bytes);
    g.high = 100 * kMiB;
  };
  const std::size_t spare = Spare(100 * kMiB, 100 * kMiB);
  const std::size_t small = Hysteresis::kSmall;
  const std::size_t large = small + 1;
  const std::size_t few = Hysteresis::kFreelyWaiting;
  ASSERT_LT(spare / 16, few);
  add_waiting(few);
  EXPECT_TRUE(g.may_wait(small));
  add_waiting(16);
  EXPECT_FALSE(g.may_wait(small)) << "more than a few, and more than a sixteenth";
  g.floor = 16 * few;
  EXPECT_TRUE(g.may_wait(small)) << "no more than a sixteenth";
  g.floor = Hysteresis::kFloor;
  add_waiting(spare / 2 - few - 16);
  EXPECT_TRUE(g.may_wait(large));
  Hysteresis::set_purger(g, false);
  g.alone_floor = g.floor.load();
  EXPECT_FALSE(g.may_wait(large)) << "nobody would take it back, whatever its size";
  Hysteresis::set_purger(g, true);
  add_waiting(2);
  EXPECT_FALSE(g.may_wait(large));
}

TEST(Hysteresis, WhatWasThereAtEachLookIsUnneeded) {
  Alone<Hysteresis> g;
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
  EXPECT_EQ(0u, looks(0, 0).waiting);
  g.waiting_added(100);
  EXPECT_EQ(100u, looks(0, 0).waiting) << "there is no floor for what keeps spans";
}

TEST(Hysteresis, WhileAllAreIdleNobodyNeedsAnything) {
  Alone<Hysteresis> g;
  g.waiting_added(100);
  const hz::Unneeded unneeded = Hysteresis::unneeded(g, kMiB + Hysteresis::kAloneFloor, true);
  EXPECT_EQ(100u, unneeded.waiting);
  EXPECT_EQ(kMiB, unneeded.dirty);
}

TEST(Hysteresis, APeakCountsForOneWindowAfterItsOwn) {
  Alone<Hysteresis> g;
  g.slots_out(900 * kMiB);
  BeganWindowsAgo(g, 1);
  g.slots_returned(100 * kMiB);
  EXPECT_EQ(900 * kMiB, Recent(g));
  BeganWindowsAgo(g, 1);
  g.slots_returned(50 * kMiB);
  EXPECT_EQ(800 * kMiB, Recent(g)) << "what lived when the window began";
}

TEST(Hysteresis, AWindowInWhichNobodyLookedEndsToo) {
  Alone<Hysteresis> g;
  g.slots_out(900 * kMiB);
  BeganWindowsAgo(g, 2);
  g.slots_returned(600 * kMiB);
  EXPECT_EQ(300 * kMiB, Recent(g));
}

TEST(Hysteresis, TheFirstLookAtTheClockIsNoEnd) {
  Alone<Hysteresis> g;
  g.slots_out(64 * kMiB);
  g.slots_returned(kMiB);
  EXPECT_EQ(64 * kMiB, Recent(g));
}

TEST(Hysteresis, IdleThePeakIsForgottenInTwoBeats) {
  Alone<Hysteresis> g;
  g.slots_out(64 * kMiB);
  StopTheClock(g);
  g.slots_returned(32 * kMiB);
  Hysteresis::rest(g, false);
  Hysteresis::rest(g, true);
  EXPECT_EQ(64 * kMiB, Recent(g));
  Hysteresis::rest(g, true);
  EXPECT_EQ(32 * kMiB, Recent(g));
}

TEST(Hysteresis, PercentAndFloorAreSettings) {
  Alone<Hysteresis> g;
  Hysteresis::set(g, {.percent = 200, .floor = 7 * kMiB});
  Hysteresis::set(g, {});
  Hysteresis::set_purger(g, true);
  g.slots_out(100 * kMiB);
  EXPECT_EQ(7 * kMiB + 100 * kMiB / 100 * 200 - 100 * kMiB, g.dirty_limit());
}

}  // namespace
}  // namespace hz_test
