// SPDX-License-Identifier: Apache-2.0
//
// The solo lanes against their definitions: what is drawn, in which order slots are filled and freed, what is
// written and resized. The loop runs on one thread with an allocator that keeps books, so every number is
// exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "books.hpp"
#include "run_of.hpp"
#include "solo/draws.hpp"
#include "solo/lanes.hpp"
#include "solo/slot_loop.hpp"

namespace hz::bench {
namespace {

constexpr std::string_view kMixedWs[] = {"mixed_ws_balanced", "mixed_ws_wide_ws", "mixed_ws_larger_sizes",
                                         "mixed_ws_large_slice_16k", "mixed_ws_heavy_mixed"};

class SoloTest : public testing::Test {
 protected:
  void SetUp() override { Books::open(); }

  template <class Draws>
  static Tally run_lane(const bench::Run& run, unsigned thread = 0) {
    const SoloShape shape(run);
    std::vector<void*> slots(shape.field.slots);
    SlotLoop<Books> loop(shape, slots.data());
    loop.iterate(Draws(shape.field, run.seed, thread));
    loop.finish();
    EXPECT_TRUE(Books::live.empty());
    EXPECT_EQ(Books::unknown, 0U);
    EXPECT_EQ(loop.tally().allocated, Books::allocations);
    EXPECT_EQ(loop.tally().released, Books::releases);
    EXPECT_EQ(loop.tally().resized, Books::resizes.size());
    return loop.tally();
  }

