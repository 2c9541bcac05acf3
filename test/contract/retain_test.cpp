// SPDX-License-Identifier: Apache-2.0
//
// The contract of a retain box: it keeps the books, and its two answers make sense.
#include "box/retain/contract.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "contract/retain_boxes.hpp"

namespace hz_test {
namespace {

template <class R>
class RetainContract : public ::testing::Test {
 protected:
  Alone<R> retain_;
};
TYPED_TEST_SUITE(RetainContract, RetainBoxes);

TYPED_TEST(RetainContract, BooksBalance) {
  using R = TypeParam;
  std::mt19937 random(1);
  std::size_t out = 0;
  std::size_t waiting = 0;
  std::size_t peak = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::size_t n = random() % hz::kMiB;
    switch (random() % 4) {
      case 0:
        this->retain_.slots_out(n);
        out += n;
        break;
      case 1:
        if (n > out - waiting) break;
        this->retain_.slots_returned(n);
        out -= n;
        break;
      case 2:
        if (n > out - waiting) break;
        this->retain_.waiting_added(n);
        waiting += n;
        break;
      default:
        if (n > waiting) break;
        this->retain_.waiting_taken(n);
        waiting -= n;
    }
    peak = std::max(peak, out);
    ASSERT_EQ(out, R::out_bytes(this->retain_));
    ASSERT_EQ(waiting, R::waiting_bytes(this->retain_));
    ASSERT_EQ(peak, R::peak_bytes(this->retain_));
    ASSERT_LE(this->retain_.dirty_target(), this->retain_.dirty_limit())
        << "a purge must end below where it began";
  }
}

// What a policy allows is at most what the box would; and what it takes it can give back.
TYPED_TEST(RetainContract, BoundsHoldUntilTheyAreLifted) {
  using R = TypeParam;
  R::set_purger(this->retain_, true);
  this->retain_.slots_out(100 * hz::kMiB);
  this->retain_.slots_returned(50 * hz::kMiB);
  const std::size_t before = this->retain_.dirty_limit();
  R::bound(this->retain_, 105, hz::kMiB, false);
  const std::size_t bounded = this->retain_.dirty_limit();
  EXPECT_LT(bounded, before);
  EXPECT_GE(bounded, 50 * hz::kMiB) << "pages follow what there recently was: any class may have them";
  this->retain_.waiting_added(6 * hz::kMiB);
  EXPECT_FALSE(this->retain_.may_wait(64)) << "slots do not: their class alone may";
  R::bound(this->retain_, 1000, ~std::size_t{0}, true);
  EXPECT_TRUE(this->retain_.may_wait(1024)) << "no more than the box says itself";
  this->retain_.waiting_taken(6 * hz::kMiB);
  EXPECT_EQ(before, this->retain_.dirty_limit());
}

TYPED_TEST(RetainContract, IdleBytesAreThoseThatTheProgramDoesNotHave) {
  this->retain_.slots_out(9 * hz::kMiB);
  EXPECT_EQ(0u, TypeParam::idle_bytes(this->retain_));
  this->retain_.waiting_added(2 * hz::kMiB);
  this->retain_.bins_grown(hz::kMiB);
  EXPECT_EQ(3 * hz::kMiB, TypeParam::idle_bytes(this->retain_));
  this->retain_.bins_shrunk(hz::kMiB);
  EXPECT_EQ(2 * hz::kMiB, TypeParam::idle_bytes(this->retain_));
}

TYPED_TEST(RetainContract, AnEmptyProgramIsSmall) {
  using R = TypeParam;
  this->retain_.slots_out(hz::kGiB);
  this->retain_.waiting_added(100 * hz::kMiB);
  this->retain_.waiting_taken(100 * hz::kMiB);
  this->retain_.slots_returned(hz::kGiB);
  EXPECT_LE(this->retain_.dirty_limit(), 8 * hz::kMiB);
  EXPECT_EQ(hz::kGiB, R::peak_bytes(this->retain_));
}

// However much is in use, what may wait has an end, of small slots and of large ones.
TYPED_TEST(RetainContract, LooseSlotsAreBounded) {
  using R = TypeParam;
  for (const std::size_t slot : {std::size_t{16}, hz::kGranule}) {
    Alone<R> retain;
    retain.slots_out(64 * hz::kMiB);
    std::size_t waiting = 0;
    while (retain.may_wait(slot) && waiting < hz::kGiB) {
      retain.slots_out(hz::kMiB);
      retain.waiting_added(hz::kMiB);
      waiting += hz::kMiB;
    }
    EXPECT_LT(waiting, hz::kGiB);
  }
}

// Time alone makes an idle program small, and comes to an end.
TYPED_TEST(RetainContract, APeakIsForgottenAtRest) {
  using R = TypeParam;
  R::set_purger(this->retain_, true);
  for (int i = 0; i < 2; ++i) {  // the first return of all only starts the clock
    this->retain_.slots_out(hz::kGiB / 2);
    this->retain_.slots_returned(i == 0 ? 1 : 0);
  }
  this->retain_.slots_returned(hz::kGiB / 2);
  const std::size_t before = this->retain_.dirty_limit();
  EXPECT_FALSE(R::at_rest(this->retain_));
  int ticks = 0;
  for (; ticks < 20 && !R::at_rest(this->retain_); ++ticks) R::rest(this->retain_, true);
  EXPECT_LT(ticks, 20);
  EXPECT_LT(this->retain_.dirty_limit(), before / 2);
  EXPECT_EQ(hz::kGiB / 2 - 1, R::out_bytes(this->retain_));
}

TYPED_TEST(RetainContract, ThreadsKeepOneBook) {
  using R = TypeParam;
  constexpr unsigned kThreads = 4;
  R::set_purger(this->retain_, true);
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < kThreads; ++id) {
    threads.emplace_back([&] {
      typename R::PerThread own;
      for (int i = 0; i < 5000; ++i) {
        R::enter(this->retain_, own, kThreads);
        R::slots_out(own, 100);
        R::waiting_added(own, 50);
        R::waiting_taken(own, 40);
        R::slots_returned(own, 60);
        R::leave(this->retain_, own, kThreads);
      }
      R::fold(this->retain_, own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kThreads * 5000 * 40, R::out_bytes(this->retain_));
  EXPECT_EQ(kThreads * 5000 * 10, R::waiting_bytes(this->retain_));
  EXPECT_GE(R::peak_bytes(this->retain_), R::out_bytes(this->retain_));
}

// What threads have counted and not folded is a quarter of what was recently live, all together; and it is
// most of what they count while it goes to and fro.
TYPED_TEST(RetainContract, SeveralThreadsFoldSeldom) {
  using R = TypeParam;
  constexpr unsigned kThreads = 8;
  constexpr std::size_t kLive = 256 * hz::kMiB, kBatch = 128 * hz::kKiB;
  R::set_purger(this->retain_, true);
  this->retain_.slots_out(kLive);
  typename R::PerThread own[kThreads];
  for (auto& one : own) {
    R::enter(this->retain_, one, 1);
    R::leave(this->retain_, one, kThreads);
  }
  std::mt19937 random(1);
  std::size_t live = kLive;
  int folds = 0;
  constexpr int kSteps = 10000;
  for (int i = 0; i < kSteps; ++i) {
    auto& one = own[random() % kThreads];
    const std::size_t before = R::out_bytes(this->retain_);
    R::enter(this->retain_, one, kThreads);
    const bool out = random() % 2 == 0;
    out ? R::slots_out(one, kBatch) : R::slots_returned(one, kBatch);
    R::leave(this->retain_, one, kThreads);
    live = out ? live + kBatch : live - kBatch;
    folds += R::out_bytes(this->retain_) != before ? 1 : 0;
    const std::size_t told = R::out_bytes(this->retain_);
    ASSERT_LE(told > live ? told - live : live - told, R::peak_bytes(this->retain_) / 4 + kBatch);
  }
  EXPECT_GT(folds, 0);
  EXPECT_LT(folds, kSteps / 20);
  for (auto& one : own) R::fold(this->retain_, one);
  EXPECT_EQ(live, R::out_bytes(this->retain_));
}

// Neither may a thread go on with what was true long ago.
TYPED_TEST(RetainContract, AThreadSeesWhatOthersFolded) {
  using R = TypeParam;
  R::set_purger(this->retain_, true);
  typename R::PerThread own;
  R::enter(this->retain_, own, 1);
  this->retain_.slots_out(hz::kGiB);
  this->retain_.waiting_added(hz::kGiB);
  unsigned crossings = 0;
  for (; crossings < 100 && R::may_wait(this->retain_, own, 64); ++crossings) {
    R::enter(this->retain_, own, 2);
    R::leave(this->retain_, own, 2);
  }
  EXPECT_LT(crossings, 20u);
}

}  // namespace
}  // namespace hz_test
