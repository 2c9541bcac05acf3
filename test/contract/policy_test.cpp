// SPDX-License-Identifier: Apache-2.0
//
// The contract of a policy: what the boundary relies on, whatever the numbers are.
#include "box/policy/contract.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "contract/policy_boxes.hpp"

namespace hz_test {
namespace {

template <class P>
class PolicyContract : public ::testing::Test {};
TYPED_TEST_SUITE(PolicyContract, PolicyBoxes);

TYPED_TEST(PolicyContract, BatchesMoveSomethingAndNoMoreThanThereIs) {
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    for (unsigned capacity = 0; capacity <= 1024; ++capacity) {
      for (const bool goes_on : {false, true}) {
        ASSERT_GE(TypeParam::refill_batch(bin, capacity, goes_on), 1u);
        ASSERT_LE(TypeParam::refill_batch(bin, capacity, goes_on), std::max(capacity, 1u));
        ASSERT_GE(TypeParam::flush_batch(bin, capacity, goes_on), 1u);
        ASSERT_LE(TypeParam::flush_batch(bin, capacity, goes_on), std::max(capacity, 1u));
      }
    }
  }
}

TYPED_TEST(PolicyContract, ABinGoesOnWhileItCrossesInOneDirection) {
  typename TypeParam::PerThread t;
  for (const bool comes : {true, false, true}) {
    EXPECT_FALSE(TypeParam::goes_on(t, 1, comes)) << "the first time";
    for (int again = 0; again < 8; ++again) EXPECT_TRUE(TypeParam::goes_on(t, 1, comes));
    EXPECT_FALSE(TypeParam::goes_on(t, 2, comes)) << "another class";
  }
}

TYPED_TEST(PolicyContract, CapacityStartsGrowsAndStops) {
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
    unsigned capacity = TypeParam::first_capacity(bin);
    ASSERT_GE(capacity, 1u);
    for (int step = 0; step < 64; ++step) {
      const unsigned next = TypeParam::next_capacity(bin, capacity);
      ASSERT_GE(next, capacity) << hz::bin_size(bin);
      capacity = next;
    }
    EXPECT_EQ(capacity, TypeParam::next_capacity(bin, capacity)) << "growth has an end";
    EXPECT_EQ(capacity, TypeParam::max_capacity(bin));
    EXPECT_LE(capacity * hz::bin_size(bin), 16 * hz::kMiB) << hz::bin_size(bin);
  }
}

// Frozen: as the user, the container and the line say, whichever is least; denials move it within the line's
// bounds.
TYPED_TEST(PolicyContract, TheBudgetOfAThreadKeepsItsBounds) {
  using PerThread = typename TypeParam::PerThread;
  PerThread t;
  const std::size_t usual = TypeParam::budget(t, {});
  EXPECT_GT(usual, 0u);
  EXPECT_EQ(hz::kMiB, TypeParam::budget(t, {.asked = hz::kMiB}));
  EXPECT_EQ(hz::kKiB, TypeParam::budget(t, {.share = hz::kKiB}));
  EXPECT_EQ(usual, TypeParam::budget(t, {.live = hz::kGiB, .shrinks = true}));
  EXPECT_EQ(8 * hz::kKiB, TypeParam::budget(t, {.live = 64 * hz::kKiB, .shrinks = true}))
      << "an eighth of what lives";
  EXPECT_EQ(std::min(usual, 3 * hz::kMiB / 2), TypeParam::budget(t, {.live = 64 * hz::kKiB}))
      << "or a little";
  EXPECT_EQ(8 * hz::kKiB, TypeParam::budget(t, {.live = 64 * hz::kKiB, .all_slots = 4 * hz::kMiB}))
      << "and less of slots of which each thread may keep one";
  std::uint64_t now = 0;
  const auto deny = [&](std::uint64_t every) {
    unsigned gave = 0;
    for (int i = 0; i < 20000; ++i) {
      const hz::Denial denial = TypeParam::denied(t);
      gave += denial != hz::Denial::kStays ? 1 : 0;
      now += every;
      if (denial == hz::Denial::kOneGivesAtThatTime) TypeParam::denied_often(t, now);
    }
    EXPECT_GT(gave, 0u);
    EXPECT_LT(gave, 20000u / 4) << "a bin that gives at each crossing is none";
  };
  deny(1);
  const std::size_t most = TypeParam::budget(t, {});
  EXPECT_GT(most, usual);
  EXPECT_LE(most, 64 * hz::kMiB);
  deny(1);
  EXPECT_EQ(most, TypeParam::budget(t, {})) << "there is a most";
  deny(1000);
  EXPECT_EQ(usual, TypeParam::budget(t, {}));
}

