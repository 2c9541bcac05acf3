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
  typename R::Global retain_;
};
TYPED_TEST_SUITE(RetainContract, RetainBoxes);

TYPED_TEST(RetainContract, BooksBalance) {
  using R = TypeParam;
  std::mt19937 random(1);
  std::size_t out = 0;
  std::size_t loose = 0;
  std::size_t peak = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::size_t n = random() % hz::kMiB;
    switch (random() % 4) {
      case 0:
        R::slots_out(this->retain_, n);
        out += n;
        break;
      case 1:
        if (n > out - loose) break;
        R::slots_home(this->retain_, n, 64);
        out -= n;
        break;
      case 2:
        if (n > out - loose) break;
        R::loose_added(this->retain_, n);
        loose += n;
        break;
      default:
        if (n > loose) break;
        R::loose_taken(this->retain_, n);
        loose -= n;
    }
    peak = std::max(peak, out);
    ASSERT_EQ(out, R::out_bytes(this->retain_));
    ASSERT_EQ(loose, R::loose_bytes(this->retain_));
    ASSERT_EQ(peak, R::peak_bytes(this->retain_));
    ASSERT_LE(R::dirty_target(this->retain_), R::dirty_limit(this->retain_)) << "a purge must end below where it began";
  }
}

TYPED_TEST(RetainContract, AnEmptyProgramIsSmall) {
  using R = TypeParam;
  R::slots_out(this->retain_, hz::kGiB);
  R::loose_added(this->retain_, 100 * hz::kMiB);
  R::loose_taken(this->retain_, 100 * hz::kMiB);
  R::slots_home(this->retain_, hz::kGiB, 64);
  EXPECT_LE(R::dirty_limit(this->retain_), 8 * hz::kMiB);
  EXPECT_EQ(hz::kGiB, R::peak_bytes(this->retain_));
}

// However much is in use, what may wait loose has an end, of small slots and of large ones.
TYPED_TEST(RetainContract, LooseSlotsAreBounded) {
  using R = TypeParam;
  for (const std::size_t slot : {std::size_t{16}, hz::kGranule}) {
    typename R::Global retain;
    R::slots_out(retain, 64 * hz::kMiB);
    std::size_t loose = 0;
    while (R::may_wait(retain, slot) && loose < hz::kGiB) {
      R::slots_out(retain, hz::kMiB);
      R::loose_added(retain, hz::kMiB);
      loose += hz::kMiB;
    }
    EXPECT_LT(loose, hz::kGiB);
  }
}

// Time alone makes an idle program small, and comes to an end.
TYPED_TEST(RetainContract, APeakIsForgottenAtRest) {
  using R = TypeParam;
  R::attend(this->retain_, true);
  for (int i = 0; i < 2; ++i) {  // the first return of all only starts the clock
    R::slots_out(this->retain_, hz::kGiB / 2);
    R::slots_home(this->retain_, i == 0 ? 1 : 0, 64);
  }
  R::slots_home(this->retain_, hz::kGiB / 2, 64);
  const std::size_t before = R::dirty_limit(this->retain_);
  EXPECT_FALSE(R::at_rest(this->retain_));
  int ticks = 0;
  for (; ticks < 20 && !R::at_rest(this->retain_); ++ticks) R::rest(this->retain_, true);
  EXPECT_LT(ticks, 20);
  EXPECT_LT(R::dirty_limit(this->retain_), before / 2);
  EXPECT_EQ(hz::kGiB / 2 - 1, R::out_bytes(this->retain_));
}

TYPED_TEST(RetainContract, ThreadsKeepOneBook) {
  using R = TypeParam;
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        R::slots_out(this->retain_, 100);
        R::loose_added(this->retain_, 50);
        R::loose_taken(this->retain_, 40);
        R::slots_home(this->retain_, 60, 64);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(4u * 5000 * 40, R::out_bytes(this->retain_));
  EXPECT_EQ(4u * 5000 * 10, R::loose_bytes(this->retain_));
  EXPECT_GE(R::peak_bytes(this->retain_), R::out_bytes(this->retain_));
}

}  // namespace
}  // namespace hz_test
