// SPDX-License-Identifier: Apache-2.0
//
// The contract of a source under limits: what it holds stays below the hard one, what is free is given up
// before it refuses, and past the soft one it refuses only those who have not returned their caches, and not
// each time.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "box/source/contract.hpp"
#include "contract/source_boxes.hpp"
#include "os/os.hpp"

namespace hz_test {
namespace {

using hz::kGranule;
using hz::kMiB;

constexpr hz::MemoryLimit kNo = {.bytes = 0, .percent = 0, .given = true};
constexpr hz::MemoryLimit Bytes(std::size_t n) { return {.bytes = n, .percent = 0, .given = true}; }
constexpr hz::Demand kAsks;
constexpr hz::Demand kInsists = {.force = true};

template <class S>
class SourceLimit : public ::testing::Test {
 protected:
  static constexpr std::size_t kLimit = 32 * kMiB;
  static constexpr std::size_t kGranules = kLimit / kGranule;

  void SetUp() override { ASSERT_TRUE(S::open(source_, kTableShapes, kTables)); }
  void TearDown() override { S::close(source_); }

  hz::Run Acquire(std::size_t granules, hz::Demand demand = kAsks) {
    const hz::Run run = S::acquire(source_, granules, 1, demand);
    if (run.at != 0) std::memset(hz::pointer(run.at), 1, granules * kGranule);
    return run;
  }
  void Release(std::uintptr_t run) { S::release(source_, run, false); }
  std::size_t Held() { return S::held_bytes(source_); }

  // As the heap does it.
  hz::Run AcquireTwice(std::size_t granules, std::size_t instead_of = 0) {
    const hz::Run run = Acquire(granules, {.instead_of = instead_of});
    return run.at != 0 ? run : Acquire(granules, {.force = true, .instead_of = instead_of});
  }
  std::vector<std::uintptr_t> Fill(std::size_t granules) {
    std::vector<std::uintptr_t> runs;
    for (hz::Run run = AcquireTwice(granules); run.at != 0 && runs.size() < 100000;
         run = AcquireTwice(granules))
      runs.push_back(run.at);
    return runs;
  }

