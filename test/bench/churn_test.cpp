// SPDX-License-Identifier: Apache-2.0
//
// One worker's loop with an allocator that keeps books: how operations are counted, that every block is freed
// once, what is written into blocks. Workers run one after the other on one thread, so every number is exact.
#include "ring/churn.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "books.hpp"
#include "lane/random.hpp"

namespace hz::bench {
namespace {

// A worker with everything it needs; its ring is drained by itself or by another worker.
struct Station {
  explicit Station(const RingShape& shape)
      : slots(shape.slots), entries(shape.ring), ring(entries.data(), shape.ring) {}
  std::vector<void*> slots;
  std::vector<void*> entries;
  SpscRing ring;
};

class ChurnTest : public testing::Test {
 protected:
  void SetUp() override { Books::open(); }

  // One worker that sends to itself, as with one thread; the counts at the end of the timed region.
  template <Mode kMode>
  static Counts run_alone(const RingShape& shape) {
    Station station(shape);
    Backlog<SpscRing> backlog(&station.ring, 1);
    Churn<Books> churn(shape, station.slots.data(), station.ring, station.ring, backlog);
    churn.iterate(make_random<kMode>(1, 0));
    const Counts upstream_end = churn.counts();
    churn.finish();
    churn.drain_to_end();
    EXPECT_TRUE(Books::live.empty());
    EXPECT_EQ(Books::unknown, 0U);
    return kMode == Mode::kFair ? churn.counts() : upstream_end;
  }
};

RingShape shape_of(std::uint32_t min_size, std::uint32_t max_size, std::uint64_t iterations,
                   std::uint32_t remote, std::uint32_t slots, std::uint32_t ring) {
  RingShape shape;
  shape.min_size = min_size;
  shape.max_size = max_size;
  shape.iterations = iterations;
  shape.remote_percent = remote;
  shape.slots = slots;
  shape.ring = ring;
  return shape;
}

RingShape one_slot(std::uint64_t iterations, std::uint32_t remote) {
  return shape_of(16, 2048, iterations, remote, 1, 4);
}

TEST_F(ChurnTest, FairCountsOneOpPerCall) {
  const Counts counts = run_alone<Mode::kFair>(one_slot(1000, 0));
  EXPECT_EQ(counts.allocated, 500U);
  EXPECT_EQ(counts.freed_local, 500U);
  EXPECT_EQ(counts.ops(Mode::kFair), 1000U);
}

TEST_F(ChurnTest, FairCountsWhatIsLeftInTheSlots) {
  EXPECT_EQ(run_alone<Mode::kFair>(one_slot(1001, 0)).ops(Mode::kFair), 1002U);
}

TEST_F(ChurnTest, FairCountsATravellingBlockTwice) {
  const Counts counts = run_alone<Mode::kFair>(one_slot(1000, 100));
  EXPECT_EQ(counts.sent, 500U);
  EXPECT_EQ(counts.drained, 500U);  // the last one after the loop
  EXPECT_EQ(counts.freed_local, 0U);
  EXPECT_EQ(counts.ops(Mode::kFair), 1000U);
}

TEST_F(ChurnTest, UpstreamCountsSendAndDrainAndStopsEarly) {
  const Counts counts = run_alone<Mode::kUpstream>(one_slot(1000, 100));
  EXPECT_EQ(counts.allocated, 500U);
  EXPECT_EQ(counts.sent, 500U);
  EXPECT_EQ(counts.drained, 499U);  // the last one is freed, but not timed and not counted
  EXPECT_EQ(counts.ops(Mode::kUpstream), 1499U);
  EXPECT_EQ(Books::releases, 500U);
}

TEST_F(ChurnTest, OpsEqualCallsOfTheAllocator) {
  const Counts counts = run_alone<Mode::kFair>(shape_of(16, 2048, 20'000, 50, 400, 256));
  EXPECT_EQ(counts.ops(Mode::kFair), Books::allocations + Books::releases);
  EXPECT_EQ(Books::allocations, Books::releases);
  EXPECT_NEAR(static_cast<double>(counts.sent) / static_cast<double>(counts.allocated), 0.5, 0.03);
}

TEST_F(ChurnTest, SizesStayInTheLaneAndReachItsEnds) {
  run_alone<Mode::kFair>(shape_of(16, 24, 2000, 0, 10, 16));
  EXPECT_EQ(Books::smallest, 16U);
  EXPECT_EQ(Books::largest, 24U);
}

TEST_F(ChurnTest, TouchesFirstAndLastByteOnlyWhenAsked) {
  RingShape shape = shape_of(16, 64, 1000, 50, 10, 16);
  run_alone<Mode::kFair>(shape);
  EXPECT_EQ(Books::untouched, 0U);
  shape.touch = false;
  run_alone<Mode::kFair>(shape);
  EXPECT_EQ(Books::untouched, Books::releases / 2);
}

TEST_F(ChurnTest, SameSeedSameRun) {
  const RingShape shape = shape_of(16, 2048, 5000, 90, 400, 256);
  const Counts first = run_alone<Mode::kFair>(shape);
  const Counts second = run_alone<Mode::kFair>(shape);
  EXPECT_EQ(first.allocated, second.allocated);
  EXPECT_EQ(first.sent, second.sent);
}

TEST_F(ChurnTest, ThreadsDrawDifferentNumbers) {
  EXPECT_NE(make_random<Mode::kFair>(1, 0).next(), make_random<Mode::kFair>(1, 1).next());
  Lcg32 published(0x12345678 + 977 * 3);
  EXPECT_EQ(make_random<Mode::kUpstream>(0x12345678, 3).next(), published.next());
}

TEST_F(ChurnTest, AFullRingFallsBackAndMarksTheRunDirty) {
  const RingShape shape = one_slot(20, 100);
  Station mine(shape);
  Station other(shape);
  Backlog<SpscRing> backlog(&mine.ring, 1);
  Churn<Books> sender(shape, mine.slots.data(), mine.ring, other.ring, backlog);
  Churn<Books> receiver(shape, other.slots.data(), other.ring, mine.ring, backlog);
  sender.iterate(make_random<Mode::kFair>(1, 0));
  EXPECT_EQ(sender.counts().allocated, 10U);
  EXPECT_EQ(sender.counts().sent, 4U);
  EXPECT_EQ(sender.counts().fallbacks, 6U);
  EXPECT_TRUE(sender.counts().dirty());

  sender.finish();
  receiver.finish();
  sender.drain_to_end();
  receiver.drain_to_end();
  EXPECT_EQ(receiver.counts().drained, 4U);
  EXPECT_EQ(mine.ring.high_water(), 4U);
  Counts total = sender.counts();
  total += receiver.counts();
  EXPECT_EQ(total.ops(Mode::kFair), 20U);
  EXPECT_TRUE(Books::live.empty());
}

TEST(Counts, DirtyAboveOnePerMille) {
  Counts counts;
  EXPECT_FALSE(counts.dirty());
  counts.sent = 9990;
  counts.fallbacks = 10;
  EXPECT_FALSE(counts.dirty());
  counts.fallbacks = 11;
  EXPECT_TRUE(counts.dirty());
}

TEST_F(ChurnTest, ABacklogIsWhatWaitsInAllRings) {
  const RingShape shape = shape_of(16, 2048, 1, 0, 1, 256);
  std::vector<void*> entries(512), slots(1);
  SpscRing rings[] = {SpscRing(entries.data(), 256), SpscRing(entries.data() + 256, 256)};
  Backlog<SpscRing> backlog(rings, 2);
  Churn<Books> receiver(shape, slots.data(), rings[1], rings[0], backlog);
  const auto send = [](SpscRing& ring, unsigned blocks) {
    for (unsigned i = 0; i < blocks; ++i) ASSERT_TRUE(ring.push(Books::allocate(16)));
  };
  send(rings[1], 100);
  send(rings[0], kOverdue);
  receiver.iterate(make_random<Mode::kFair>(1, 0));
  EXPECT_EQ(backlog.blocks(), 0U) << "nobody was late";
  send(rings[0], 70);
  receiver.iterate(make_random<Mode::kFair>(1, 0));
  EXPECT_EQ(backlog.blocks(), 170U);
  rings[1].drain(Books::release);
  send(rings[0], 80);
  receiver.iterate(make_random<Mode::kFair>(1, 0));
  EXPECT_EQ(backlog.blocks(), 170U) << "the most that there was";
  receiver.finish();
}

TEST(Backlog, OfALongBlockAPageIsResidentAtLeast) {
  std::vector<void*> entries(128);
  SpscRing ring(entries.data(), entries.size());
  Backlog<SpscRing> backlog(&ring, 1);
  EXPECT_EQ(backlog.kib(16, 2048), 0U);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(ring.push(&entries));
  backlog.look();
  EXPECT_EQ(backlog.kib(16, 2048), 100U * 1032 / 1024);
  EXPECT_EQ(backlog.kib(65537, 131072), 400U);
  EXPECT_EQ(backlog.kib(4093, 4098), 100U * 4095 / 1024);
}

}  // namespace
}  // namespace hz::bench
