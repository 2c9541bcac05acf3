// SPDX-License-Identifier: Apache-2.0
//
// The ring between two threads: order, capacity, high-water mark, closing.
#include "ring/spsc_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace hz::bench {
namespace {

void* value(std::uint64_t n) { return reinterpret_cast<void*>(n); }

class SpscRingTest : public testing::Test {
 protected:
  std::uint64_t drain() {
    return ring_.drain([this](void* p) { got_.push_back(reinterpret_cast<std::uint64_t>(p)); });
  }

  std::vector<void*> entries_ = std::vector<void*>(4);
  SpscRing ring_{entries_.data(), entries_.size()};
  std::vector<std::uint64_t> got_;
};

TEST_F(SpscRingTest, EmptyRingDrainsNothing) {
  EXPECT_EQ(drain(), 0U);
  EXPECT_EQ(ring_.high_water(), 0U);
}

TEST_F(SpscRingTest, HoldsExactlyItsCapacity) {
  for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_TRUE(ring_.push(value(i)));
  EXPECT_FALSE(ring_.push(value(5)));
  EXPECT_EQ(drain(), 4U);
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(ring_.push(value(6)));
}

TEST_F(SpscRingTest, KeepsOrderAcrossTheWrap) {
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 1; i <= 30; ++i) {
    ASSERT_TRUE(ring_.push(value(i)));
    expected.push_back(i);
    if (i % 3 == 0) {
      EXPECT_EQ(drain(), 3U);
    }
  }
  EXPECT_EQ(got_, expected);
  EXPECT_EQ(ring_.high_water(), 3U);
}

TEST_F(SpscRingTest, DrainTakesWhatArrivesWhileDraining) {
  ASSERT_TRUE(ring_.push(value(1)));
  const std::uint64_t drained = ring_.drain([this](void* p) {
    const auto n = reinterpret_cast<std::uint64_t>(p);
    got_.push_back(n);
    if (n < 10) {
      EXPECT_TRUE(ring_.push(value(n + 1)));
    }
  });
  EXPECT_EQ(drained, 10U);
  EXPECT_EQ(got_.size(), 10U);
}

TEST(SpscRing, TwoThreadsLoseAndReorderNothing) {
  constexpr std::uint64_t kItems = 200'000;
  std::vector<void*> entries(64);
  SpscRing ring(entries.data(), entries.size());
  std::thread producer([&ring] {
    for (std::uint64_t i = 1; i <= kItems; ++i) {
      while (!ring.push(value(i))) std::this_thread::yield();
    }
    ring.close();
  });
  std::uint64_t next = 1;
  std::uint64_t out_of_order = 0;
  for (bool last = false; !last;) {
    last = ring.closed();
    ring.drain([&](void* p) { out_of_order += reinterpret_cast<std::uint64_t>(p) != next++; });
    if (!last) std::this_thread::yield();
  }
  producer.join();
  EXPECT_EQ(next, kItems + 1);
  EXPECT_EQ(out_of_order, 0U);
  EXPECT_GE(ring.high_water(), 1U);
  EXPECT_LE(ring.high_water(), 64U);
}

}  // namespace
}  // namespace hz::bench
