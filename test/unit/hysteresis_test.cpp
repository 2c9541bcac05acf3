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
  g.slots_returned(150 * kMiB, 64);
  EXPECT_EQ(Spare(200 * kMiB, 50 * kMiB), g.dirty_limit());
}

// --- nobody will look later: memory goes back as it is freed

TEST(Hysteresis, WithoutAPurgerLiveBytesAndNotTheirPeakCount) {
  Alone<Hysteresis> g;
  g.slots_out(800 * kMiB);
  StopTheClock(g);
  g.slots_returned(600 * kMiB, 64);
  EXPECT_EQ(Hysteresis::kAloneFloor + 100 * kMiB, g.dirty_limit()) << "half of what lives";
  Hysteresis::set_purger(g, true);
  EXPECT_EQ(Spare(800 * kMiB, 200 * kMiB), g.dirty_limit());
  Hysteresis::set_purger(g, false);
  g.slots_returned(200 * kMiB, 64);
  EXPECT_EQ(Hysteresis::kAloneFloor, g.dirty_limit());
}

TEST(Hysteresis, WithoutAPurgerTwoOfTheLargestBlocksMayStay) {
  Alone<Hysteresis> g;
  g.slots_out(100 * kMiB);
  g.slots_returned(100 * kMiB, 64);
  const auto after_one_of = [&g](std::size_t block) {
    g.slots_out(block);
    g.slots_returned(block, block);
    return g.dirty_limit() - Hysteresis::kAloneFloor;
  };
  EXPECT_EQ(0u, after_one_of(Hysteresis::kLeastBlock - 1));
  EXPECT_EQ(16 * kMiB, after_one_of(8 * kMiB));
  EXPECT_EQ(16 * kMiB, after_one_of(kMiB)) << "the largest";
  EXPECT_EQ(16 * kMiB, after_one_of(Hysteresis::kMostBlock + 1)) << "this one is too large";
  EXPECT_EQ(2 * Hysteresis::kMostBlock, after_one_of(Hysteresis::kMostBlock));
}

TEST(Hysteresis, AResidencyBudgetKeepsNoBlocks) {
  Alone<hz::KeepRefill> g;
  g.slots_out(8 * kMiB);
  g.slots_returned(8 * kMiB, 8 * kMiB);
  EXPECT_EQ(hz::KeepRefill::kFloor, g.dirty_limit());
}

TEST(Hysteresis, EmptiedIsBelowAnEighthOfTheRecentPeakWhateverBinsMayHold) {
  Alone<Hysteresis> g;
  g.slots_out(800 * kMiB);
  StopTheClock(g);
  g.bins_grown(50 * kMiB);
  g.bins_shrunk(10 * kMiB);
  g.slots_returned(660 * kMiB, 64);
  EXPECT_FALSE(g.emptied()) << "an eighth and the bins are left";
  g.slots_returned(kMiB, 64);
  EXPECT_TRUE(g.emptied());
  EXPECT_FALSE(g.may_wait(64)) << "nobody would put it back";
  EXPECT_TRUE(g.must_go());
  Hysteresis::set_purger(g, true);
  EXPECT_TRUE(g.may_wait(64));
}

// However slowly it came about.
TEST(Hysteresis, EmptiedAreAlsoAFewLiveBytesInManySpans) {
  Alone<Hysteresis> g;
  g.span_used(96 * kMiB);
  g.span_used(32 * kMiB);
  g.span_retired(64 * kMiB);
  g.slots_out(2 * kMiB);
  EXPECT_FALSE(g.emptied());
  EXPECT_FALSE(g.sparse(0));
  EXPECT_TRUE(g.sparse(kMiB)) << "so much of it lies in no span";
  g.slots_returned(64, 64);
  EXPECT_TRUE(g.emptied());
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
  g.slots_returned(320 * kMiB, 64);
  EXPECT_FALSE(g.may_spread(0));
}

TEST(Hysteresis, ASmallProcessIsNeverEmptied) {
  Alone<Hysteresis> g;
  g.span_used(Hysteresis::kFewSpans);
  g.slots_out(Hysteresis::kSmallProcess);
  StopTheClock(g);
  g.slots_returned(Hysteresis::kSmallProcess, 64);
  EXPECT_FALSE(g.emptied());
}

