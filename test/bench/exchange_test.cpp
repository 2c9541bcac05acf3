// SPDX-License-Identifier: Apache-2.0
//
// One worker's loop of the interleaved lanes with an allocator that keeps books. Workers run one after the
// other on one thread, so every number is exact; the inbox is tried with two threads too.
#include "interleaved/exchange.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "books.hpp"
#include "interleaved/lanes.hpp"
#include "lane/random.hpp"

namespace hz::bench {
namespace {

ExchangeShape shape_of(std::uint64_t iterations, std::uint32_t remote, Mode mode) {
  Run run{.lane = interleaved_lane("test", 16, 4096, remote), .mode = mode};
  run.lane.definition.set(run.iterations_key(), iterations);
  return ExchangeShape(run);
}

class ExchangeTest : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override { Books::open(); }

  // Every worker's loop, then what the lane does at its end.
  std::vector<Exchange<Books>> run(std::uint64_t iterations, std::uint32_t remote, unsigned threads) {
    inboxes_ = std::vector<Inbox<Books>>(threads);
    const ExchangeShape shape = shape_of(iterations, remote, GetParam());
    std::vector<Exchange<Books>> workers;
    Backlog<Inbox<Books>> backlog(inboxes_.data(), threads);
    for (unsigned i = 0; i < threads; ++i) workers.emplace_back(shape, inboxes_.data(), threads, i, backlog);
    for (unsigned i = 0; i < threads; ++i) workers[i].iterate(make_random<Mode::kFair>(1, i));
    for (Exchange<Books>& worker : workers) worker.drain();
    for (Exchange<Books>& worker : workers) worker.final_pairs();
    for (Exchange<Books>& worker : workers) worker.close();
    EXPECT_TRUE(Books::live.empty());
    EXPECT_EQ(Books::unknown, 0U);
    EXPECT_EQ(Books::arrays, 0U);
    EXPECT_EQ(Books::allocations, Books::releases);
    EXPECT_EQ(Books::untouched, 0U);
    EXPECT_EQ(Books::allocations, threads * (iterations + 64));
    backlog_ = backlog.blocks();
    return workers;
  }

  std::vector<Inbox<Books>> inboxes_;
  std::uint64_t backlog_ = 0;  // the most blocks that were seen in all of them
};

TEST_P(ExchangeTest, LocalLanesSendNothing) {
  EXPECT_EQ(run(1000, 0, 2)[0].sent(), 0U);
  EXPECT_EQ(inboxes_[1].high_water(), 0U);
  EXPECT_EQ(backlog_, 0U);
}

TEST_P(ExchangeTest, TheRemoteShareIsSentAndFreedByOthers) {
  const auto workers = run(10'000, 90, 4);
  std::uint64_t sent = 0;
  std::uint64_t drained = 0;
  for (const Exchange<Books>& worker : workers) {
    EXPECT_NEAR(static_cast<double>(worker.sent()), 9000, 150);  // five deviations
    EXPECT_GT(worker.drained(), 0U);
    sent += worker.sent();
    drained += worker.drained();
  }
  EXPECT_EQ(sent, drained);
  // The first ran alone, so nobody drained what it sent: a third to each of the others, and none to itself.
  EXPECT_GT(inboxes_[3].high_water(), 2500U);
  // The second began with a third of that, and looked around: so much lay in the other two as well.
  EXPECT_GE(backlog_, 8500U);
}

TEST_P(ExchangeTest, NobodySendsToItself) {
  const auto workers = run(1000, 100, 2);
  EXPECT_EQ(workers[0].drained(), workers[1].sent());
  EXPECT_EQ(workers[1].drained(), workers[0].sent());
}

TEST_P(ExchangeTest, AloneSendsToItselfAndDrainsEvery32) {
  const auto workers = run(1024, 100, 1);
  EXPECT_EQ(workers[0].sent(), 1024U);
  EXPECT_EQ(inboxes_[0].high_water(), 32U);
}

TEST_P(ExchangeTest, SizesStayInTheLaneAndReachItsEnds) {
  run(100'000, 0, 1);
  EXPECT_EQ(Books::smallest, 16U);
  EXPECT_EQ(Books::largest, 4096U);
}

INSTANTIATE_TEST_SUITE_P(Modes, ExchangeTest, testing::Values(Mode::kFair, Mode::kUpstream),
                         [](const auto& info) { return info.param == Mode::kFair ? "fair" : "upstream"; });

// While a block is freed another thread tries to add one: it can if the lock is not held.
struct Prober {
  static inline Inbox<Prober>* inbox;
  static inline std::thread sender;
  static inline std::atomic<bool> trying;
  static inline std::atomic<bool> added;
  static inline bool added_in_time;
  static inline std::chrono::milliseconds patience;
  static inline void* arrays[2][64];
  static inline unsigned arrays_taken;

  static void* reallocate(void*, std::size_t) { return arrays[arrays_taken++]; }
  static void release(void*) {
    sender = std::thread([] {
      trying = true;
      inbox->add(nullptr);
      added = true;
    });
    while (!trying) std::this_thread::yield();
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!added && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    added_in_time = added;
  }

  static bool adds_during(std::uint64_t (Inbox<Prober>::*drain)(), std::chrono::milliseconds wait) {
    Inbox<Prober> fresh;
    inbox = &fresh;
    trying = added = false;
    arrays_taken = 0;
    patience = wait;
    fresh.add(&fresh);
    EXPECT_EQ((fresh.*drain)(), 1U);
    sender.join();
    return added_in_time;
  }
};

TEST(Inbox, SendersWaitForTheAllocatorInThePublishedShapeOnly) {
  EXPECT_TRUE(Prober::adds_during(&Inbox<Prober>::drain, std::chrono::seconds(20)));
  EXPECT_FALSE(Prober::adds_during(&Inbox<Prober>::drain_locked, std::chrono::milliseconds(100)));
}

}  // namespace
}  // namespace hz::bench