  typename S::Global source_;
};
TYPED_TEST_SUITE(SourceLimit, SourceBoxes);

TYPED_TEST(SourceLimit, HeldIsWhatTheSystemGaveAndHasNotBack) {
  const std::size_t before = this->Held();
  const std::uintptr_t run = this->Acquire(16).at;
  const std::size_t with = this->Held();
  EXPECT_GT(with, before + 16 * kGranule);
  EXPECT_LE(with, before + 17 * kGranule) << "tables are counted, and small";
  this->Release(run);
  EXPECT_EQ(with, this->Held()) << "free, but still backed";
  TypeParam::purge(this->source_, 0, SIZE_MAX);
  EXPECT_EQ(with - 16 * kGranule, this->Held());
  EXPECT_EQ(run, this->Acquire(16).at);
  EXPECT_EQ(with, this->Held());
  EXPECT_TRUE(TypeParam::resize(this->source_, run, 10));
  EXPECT_EQ(with, this->Held());
  TypeParam::purge(this->source_, 0, SIZE_MAX);
  EXPECT_EQ(with - 6 * kGranule, this->Held());
  EXPECT_TRUE(TypeParam::resize(this->source_, run, 16));
  EXPECT_EQ(with, this->Held());
  TypeParam::release(this->source_, run, true);
  EXPECT_EQ(with - 16 * kGranule, this->Held() + TypeParam::dirty_bytes(this->source_));
}

TYPED_TEST(SourceLimit, SaysWhetherThereIsRoom) {
  const std::size_t before = this->Held();
  const std::uintptr_t run = this->Acquire(16).at;
  EXPECT_TRUE(TypeParam::has_room(this->source_, 0)) << "without a limit there is always room";
  TypeParam::limit(this->source_, kNo, Bytes(this->Held() + kGranule));  // for tables
  EXPECT_TRUE(TypeParam::has_room(this->source_, 0));
  EXPECT_FALSE(TypeParam::has_room(this->source_, 2 * kGranule));
  // As a block that moves: its new place is there before its old one is given back.
  const hz::Run moved = this->Acquire(16, {.force = true, .instead_of = 16});
  ASSERT_NE(0u, moved.at);
  EXPECT_FALSE(TypeParam::has_room(this->source_, 0));
  TypeParam::release(this->source_, moved.at, true);
  TypeParam::release(this->source_, run, true);
  EXPECT_TRUE(TypeParam::has_room(this->source_, 0));
  EXPECT_GE(this->Held(), before);
}

TYPED_TEST(SourceLimit, TheHardLimitIsReachedAndNeverPassed) {
  TypeParam::limit(this->source_, kNo, Bytes(this->kLimit));
  for (std::size_t granules : {1, 5, 64}) {
    const std::vector<std::uintptr_t> runs = this->Fill(granules);
    EXPECT_LE(this->Held(), this->kLimit);
    EXPECT_GE(this->Held(), this->kLimit - this->kLimit / 16 - granules * kGranule);
    EXPECT_EQ(0u, this->Acquire(granules, kInsists).at) << "asking again is answered, too";
    for (std::uintptr_t run : runs) this->Release(run);
    EXPECT_LE(this->Held(), this->kLimit);
  }
  EXPECT_EQ(0u, this->Acquire(this->kGranules, kInsists).at) << "with the tables it is too much";
  EXPECT_NE(0u, this->Acquire(this->kGranules / 2, kInsists).at);
}

TYPED_TEST(SourceLimit, WhatIsFreeGoesBackBeforeItRefuses) {
  TypeParam::limit(this->source_, kNo, Bytes(this->kLimit));
  const std::vector<std::uintptr_t> runs = this->Fill(1);
  for (std::size_t i = 0; i < runs.size(); i += 2) this->Release(runs[i]);
  const std::size_t dirty = TypeParam::dirty_bytes(this->source_);
  EXPECT_NE(0u, this->Acquire(1, kInsists).at) << "what is dirty is held already";
  EXPECT_EQ(dirty - kGranule, TypeParam::dirty_bytes(this->source_));
  const hz::Run longer = this->Acquire(100, kInsists);
  EXPECT_NE(0u, longer.at) << "no free run is that long: it needs the pages of others";
  EXPECT_LE(this->Held(), this->kLimit);
  const std::size_t left = TypeParam::dirty_bytes(this->source_);
  EXPECT_EQ(0u, this->Acquire(this->kGranules, kInsists).at);
  EXPECT_EQ(left, TypeParam::dirty_bytes(this->source_)) << "what cannot be served costs nobody his pages";
}

// Refusals must leave the free runs whole.
TYPED_TEST(SourceLimit, ARefusalLeavesNothingBehind) {
  while (this->Acquire(1).at / kGranule % 64 != 0)
    continue;  // so that the next one is at no multiple of anything
  const std::uintptr_t run = this->Acquire(64).at;
  this->Acquire(1);
  TypeParam::release(this->source_, run, false);
  TypeParam::purge(this->source_, 0, SIZE_MAX);
  TypeParam::limit(this->source_, kNo, Bytes(this->Held() + kGranule));
  for (std::size_t alignment = 1; alignment <= 32; alignment *= 2) {
    EXPECT_EQ(0u, TypeParam::acquire(this->source_, 20, alignment, kInsists).at);
  }
  TypeParam::limit(this->source_, kNo, kNo);
  const std::size_t reached = TypeParam::reached_bytes(this->source_);
  EXPECT_EQ(run, TypeParam::acquire(this->source_, 64, 1, kAsks).at) << "one run again";
  EXPECT_EQ(reached, TypeParam::reached_bytes(this->source_));
}

TYPED_TEST(SourceLimit, TheSoftLimitRefusesTheFirstWhoComesAndNobodyWhoInsists) {
  TypeParam::limit(this->source_, Bytes(this->kLimit), kNo);
  unsigned refused = 0;
  for (std::size_t i = 0; i < 2 * this->kGranules; ++i) {
    if (this->Acquire(1).at != 0) continue;
    if (refused++ == 0) {
      EXPECT_GE(this->Held(), this->kLimit - 2 * kGranule);
    }
    EXPECT_NE(0u, this->Acquire(1, kInsists).at);
  }
  EXPECT_GE(this->Held(), 2 * this->kLimit);
  EXPECT_GE(refused, 8u);
  EXPECT_LE(refused, 17u) << "once when it is met, then once in a sixteenth of it";
}

TYPED_TEST(SourceLimit, PastTheSoftLimitGrowthIsPaidWithFreePages) {
  TypeParam::limit(this->source_, Bytes(this->kLimit), kNo);
  std::vector<std::uintptr_t> runs;
  for (std::size_t i = 0; i < 2 * this->kGranules; ++i) runs.push_back(this->AcquireTwice(1).at);
  const std::size_t held = this->Held();
  for (std::size_t i = 0; i < runs.size(); i += 2) this->Release(runs[i]);
  EXPECT_EQ(held, this->Held());
  const std::size_t dirty = TypeParam::dirty_bytes(this->source_);
  EXPECT_NE(0u, this->Acquire(8, kInsists).at);
  EXPECT_LE(this->Held(), held + kGranule) << "tables grow, nothing else";
  EXPECT_GE(TypeParam::dirty_bytes(this->source_), dirty / 2) << "but no more is purged than that";
}

TYPED_TEST(SourceLimit, GrowingInPlaceIsLimitedToo) {
  TypeParam::limit(this->source_, kNo, Bytes(this->kLimit));
  const std::uintptr_t run = this->Acquire(4).at;
  EXPECT_FALSE(TypeParam::resize(this->source_, run, this->kGranules));
  EXPECT_EQ(4u, TypeParam::granules(this->source_, run));
  EXPECT_TRUE(TypeParam::resize(this->source_, run, this->kGranules / 2));
  EXPECT_LE(this->Held(), this->kLimit);
  EXPECT_FALSE(TypeParam::resize(this->source_, run, this->kGranules));
  EXPECT_EQ(this->kGranules / 2, TypeParam::granules(this->source_, run));
}

TYPED_TEST(SourceLimit, GrowingInPlaceMeetsTheHardLimitWhereNoRecallIsDue) {
  TypeParam::limit(this->source_, Bytes(this->kLimit / 2), Bytes(this->kLimit));
  const std::vector<std::uintptr_t> runs = this->Fill(1);
  ASSERT_FALSE(runs.empty());
  for (std::size_t granules = 2; granules < 20; ++granules) {
    EXPECT_FALSE(TypeParam::resize(this->source_, runs.back(), granules)) << granules;
  }
  EXPECT_LE(this->Held(), this->kLimit);
}

// What another thread is giving back is not there yet, but will be.
TYPED_TEST(SourceLimit, WhoMeetsAPurgeWaitsForIt) {
  TypeParam::limit(this->source_, kNo, Bytes(this->kLimit));
  for (int round = 0; round < 30; ++round) {
    this->Release(this->Acquire(this->kGranules * 3 / 4, kInsists).at);
    std::atomic<int> ready{0};
    const auto together = [&ready] {
      ++ready;
      while (ready != 2) std::this_thread::yield();
    };
    std::thread purger([&] {
      together();
      TypeParam::purge(this->source_, 0, SIZE_MAX);
    });
    together();
    const hz::Run run = TypeParam::acquire(this->source_, this->kGranules * 7 / 8, 1, kInsists);
    EXPECT_NE(0u, run.at) << round;
    EXPECT_LE(this->Held(), this->kLimit) << round;
    purger.join();
    if (run.at != 0) TypeParam::release(this->source_, run.at, false);
    TypeParam::purge(this->source_, 0, SIZE_MAX);
  }
}

TYPED_TEST(SourceLimit, WhatReplacesABlockMayStandBesideIt) {
  TypeParam::limit(this->source_, kNo, Bytes(this->kLimit));
  const std::size_t most = this->kGranules * 3 / 4;
  const std::uintptr_t old = this->Acquire(most).at;
  ASSERT_NE(0u, old);
  EXPECT_EQ(0u, this->AcquireTwice(most).at);
  const hz::Run moved = this->AcquireTwice(most + 4, most);
  EXPECT_NE(0u, moved.at);
  EXPECT_EQ(0u, this->AcquireTwice(this->kGranules + 4, most).at) << "but not more than the limit";
  TypeParam::release(this->source_, old, true);
  TypeParam::purge(this->source_, 0, SIZE_MAX);
  EXPECT_LE(this->Held(), this->kLimit);
}

// Each thread stays within its part of the limit, so nobody may be refused, whatever others free and purge
// meanwhile; and whoever looks sees no more than the limit.
TYPED_TEST(SourceLimit, ExactAmongThreads) {
  TypeParam::limit(this->source_, kNo, Bytes(this->kLimit));
  constexpr unsigned kThreads = 4;
  const std::size_t part = this->kGranules * 9 / 10 / kThreads;
  std::atomic<unsigned> refused{0};
  std::atomic<unsigned> passed{0};
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      std::mt19937_64 random(id);
      std::vector<std::pair<std::uintptr_t, std::size_t>> mine;
      std::size_t held = 0;
      for (int step = 0; step < 6000; ++step) {
        const std::size_t granules = 1 + random() % 30;
        while (!mine.empty() && (held + granules > part || random() % 8 == 0)) {
          const std::size_t i = random() % mine.size();
          held -= mine[i].second;
          this->Release(mine[i].first);
          mine[i] = mine.back();
          mine.pop_back();
        }
        const hz::Run run = TypeParam::acquire(this->source_, granules, 1, kInsists);
        if (run.at == 0) {
          ++refused;
          continue;
        }
        // Pages that are really there take a while to purge.
        for (std::size_t at = 0; at < granules * kGranule; at += hz::kPage)
          *static_cast<char*>(hz::pointer(run.at + at)) = 1;
        mine.emplace_back(run.at, granules);
        held += granules;
        if (this->Held() > this->kLimit) ++passed;
        if (step % 64 == 0) TypeParam::purge(this->source_, random() % (4 * kMiB), SIZE_MAX);
      }
      for (const auto& [run, granules] : mine) this->Release(run);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0u, refused);
  EXPECT_EQ(0u, passed);
  TypeParam::purge(this->source_, 0, SIZE_MAX);
  EXPECT_LE(this->Held(), TypeParam::reached_bytes(this->source_) / 64) << "tables alone";
}

}  // namespace
}  // namespace hz_test
