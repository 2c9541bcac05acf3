// SPDX-License-Identifier: Apache-2.0
//
// The ration: limits in bytes from what was asked for and what the container has, and how often caches are recalled.
#include "box/source/ration.hpp"

#include <gtest/gtest.h>

namespace hz_test {
namespace {

using hz::kGiB;
using hz::kKiB;
using hz::kMiB;
using hz::MemoryLimit;
using hz::Ration;
using hz::os::Container;

constexpr MemoryLimit kNothing;
constexpr MemoryLimit Bytes(std::size_t n) { return {.bytes = n, .percent = 0, .given = true}; }
constexpr MemoryLimit Percent(unsigned n) { return {.bytes = 0, .percent = n, .given = true}; }

struct Settled : Ration {
  Settled(MemoryLimit soft_limit, MemoryLimit hard_limit, Container container, std::size_t physical = 8 * kGiB) {
    asked_soft = soft_limit;
    asked_hard = hard_limit;
    settle(container, physical);
  }
};

TEST(Ration, LimitsNothingUnlessTold) {
  const Ration ration;
  EXPECT_EQ(Ration::kNone, ration.soft);
  EXPECT_FALSE(ration.recall_due(Ration::kNone - 1));
  const Settled told(kNothing, kNothing, {});
  EXPECT_EQ(Ration::kNone, told.soft);
  EXPECT_EQ(Ration::kNone, told.hard);
  EXPECT_EQ(Ration::kNone, told.thread_share.load());
}

TEST(Ration, BytesArePlain) {
  const Settled ration(Bytes(64 * kMiB), Bytes(128 * kMiB), {.memory = kGiB});
  EXPECT_EQ(64 * kMiB, ration.soft);
  EXPECT_EQ(128 * kMiB, ration.hard);
}

TEST(Ration, PercentOfTheContainerOrElseOfTheMachine) {
  const Settled inside(Percent(50), Percent(80), {.memory = 100 * kMiB});
  EXPECT_EQ(50 * kMiB, inside.soft);
  EXPECT_EQ(80 * kMiB, inside.hard);
  const Settled outside(Percent(50), Percent(100), {}, 1000 * kMiB);
  EXPECT_EQ(500 * kMiB, outside.soft);
  EXPECT_EQ(1000 * kMiB, outside.hard);
  const Settled nowhere(Percent(50), Percent(100), {}, 0);
  EXPECT_EQ(Ration::kNone, nowhere.soft);
  EXPECT_EQ(Ration::kNone, nowhere.hard);
}

TEST(Ration, TheDefaultFollowsTheContainer) {
  EXPECT_EQ(90 * kMiB, Settled(kNothing, kNothing, {.memory = 100 * kMiB}).soft);
  EXPECT_EQ(45 * kMiB, Settled(kNothing, kNothing, {.memory = 100 * kMiB, .memory_high = 50 * kMiB}).soft);
  EXPECT_EQ(90 * kMiB, Settled(kNothing, kNothing, {.memory = 100 * kMiB, .memory_high = 200 * kMiB}).soft);
  EXPECT_EQ(45 * kMiB, Settled(kNothing, kNothing, {.memory_high = 50 * kMiB}).soft);
  EXPECT_EQ(Ration::kNone, Settled(Bytes(0), kNothing, {.memory = 100 * kMiB}).soft) << "0 switches it off";
  EXPECT_EQ(Ration::kNone, Settled(kNothing, kNothing, {.memory = 100 * kMiB}).hard) << "never by itself";
}

TEST(Ration, SoftIsAtMostHard) {
  EXPECT_EQ(64 * kMiB, Settled(Bytes(100 * kMiB), Bytes(64 * kMiB), {}).soft);
  EXPECT_EQ(64 * kMiB, Settled(Bytes(0), Bytes(64 * kMiB), {}).soft);
  EXPECT_EQ(50 * kMiB, Settled(kNothing, Percent(50), {.memory = 100 * kMiB}).soft);
}

TEST(Ration, ThreadsShareTheContainer) {
  const auto share = [](Container container) { return Settled(kNothing, kNothing, container).thread_share.load(); };
  EXPECT_EQ(8 * kMiB, share({.memory = 512 * kMiB, .cpus = 1}));
  EXPECT_EQ(Ration::kLeastThreadShare, share({.memory = 16 * kMiB, .cpus = 1}));
  EXPECT_LE(share({.memory = kGiB}), 16 * kMiB) << "without a quota, by the processors there are";
  EXPECT_GE(share({.memory = kGiB}), Ration::kLeastThreadShare);
}

TEST(Ration, TheContainerIsReadAtOnce) {
  Ration small;
  small.set(Bytes(4 * kMiB), kNothing);
  EXPECT_EQ(4 * kMiB, small.soft);
  Ration percent;
  percent.set(kNothing, Percent(50));
  EXPECT_NE(Ration::kNone, percent.hard);
  const Container here = hz::os::container("");
  Ration by_default;
  by_default.set(kNothing, kNothing);
  EXPECT_EQ(here.memory == 0 && here.memory_high == 0, by_default.soft == Ration::kNone);
  EXPECT_EQ(here.memory == 0, by_default.thread_share.load() == Ration::kNone);
}

TEST(Ration, RecallsAreBoundedByGrowth) {
  Settled ration(Bytes(64 * kMiB), kNothing, {});
  EXPECT_FALSE(ration.recall_due(64 * kMiB));
  EXPECT_TRUE(ration.recall_due(64 * kMiB + 1)) << "at once when the limit is met";
  ration.recalled(64 * kMiB);
  EXPECT_FALSE(ration.recall_due(68 * kMiB));
  EXPECT_TRUE(ration.recall_due(68 * kMiB + 1)) << "a sixteenth more";
  unsigned recalls = 0;
  for (std::size_t held = 64 * kMiB; held < 128 * kMiB; held += 64 * kKiB) {
    if (!ration.recall_due(held + 64 * kKiB)) continue;
    ++recalls;
    ration.recalled(held);
  }
  EXPECT_GE(recalls, 14u);
  EXPECT_LE(recalls, 16u);
}

TEST(Ration, WhatFallsMayBeRecalledSooner) {
  Settled ration(Bytes(64 * kMiB), kNothing, {});
  ration.recalled(200 * kMiB);
  ration.fell(80 * kMiB);
  ration.fell(90 * kMiB);
  EXPECT_FALSE(ration.recall_due(84 * kMiB));
  EXPECT_TRUE(ration.recall_due(84 * kMiB + 1));
  ration.fell(10 * kMiB);
  EXPECT_FALSE(ration.recall_due(64 * kMiB)) << "never below the limit";
  EXPECT_TRUE(ration.recall_due(64 * kMiB + 1));
}

}  // namespace
}  // namespace hz_test
