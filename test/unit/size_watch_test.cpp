// SPDX-License-Identifier: Apache-2.0
//
// What follows from the sizes that a program asked for: which spare class is worth it, when, and when none
// is.
#include "box/policy/size_watch.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hz_test {
namespace {

using hz::Bin;
using hz::SizeWatch;

class SizeWatchTest : public ::testing::Test {
 protected:
  // As many spans of the size's class as one look needs; whether it was time to look, at the last.
  bool Grow(std::size_t size, unsigned slots, unsigned spans = SizeWatch::kLeastSpans) {
    bool due = false;
    watch_->asked(size, slots);
    for (unsigned i = 0; i < spans; ++i) due = watch_->acquired(hz::scan_bin(size));
    return due;
  }
  std::size_t Chosen(std::size_t size) const {
    const Bin bin = hz::scan_bin(size);
    return watch_->choose(bin, watch_->spans(bin)).size;
  }
  const std::unique_ptr<SizeWatch> watch_ = std::make_unique<SizeWatch>();
};

TEST_F(SizeWatchTest, ASizeThatWastesATenthIsChosen) {
  EXPECT_TRUE(Grow(1032, 100));
  EXPECT_EQ(1040u, Chosen(1032));
  const Bin bin = hz::scan_bin(1032);
  const std::size_t saves = watch_->choose(bin, 1000).saves;
  EXPECT_NEAR(1000.0 * 65536 * (1 - 1040.3 / 1170.3), static_cast<double>(saves), 65536.0 * 20);
}

TEST_F(SizeWatchTest, NothingIsChosenOfWhatFillsItsClass) {
  for (const std::size_t size : {576, 640, 1088 + 16, 1152, 2300, 16384}) {
    EXPECT_TRUE(Grow(size, 100));
    EXPECT_EQ(0u, Chosen(size)) << size;
  }
}

// 8,208 bytes: as many fit a span as of 9,216, but two pages at its end are never touched.
TEST_F(SizeWatchTest, PagesThatNoSlotFillsAreSaved) {
  Grow(8200, 100);
  EXPECT_EQ(8208u, Chosen(8200));
}

TEST_F(SizeWatchTest, OfTwoSizesOfAClassTheOneThatSavesMore) {
  watch_->asked(1032, 100);
  watch_->asked(1100, 10);
  EXPECT_EQ(1040u, Chosen(1032));
  watch_->asked(1072, 1000);
  EXPECT_EQ(1072u, Chosen(1032)) << "smaller ones have it, too";
  watch_->asked(1150, 100000);
  EXPECT_EQ(0u, Chosen(1032)) << "a small part of the class is not worth a class of its own";
}

TEST_F(SizeWatchTest, ClassesWithoutASpareOfTheirDoublingHaveNone) {
  for (const std::size_t size : {24, 100, 260, 400, 17000, 20000, 100000}) {
    Grow(size, 100);
    EXPECT_EQ(0u, Chosen(size)) << size;
  }
  for (unsigned spare = 0; spare < hz::kSpares; ++spare)
    EXPECT_EQ(0u, watch_->choose(hz::spare_bin(spare), 1000).size);
}

// Of every class there is, with sizes beyond what is watched: nothing else is touched.
TEST_F(SizeWatchTest, EveryClassMayBeLookedAtAndForgotten) {
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    if (!hz::is_spare(bin)) watch_->asked(hz::size_of_bin(bin), 2);
    bool due = false;
    for (unsigned i = 0; i < SizeWatch::kLeastSpans; ++i) due = watch_->acquired(bin);
    EXPECT_EQ(bin >= hz::kFirstSpare && bin <= hz::kLastFineBin && !hz::is_spare(bin), due) << bin;
    EXPECT_EQ(0u, watch_->choose(bin, 1000).size) << "all of its blocks fill it";
    watch_->forget_half(bin);
  }
  for (Bin bin = 1; bin < hz::kBins; ++bin) EXPECT_EQ(SizeWatch::kLeastSpans, watch_->spans(bin)) << bin;
}

