// SPDX-License-Identifier: Apache-2.0
//
// The limits: limits in bytes from what was asked for and what the container has, and how often caches are
// recalled.
#include "box/source/memory_limits.hpp"

#include <gtest/gtest.h>

namespace hz_test {
namespace {

using hz::kGiB;
using hz::kKiB;
using hz::kMiB;
using hz::MemoryLimit;
using hz::MemoryLimits;
using hz::os::Container;

constexpr MemoryLimit kNothing;
constexpr MemoryLimit Bytes(std::size_t n) { return {.bytes = n, .percent = 0, .given = true}; }
constexpr MemoryLimit Percent(unsigned n) { return {.bytes = 0, .percent = n, .given = true}; }

struct Computed : MemoryLimits {
  Computed(MemoryLimit soft_limit, MemoryLimit hard_limit, Container container,
           std::size_t physical = 8 * kGiB) {
    asked_soft = soft_limit;
    asked_hard = hard_limit;
    compute(container, physical);
  }
};

TEST(MemoryLimits, LimitsNothingUnlessTold) {
  const MemoryLimits limits;
  EXPECT_EQ(MemoryLimits::kNone, limits.soft);
  EXPECT_FALSE(limits.recall_due(MemoryLimits::kNone - 1));
  const Computed asked(kNothing, kNothing, {});
  EXPECT_EQ(MemoryLimits::kNone, asked.soft);
  EXPECT_EQ(MemoryLimits::kNone, asked.hard);
  EXPECT_EQ(MemoryLimits::kNone, asked.thread_share.load());
}

TEST(MemoryLimits, BytesArePlain) {
  const Computed limits(Bytes(64 * kMiB), Bytes(128 * kMiB), {.memory = kGiB});
  EXPECT_EQ(64 * kMiB, limits.soft);
  EXPECT_EQ(128 * kMiB, limits.hard);
}

TEST(MemoryLimits, PercentOfTheContainerOrElseOfTheMachine) {
  const Computed inside(Percent(50), Percent(80), {.memory = 100 * kMiB});
  EXPECT_EQ(50 * kMiB, inside.soft);
  EXPECT_EQ(80 * kMiB, inside.hard);
  const Computed outside(Percent(50), Percent(100), {}, 1000 * kMiB);
  EXPECT_EQ(500 * kMiB, outside.soft);
  EXPECT_EQ(1000 * kMiB, outside.hard);
  const Computed nowhere(Percent(50), Percent(100), {}, 0);
  EXPECT_EQ(MemoryLimits::kNone, nowhere.soft);
  EXPECT_EQ(MemoryLimits::kNone, nowhere.hard);
}

TEST(MemoryLimits, TheDefaultFollowsTheContainer) {
  EXPECT_EQ(90 * kMiB, Computed(kNothing, kNothing, {.memory = 100 * kMiB}).soft);
  EXPECT_EQ(45 * kMiB, Computed(kNothing, kNothing, {.memory = 100 * kMiB, .memory_high = 50 * kMiB}).soft);
  EXPECT_EQ(90 * kMiB, Computed(kNothing, kNothing, {.memory = 100 * kMiB, .memory_high = 200 * kMiB}).soft);
  EXPECT_EQ(45 * kMiB, Computed(kNothing, kNothing, {.memory_high = 50 * kMiB}).soft);
  EXPECT_EQ(MemoryLimits::kNone, Computed(Bytes(0), kNothing, {.memory = 100 * kMiB}).soft)
      << "0 switches it off";
  EXPECT_EQ(MemoryLimits::kNone, Computed(kNothing, kNothing, {.memory = 100 * kMiB}).hard)
      << "never by itself";
}

TEST(MemoryLimits, SoftIsAtMostHard) {
  EXPECT_EQ(64 * kMiB, Computed(Bytes(100 * kMiB), Bytes(64 * kMiB), {}).soft);
  EXPECT_EQ(64 * kMiB, Computed(Bytes(0), Bytes(64 * kMiB), {}).soft);
  EXPECT_EQ(50 * kMiB, Computed(kNothing, Percent(50), {.memory = 100 * kMiB}).soft);
}

TEST(MemoryLimits, ThreadsShareTheContainer) {
  const auto share = [](Container container) {
    return Computed(kNothing, kNothing, container).thread_share.load();
  };
  EXPECT_EQ(8 * kMiB, share({.memory = 512 * kMiB, .cpus = 1}));
  EXPECT_EQ(MemoryLimits::kLeastThreadShare, share({.memory = 16 * kMiB, .cpus = 1}));
  EXPECT_LE(share({.memory = kGiB}), 16 * kMiB) << "without a quota, by the processors there are";
  EXPECT_GE(share({.memory = kGiB}), MemoryLimits::kLeastThreadShare);
}

TEST(MemoryLimits, TheContainerIsReadAtOnce) {
  MemoryLimits small;
  small.set(Bytes(4 * kMiB), kNothing);
  EXPECT_EQ(4 * kMiB, small.soft);
  MemoryLimits percent;
  percent.set(kNothing, Percent(50));
  EXPECT_NE(MemoryLimits::kNone, percent.hard);
  const Container here = hz::os::container("");
  MemoryLimits by_default;
  by_default.set(kNothing, kNothing);
  EXPECT_EQ(here.memory == 0 && here.memory_high == 0, by_default.soft == MemoryLimits::kNone);
  EXPECT_EQ(here.memory == 0, by_default.thread_share.load() == MemoryLimits::kNone);
}

TEST(MemoryLimits, RecallsAreBoundedByGrowth) {
  Computed limits(Bytes(64 * kMiB), kNothing, {});
  EXPECT_FALSE(limits.recall_due(64 * kMiB));
  EXPECT_TRUE(limits.recall_due(64 * kMiB + 1)) << "at once when the limit is met";
  limits.recalled(64 * kMiB);
  EXPECT_FALSE(limits.recall_due(68 * kMiB));
  EXPECT_TRUE(limits.recall_due(68 * kMiB + 1)) << "a sixteenth more";
  unsigned recalls = 0;
  for (std::size_t held = 64 * kMiB; held < 128 * kMiB; held += 64 * kKiB) {
    if (!limits.recall_due(held + 64 * kKiB)) continue;
    ++recalls;
    limits.recalled(held);
  }
  EXPECT_GE(recalls, 14u);
  EXPECT_LE(recalls, 16u);
}

TEST(MemoryLimits, WhatFallsMayBeRecalledSooner) {
  Computed limits(Bytes(64 * kMiB), kNothing, {});
  limits.recalled(200 * kMiB);
  limits.fell(80 * kMiB);
  limits.fell(90 * kMiB);
  EXPECT_FALSE(limits.recall_due(84 * kMiB));
  EXPECT_TRUE(limits.recall_due(84 * kMiB + 1));
  limits.fell(10 * kMiB);
  EXPECT_FALSE(limits.recall_due(64 * kMiB)) << "never below the limit";
  EXPECT_TRUE(limits.recall_due(64 * kMiB + 1));
}

TEST(MemoryLimits, OneIsSetLaterAndTheOtherStays) {
  Computed limits(kNothing, Bytes(512 * kMiB), {.memory = kGiB}, 8 * kGiB);
  EXPECT_EQ(512 * kMiB, limits.soft) << "no more than the hard one";
  limits.recalled(100 * kMiB);
  limits.set(Bytes(64 * kMiB), kNothing);
  EXPECT_EQ(64 * kMiB, limits.soft);
  EXPECT_EQ(512 * kMiB, limits.hard);
  EXPECT_TRUE(limits.recall_due(100 * kMiB)) << "what was recalled before counts no longer";
  limits.set(kNothing, Percent(50));
  EXPECT_EQ(kGiB / 100 * 50, limits.hard) << "of what there was at the start";
  EXPECT_EQ(64 * kMiB, limits.soft);
  limits.set(Bytes(0), Bytes(0));
  EXPECT_EQ(MemoryLimits::kNone, limits.soft);
  EXPECT_EQ(MemoryLimits::kNone, limits.hard);
  EXPECT_EQ(0u, limits.now().soft.bytes);
  limits.set(Percent(10), kNothing);
  EXPECT_EQ(kGiB / 100 * 10, limits.now().soft.bytes);
}

}  // namespace
}  // namespace hz_test