TYPED_TEST(PolicyContract, BinsAreLookedAtInTurn) {
  typename TypeParam::PerThread t;
  std::set<hz::Bin> looked, gave;
  for (unsigned i = 0; i < hz::kBins; ++i) {
    looked.insert(TypeParam::next_to_look_at(t));
    gave.insert(TypeParam::next_to_give(t));
  }
  EXPECT_EQ(hz::kBins - 1, looked.size());
  EXPECT_EQ(0u, looked.count(0));
  EXPECT_EQ(hz::kBins, gave.size());
  EXPECT_FALSE(TypeParam::is_unused(t, 1, 7));
  EXPECT_TRUE(TypeParam::is_unused(t, 1, 7));
  EXPECT_FALSE(TypeParam::is_unused(t, 1, 8));
}

// The rules alone are frozen for good; a policy around them learns when it is told to, and no sooner.
template <class P>
class LearningContract : public ::testing::Test {
 protected:
  ~LearningContract() override { P::set_learning(hz::Learning::kFrozen, {}, 1); }
};
TYPED_TEST_SUITE(LearningContract, LearningPolicies);

TYPED_TEST(LearningContract, FrozenDecidesNothing) {
  typename TypeParam::PerThread t;
  EXPECT_FALSE(TypeParam::watches());
  TypeParam::span_acquired(t, hz::scan_bin(1032));
  EXPECT_FALSE(TypeParam::notes_size(t));
  for (std::uint64_t now = 1; now < 1'000'000; now += 10) TypeParam::crossed(t, now, now + 1);
  EXPECT_EQ(hz::Bounds().percent, TypeParam::bounds(1'000'000).percent);
  EXPECT_EQ(0u, TypeParam::looks());
  TypeParam::holds(1'000'000, {.blocks = 1});
  EXPECT_EQ(0u, TypeParam::peak().all());
  EXPECT_EQ(100u, TypeParam::purger_rest(100, 1'000'000));
  EXPECT_EQ(TypeParam::Line::kThreadCacheBytes, TypeParam::budget(t, {}));
  EXPECT_FALSE(TypeParam::is_over(t, {}, hz::kGiB));
}

// With classes alone, a thread's next refill tells the size that a new span is for; nothing else is watched.
TYPED_TEST(LearningContract, SizesAreNotedAtNewSpans) {
  TypeParam::set_learning(hz::Learning::kSizes, {.classes = 0}, 1);
  typename TypeParam::PerThread t;
  const hz::Bin bin = hz::scan_bin(1032);
  const auto noted = [] { return TypeParam::watched().slots(1040 / hz::kMinAlign - 1); };
  const unsigned before = noted();
  EXPECT_FALSE(TypeParam::watches());
  EXPECT_FALSE(TypeParam::notes_size(t));
  TypeParam::span_acquired(t, bin);
  EXPECT_TRUE(TypeParam::notes_size(t));
  TypeParam::refilled(t, bin, 1032, 1);
  EXPECT_FALSE(TypeParam::notes_size(t));
  EXPECT_EQ(before + 1, noted());
}