// All at once if it was there for a while, and a part in advance; not again before it can have been written
// once more.
TEST(Hysteresis, AloneGivesBackNoFasterThanPagesAreWritten) {
  constexpr std::size_t kAll = hz::kGiB;  // some 400 ms
  Alone<Hysteresis> g;
  g.slots_out(kAll);
  g.slots_returned(kAll, 64);
  constexpr unsigned kParts = Hysteresis::kInAdvance;
  for (unsigned part = 0; part < kParts + 1; ++part) {
    EXPECT_TRUE(Hysteresis::may_purge(g)) << part;
    Hysteresis::purged(g, kAll / kParts);
  }
  Hysteresis::purged(g, kAll / kParts);
  EXPECT_FALSE(Hysteresis::may_purge(g));
  Hysteresis::set_purger(g, true);
  EXPECT_TRUE(Hysteresis::may_purge(g)) << "a purger looks after it";
}

// Pages go back by the span, and spans are larger than what was in them.
TEST(Hysteresis, AloneAllSpansMayGoBackAtOnceHoweverFullTheyWere) {
  constexpr std::size_t kSpans = hz::kGiB;
  Alone<Hysteresis> g;
  g.span_used(kSpans);
  g.slots_out(kSpans / 4 * 3);
  g.slots_returned(kSpans / 4 * 3, 64);
  for (unsigned part = 0; part < 8; ++part) {
    EXPECT_TRUE(Hysteresis::may_purge(g)) << part;
    g.span_retired(kSpans / 8);
    Hysteresis::purged(g, kSpans / 8);
  }
  Hysteresis::purged(g, kSpans / Hysteresis::kInAdvance);
  Hysteresis::purged(g, kSpans / 8);
  EXPECT_FALSE(Hysteresis::may_purge(g));
}

// Slow enough for the rate, but again and again.
TEST(Hysteresis, WhoEmptiesItselfADozenTimesInARowIsHeldOffThen) {
  Alone<Hysteresis> g;
  constexpr std::size_t kAll = 64 * kMiB;
  const auto wait = std::chrono::microseconds(kAll / Hysteresis::kBytesPerMicrosecond + 2000);
  unsigned times = 0;
  for (; times < 100 && Hysteresis::may_purge(g); ++times) {
    g.slots_out(kAll);
    g.slots_returned(kAll, 64);
    Hysteresis::purged(g, kAll);
    std::this_thread::sleep_for(wait);
  }
  EXPECT_GE(times, Hysteresis::kTurns);
  EXPECT_LT(times, 100u);
  std::this_thread::sleep_for(std::chrono::microseconds(kAll / Hysteresis::kTurningBytesPerMicrosecond));
  EXPECT_TRUE(Hysteresis::may_purge(g)) << "later";
}

// What it did in its smaller days is little beside what it has now.
TEST(Hysteresis, WhoHasGrownMayGiveBackAllOfItWhateverItTurnedOverBefore) {
  Alone<Hysteresis> g;
  constexpr std::size_t kBefore = 4 * kMiB, kNow = 256 * kMiB;
  g.slots_out(kBefore);
  g.slots_returned(kBefore, 64);
  for (unsigned times = 0; times < 100 && Hysteresis::may_purge(g); ++times) {
    Hysteresis::purged(g, kBefore);
    std::this_thread::sleep_for(std::chrono::microseconds(kBefore / Hysteresis::kBytesPerMicrosecond + 500));
  }
  g.slots_out(kNow);
  std::this_thread::sleep_for(std::chrono::microseconds(kNow / Hysteresis::kBytesPerMicrosecond));
  g.slots_returned(kNow, 64);
  for (unsigned part = 0; part < 8; ++part) {
    EXPECT_TRUE(Hysteresis::may_purge(g)) << part;
    Hysteresis::purged(g, kNow / 8);
  }
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
  g.slots_returned(100 * kMiB, 64);
  EXPECT_EQ(900 * kMiB, Recent(g));
  BeganWindowsAgo(g, 1);
  g.slots_returned(50 * kMiB, 64);
  EXPECT_EQ(800 * kMiB, Recent(g)) << "what lived when the window began";
}

TEST(Hysteresis, AWindowInWhichNobodyLookedEndsToo) {
  Alone<Hysteresis> g;
  g.slots_out(900 * kMiB);
  BeganWindowsAgo(g, 2);
  g.slots_returned(600 * kMiB, 64);
  EXPECT_EQ(300 * kMiB, Recent(g));
}

TEST(Hysteresis, TheFirstLookAtTheClockIsNoEnd) {
  Alone<Hysteresis> g;
  g.slots_out(64 * kMiB);
  g.slots_returned(kMiB, 64);
  EXPECT_EQ(64 * kMiB, Recent(g));
}

TEST(Hysteresis, IdleThePeakIsForgottenInTwoBeats) {
  Alone<Hysteresis> g;
  g.slots_out(64 * kMiB);
  StopTheClock(g);
  g.slots_returned(32 * kMiB, 64);
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