  // Whether the calls from the first one on are: allocate `slots` blocks, free them in the same order, and
  // again.
  static bool fills_and_drains(std::uint32_t slots, unsigned rounds) {
    if (Books::calls.size() < std::size_t{2} * slots * rounds) return false;
    for (unsigned round = 0; round < rounds; ++round) {
      for (std::uint32_t i = 0; i < slots; ++i) {
        const auto serial = static_cast<std::int64_t>(round * slots + i + 1);
        const std::int64_t* call = Books::calls.data() + std::size_t{2} * slots * round + i;
        if (call[0] != serial || call[slots] != -serial) return false;
      }
    }
    return true;
  }
};

TEST_F(SoloTest, OneNumberIsUniformInSlotsAndSizesAndBothAreIndependent) {
  constexpr Field kField{400, 16, 2048};
  constexpr int kDraws = 640'000;
  OneNumber<Mode::kFair> draws(kField, 1, 0);
  std::vector<int> cells(64);  // 8 parts of the slots by 8 parts of the sizes
  std::uint32_t smallest = UINT32_MAX, largest = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Pick pick = draws.next();
    ++cells.at(pick.slot * 8 / 400 * 8 + (pick.size - 16) * 8 / 2033);
    smallest = std::min(smallest, pick.size);
    largest = std::max(largest, pick.size);
  }
  EXPECT_EQ(smallest, 16U);
  EXPECT_EQ(largest, 2048U);
  for (const int n : cells) EXPECT_NEAR(n, 10'000, 550);  // 5 deviations, and parts of sizes that differ by 1
}

TEST_F(SoloTest, UpstreamTakesThePublishedGeneratorModulo) {
  for (const unsigned thread : {0U, 3U}) {
    Lcg32 published(0x12345678 + 977 * thread);
    OneNumber<Mode::kUpstream> draws({400, 16, 2048}, 0x12345678, thread);
    for (int i = 0; i < 100; ++i) {
      const std::uint32_t number = published.next();
      const Pick pick = draws.next();
      EXPECT_EQ(pick.slot, number % 400);
      EXPECT_EQ(pick.size, 16 + number % 2033);
    }
  }
}

TEST_F(SoloTest, ThreadsDrawDifferentNumbers) {
  OneNumber<Mode::kFair> first({1 << 20, 1, 1 << 20}, 1, 0), second({1 << 20, 1, 1 << 20}, 1, 1);
  int same = 0;
  for (int i = 0; i < 100; ++i) same += first.next().slot == second.next().slot;
  EXPECT_LT(same, 3);
}

TEST_F(SoloTest, ApplicationSizesHaveTheirShares) {
  Application draws({400, 16, 32'768}, 1, 0);
  constexpr int kDraws = 400'000;
  struct Range {
    std::uint32_t min, max;
    double share;
    std::vector<int> quarters = std::vector<int>(4);
  } ranges[] = {{16, 256, 0.80}, {257, 2'048, 0.15}, {2'049, 32'768, 0.05}};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint32_t size = draws.next().size;
    ASSERT_GE(size, 16U);
    ASSERT_LE(size, 32'768U);
    for (Range& r : ranges) {
      if (size >= r.min && size <= r.max) ++r.quarters.at((size - r.min) * 4 / (r.max - r.min + 1));
    }
  }
  for (const Range& r : ranges) {
    const double expected = kDraws * r.share / 4;
    for (const int n : r.quarters) EXPECT_NEAR(n, expected, expected * 0.05) << r.min;
  }
}

TEST_F(SoloTest, InTurnIsInTurn) {
  InTurn draws({3, 16, 2'048}, 1, 0);
  for (const std::uint32_t slot : {0U, 1U, 2U, 0U, 1U, 2U, 0U}) EXPECT_EQ(draws.next().slot, slot);
}

TEST_F(SoloTest, FillDrainFillsAllSlotsAndFreesThemInTheSameOrder) {
  for (const Lane& lane : kSoloLanes) {
    if (!lane.name.starts_with("fill_drain_")) continue;
    SCOPED_TRACE(lane.name);
    const auto slots = static_cast<std::uint32_t>(lane.definition["slots"]);
    EXPECT_EQ(lane.definition["iterations"] % (2 * slots), 0U) << "whole rounds";
    if (lane.definition["max_size"] > 8'192)
      continue;  // the same loop; clearing the blocks would take seconds
    Books::open();
    run_lane<InTurn>(run_of(lane.name, Mode::kFair, std::uint64_t{4} * slots));
    EXPECT_TRUE(fills_and_drains(slots, 2));
    EXPECT_EQ(Books::calls.size(), std::size_t{4} * slots);
    EXPECT_GE(Books::smallest, lane.definition["min_size"]);
    EXPECT_LE(Books::largest, lane.definition["max_size"]);
  }
}

// The trap: with the published generator a random churn is none.
TEST_F(SoloTest, UpstreamMixedWsFillsAndDrainsInsteadOfChurning) {
  for (const std::string_view name : kMixedWs) {
    SCOPED_TRACE(name);
    const auto run = run_of(name, Mode::kUpstream);
    const std::uint32_t slots = run.number("slots");
    for (const unsigned thread : {0U, run.lane.threads - 1}) {
      Books::open();
      run_lane<OneNumber<Mode::kUpstream>>(run_of(name, Mode::kUpstream, std::uint64_t{4} * slots), thread);
      EXPECT_TRUE(fills_and_drains(slots, 2));
      EXPECT_EQ(Books::most_live, slots);
    }
  }
}

TEST_F(SoloTest, FairMixedWsChurns) {
  for (const std::string_view name : kMixedWs) {
    SCOPED_TRACE(name);
    const std::uint32_t slots = run_of(name, Mode::kFair).number("slots");
    Books::open();
    run_lane<OneNumber<Mode::kFair>>(run_of(name, Mode::kFair, std::uint64_t{4} * slots));
    EXPECT_FALSE(fills_and_drains(slots, 1));
    // In a steady state half of the slots are occupied.
    EXPECT_LT(Books::most_live, slots * 6 / 10);
    EXPECT_GT(Books::most_live, slots * 4 / 10);
  }
}

// 400 is no power of two but a multiple of 16, so there are 16 groups of slots, visited one after the other.
TEST_F(SoloTest, UpstreamRandomMixedVisitsGroupsOfSlotsInTurn) {
  for (const std::string_view name : {"random_mixed_small", "random_mixed_medium", "random_mixed_mixed"}) {
    const SoloShape shape(run_of(name, Mode::kUpstream));
    OneNumber<Mode::kUpstream> upstream(shape.field, bench::Run{}.seed, 0);
    OneNumber<Mode::kFair> fair(shape.field, bench::Run{}.seed, 0);
    std::uint32_t expected[16];
    for (std::uint32_t& group : expected) group = upstream.next().slot % 16;
    int as_expected = 0;
    for (int i = 0; i < 160; ++i) {
      EXPECT_EQ(upstream.next().slot % 16, expected[i % 16]);
      as_expected += fair.next().slot % 16 == expected[i % 16];
    }
    EXPECT_LT(as_expected, 32);
  }
}

TEST_F(SoloTest, RandomMixedKeepsToItsSizesAndSlots) {
  for (const std::string_view name : {"random_mixed_small", "random_mixed_medium", "random_mixed_mixed"}) {
    SCOPED_TRACE(name);
    Books::open();
    const auto run = run_of(name, Mode::kFair, 20'000);
    const Tally tally = run_lane<OneNumber<Mode::kFair>>(run);
    EXPECT_EQ(tally.calls(), tally.allocated * 2);
    EXPECT_GE(Books::smallest, run.number("min_size"));
    EXPECT_LE(Books::largest, run.number("max_size"));
    EXPECT_GT(Books::largest, run.number("max_size") * 95 / 100);
    EXPECT_LE(Books::most_live, 260U);  // of 400, half of them at a time
    EXPECT_EQ(Books::untouched, 0U);
  }
}

TEST_F(SoloTest, UpstreamRandomMixedWritesNothing) {
  run_lane<OneNumber<Mode::kUpstream>>(run_of("random_mixed_small", Mode::kUpstream, 20'000));
  EXPECT_EQ(Books::untouched, Books::releases);
}

TEST_F(SoloTest, AnAllocationInEvery64thIterationIsResizedBy16) {
  const auto run = run_of("mixed_ws_balanced", Mode::kUpstream, 8'192);
  const Tally tally = run_lane<OneNumber<Mode::kUpstream>>(run);
  ASSERT_EQ(tally.resized, 4'096 / 64U);  // in the half of the iterations that allocates
  for (std::size_t i = 0; i < tally.resized; ++i) {
    EXPECT_EQ(Books::resizes[i].first, Books::sizes[64 * i]);
    EXPECT_EQ(Books::resizes[i].second, Books::sizes[64 * i] + 16);
  }
  Books::open();
  const Tally fair = run_lane<OneNumber<Mode::kFair>>(run_of("mixed_ws_balanced", Mode::kFair, 64'000));
  EXPECT_NEAR(static_cast<double>(fair.resized), 500, 80);  // of 1,000 about half allocate
  EXPECT_EQ(fair.calls(), 2 * fair.allocated + fair.resized);
}

TEST_F(SoloTest, MixedWsWritesTheFirst64BytesInBothModes) {
  std::uint64_t wrong = 0;
  const auto inspect = [&wrong](const unsigned char* bytes, std::size_t size) {
    wrong += std::count(bytes, bytes + 64, 0) != 0 ||
             std::count(bytes + 64, bytes + size, 0) + 64 != std::ptrdiff_t(size);
  };
  Books::inspect = inspect;
  run_lane<OneNumber<Mode::kFair>>(run_of("mixed_ws_larger_sizes", Mode::kFair, 5'000));
  EXPECT_EQ(wrong, 0U);
  Books::open();
  Books::inspect = inspect;
  run_lane<OneNumber<Mode::kUpstream>>(run_of("mixed_ws_larger_sizes", Mode::kUpstream, 5'000));
  EXPECT_EQ(wrong, 0U);
}

TEST_F(SoloTest, UntouchedMixedWsWritesNothing) {
  std::uint64_t written = 0;
  Books::inspect = [&written](const unsigned char* bytes, std::size_t size) {
    written += std::count(bytes, bytes + size, 0) != std::ptrdiff_t(size);
  };
  auto run = run_of("mixed_ws_larger_sizes", Mode::kFair, 5'000);
  run.touch = false;
  run_lane<OneNumber<Mode::kFair>>(run);
  EXPECT_EQ(written, 0U);
}

}  // namespace
}  // namespace hz::bench