// Whatever the times: never more than frozen, and never less than the bounds allow.
TYPED_TEST(LearningContract, LearningStaysWithinItsBounds) {
  const hz::Cap cap = {.classes = 2, .cache = 128 * hz::kKiB, .retain = 110, .looks = 5, .busy = 30};
  TypeParam::set_learning(hz::Learning::kLearn, cap, 2);
  std::mt19937 random(3);
  typename TypeParam::PerThread t;
  std::uint64_t now = 1;
  unsigned tight = 0, roomy = 0, halved = 0;
  for (int step = 0; step < 200000; ++step) {
    const std::uint64_t apart = step / 20000 % 2 == 0 ? 20 : 2000;  // busy, and then calm
    now += 1 + random() % apart;
    if (!TypeParam::is_timed(t) || !TypeParam::crossed(t, now - 1, now)) continue;
    const hz::Bounds bounds = TypeParam::bounds(now);
    const bool is_tight = bounds.percent != hz::Bounds().percent;
    ++(is_tight ? tight : roomy);
    EXPECT_TRUE(!is_tight || bounds.percent == cap.retain);
    EXPECT_EQ(is_tight ? cap.looks : 0, TypeParam::looks());
    EXPECT_EQ(is_tight, TypeParam::decisions().tight);
    EXPECT_LE(TypeParam::budget(t, {}), TypeParam::Line::kThreadCacheBytes);
    EXPECT_GE(TypeParam::budget(t, {}), cap.cache);
    EXPECT_EQ(hz::kGiB, TypeParam::budget(t, {.asked = hz::kGiB})) << "what the user says goes before it";
    EXPECT_FALSE(TypeParam::is_over(t, {.asked = hz::kGiB}, hz::kGiB));
    EXPECT_TRUE(TypeParam::is_over(t, {.asked = hz::kMiB}, hz::kMiB + 1)) << "less was asked for since";
    EXPECT_EQ(TypeParam::budget(t, {}) < TypeParam::Line::kThreadCacheBytes,
              TypeParam::is_over(t, {}, TypeParam::Line::kThreadCacheBytes));
    halved += TypeParam::budget(t, {}) == cap.cache ? 1 : 0;
    TypeParam::holds(now, {.blocks = 9 * hz::kMiB, .cached = random() % hz::kMiB});
  }
  EXPECT_GT(tight, 100u);
  EXPECT_GT(roomy, 100u);
  EXPECT_GT(halved, 100u);
  EXPECT_GT(TypeParam::decisions().turns, 4u);
  EXPECT_GT(TypeParam::peak().all(), 9 * hz::kMiB + 9 * hz::kMiB / 10);
  EXPECT_LT(TypeParam::peak().all(), 10 * hz::kMiB);
}

// A tick that took long is followed by a rest that makes it rare, but not for ever.
TYPED_TEST(LearningContract, ThePurgerTakesItsShareOfAProcessor) {
  TypeParam::set_learning(hz::Learning::kLearn, {.purger = 16}, 1);
  EXPECT_EQ(100u, TypeParam::purger_rest(100, 0));
  EXPECT_EQ(100u, TypeParam::purger_rest(100, 1500)) << "1.5 ms in 100 are less than a 64th";
  EXPECT_EQ(320u, TypeParam::purger_rest(100, 5000));
  EXPECT_EQ(800u, TypeParam::purger_rest(100, 10'000'000));
  TypeParam::set_learning(hz::Learning::kLearn, {.purger = 0}, 1);
  EXPECT_EQ(100u, TypeParam::purger_rest(100, 10'000'000));
}

TYPED_TEST(LearningContract, PresetsAreKnownByName) {
  for (const char* name : {"small", "remote", "fast", "balanced"}) {
    EXPECT_TRUE(TypeParam::fix(name));
    EXPECT_STREQ(name, TypeParam::decisions().preset);
  }
  EXPECT_FALSE(TypeParam::fix("banana"));
  EXPECT_STREQ("balanced", TypeParam::decisions().preset);
}

// What is tried and is far dearer is put away soon, also where one thread alone is at work. Of a line whose
// policy no other test has told anything.
struct TriedLine : PolicyOf {};
TEST(Learned, ADearTrialIsBrokenOff) {
  using P = hz::Learned<hz::Frozen<TriedLine>>;
  P::set_learning(hz::Learning::kLearn, {}, 1);
  const std::string_view leader = P::decisions().preset;
  P::PerThread t;
  std::uint64_t now = 1, trial_began = 0, longest = 0;
  unsigned trials = 0;
  while (now < 60'000'000) {
    const bool tried = P::decisions().preset != leader;
    if (tried && trial_began == 0) trial_began = now, ++trials;
    if (!tried && trial_began != 0) {
      longest = std::max(longest, now - trial_began);
      trial_began = 0;
    }
    now += tried ? 20 : 80;  // 100 of 1,024 parts of the time, and 400
    if (!P::is_timed(t) || !P::crossed(t, now - 8, now)) continue;
    (void)P::bounds(now);
    P::holds(now, {.blocks = hz::kMiB});
  }
  EXPECT_GT(trials, 2u);
  EXPECT_LT(longest, hz::Tempo::kRound / 2) << "a fraction of a round";
  EXPECT_EQ(0u, P::decisions().moves);
}

}  // namespace
}  // namespace hz_test
