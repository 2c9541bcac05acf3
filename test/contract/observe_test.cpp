// SPDX-License-Identifier: Apache-2.0
//
// The contract of an observer: it adds to sums what was counted, or nothing at all.
#include "box/observe/contract.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <type_traits>

#include "contract/observe_boxes.hpp"

namespace hz_test {
namespace {

template <class O>
class ObserveContract : public ::testing::Test {
 protected:
  // A box without state cannot count.
  static constexpr std::uint64_t kEach = std::is_empty_v<typename O::PerThread> ? 0 : 1;
  typename O::PerThread thread_{};
};
TYPED_TEST_SUITE(ObserveContract, ObserveBoxes);

TYPED_TEST(ObserveContract, AddsEveryEventToItsSum) {
  std::uint64_t sums[hz::kEvents];
  for (unsigned i = 0; i < hz::kEvents; ++i) {
    sums[i] = 1000;
    TypeParam::count(this->thread_, static_cast<hz::Event>(i), i);
    TypeParam::count(this->thread_, static_cast<hz::Event>(i), 2 * i);
  }
  TypeParam::add_to(this->thread_, sums);
  for (unsigned i = 0; i < hz::kEvents; ++i) EXPECT_EQ(1000 + 3 * i * this->kEach, sums[i]);
}

TYPED_TEST(ObserveContract, CountsAreWide) {
  std::uint64_t sums[hz::kEvents] = {};
  for (int i = 0; i < 3; ++i)
    TypeParam::count(this->thread_, hz::Event::kBytesAllocated, std::uint64_t{1} << 40);
  TypeParam::add_to(this->thread_, sums);
  EXPECT_EQ((std::uint64_t{3} << 40) * this->kEach, sums[static_cast<unsigned>(hz::Event::kBytesAllocated)]);
}

TYPED_TEST(ObserveContract, AnyThreadMayAsk) {
  std::atomic<bool> done{false};
  bool fell = false;
  std::thread reader([&] {
    for (std::uint64_t before = 0; !done.load();) {
      std::uint64_t sums[hz::kEvents] = {};
      TypeParam::add_to(this->thread_, sums);
      fell = fell || sums[0] < before;
      before = sums[0];
    }
  });
  for (int i = 0; i < 20000; ++i) TypeParam::count(this->thread_, hz::Event::kAllocSmall, 1);
  done = true;
  reader.join();
  EXPECT_FALSE(fell);
}

}  // namespace
}  // namespace hz_test