TEST_F(SizeWatchTest, FewSpansAreNotLookedAtAndManySeldom) {
  EXPECT_FALSE(Grow(1032, 1, SizeWatch::kLeastSpans - 1));
  EXPECT_TRUE(Grow(1032, 1, 1));
  EXPECT_FALSE(Grow(1032, 1, 1));
  EXPECT_TRUE(Grow(1032, 1, SizeWatch::kSpansPerLook - 1));
  const Bin bin = hz::scan_bin(1032);
  for (unsigned i = 0; i < 8; ++i) watch_->retired(bin);
  EXPECT_EQ(SizeWatch::kLeastSpans, watch_->spans(bin));
  EXPECT_EQ(SizeWatch::kLeastSpans + 8, watch_->most_spans(bin));
}

TEST_F(SizeWatchTest, WhatIsForgottenLeavesOtherClassesAlone) {
  for (const std::size_t size : {1024, 1040, 1152, 1168}) watch_->asked(size, 100);
  watch_->forget_half(hz::scan_bin(1152));
  EXPECT_EQ(100u, watch_->slots(1024 / 16 - 1));
  EXPECT_EQ(50u, watch_->slots(1040 / 16 - 1));
  EXPECT_EQ(50u, watch_->slots(1152 / 16 - 1));
  EXPECT_EQ(100u, watch_->slots(1168 / 16 - 1));
}

// A count that would not fit halves all: what they are to each other stays.
TEST_F(SizeWatchTest, CountsNeverWrap) {
  for (int i = 0; i < 6; ++i) {
    watch_->asked(1032, 1U << 30);
    watch_->asked(1150, 1U << 20);
  }
  EXPECT_GE(watch_->slots(1040 / 16 - 1), 1U << 30);
  EXPECT_LE(watch_->slots(1040 / 16 - 1), 3U << 30);
  EXPECT_GT(watch_->slots(1040 / 16 - 1), 100 * watch_->slots(1152 / 16 - 1));
  EXPECT_EQ(1040u, Chosen(1032));
}

// Who told of its end before its begin was told.
TEST_F(SizeWatchTest, ASpanThatWentBeforeItCameIsNone) {
  const Bin bin = hz::scan_bin(1032);
  watch_->retired(bin);
  watch_->retired(bin);
  EXPECT_FALSE(watch_->acquired(bin));
  EXPECT_EQ(0u, watch_->most_spans(bin));
  EXPECT_FALSE(watch_->acquired(bin));
  EXPECT_EQ(0u, watch_->most_spans(bin));
}

TEST_F(SizeWatchTest, SizesBeyondAreNoMatter) {
  for (const std::size_t size : {SizeWatch::kWatchedMax + 1, SIZE_MAX, std::size_t{0}})
    watch_->asked(size, 1);
  for (unsigned n = 0; n < SizeWatch::kNumbers; ++n) EXPECT_EQ(0u, watch_->slots(n));
}

// The same events give the same answers, each time.
TEST_F(SizeWatchTest, ARecordedSequenceIsDecidedAlikeEachTime) {
  std::string decided[2];
  for (std::string& told : decided) {
    const auto watch = std::make_unique<SizeWatch>();
    std::mt19937_64 random(7);
    for (unsigned i = 0; i < 200000; ++i) {
      const std::size_t size = (std::size_t{512} << random() % 5) + random() % (i < 100000 ? 64 : 512);
      const Bin bin = hz::scan_bin(size);
      watch->asked(size, static_cast<unsigned>(random() % 60));
      if (random() % 8 == 0 && watch->spans(bin) != 0) {
        watch->retired(bin);
      } else if (random() % 4 == 0 && watch->acquired(bin)) {
        const SizeWatch::Choice choice = watch->choose(bin, watch->spans(bin));
        told += std::to_string(choice.size) + " " + std::to_string(choice.saves) + "\n";
        if (choice.size == 0) watch->forget_half(bin);
      }
    }
  }
  EXPECT_EQ(decided[0], decided[1]);
  EXPECT_NE(std::string::npos, decided[0].find("1088 ")) << decided[0].substr(0, 200);
}

TEST_F(SizeWatchTest, ThreadsThatTellAtOnceAreAllCounted) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 10000; ++i) {
        watch_->asked(1032, 3);
        watch_->acquired(hz::scan_bin(1032));
        if (i % 2 != 0) watch_->retired(hz::scan_bin(1032));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(120000u, watch_->slots(1040 / 16 - 1));
  EXPECT_EQ(20000u, watch_->spans(hz::scan_bin(1032)));
}

}  // namespace
}  // namespace hz_test
