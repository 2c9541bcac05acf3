// SPDX-License-Identifier: Apache-2.0
//
// When a run is looked at: the order of the moments is enforced, and a crew whose workers hold memory for
// known parts of their lives shows it at the right moments only.
#include "lane/crew.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "../support/sanitizers.hpp"
#include "support/mapping.hpp"

namespace hz::bench {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;
constexpr std::uint64_t kSlackKib =
    4096;  // what threads, stacks and a sanitizer use beside the test's own memory

void read_all(Moments& moments, std::initializer_list<Moment> order) {
  for (const Moment moment : order) moments.read(moment, 0);
}

TEST(Moments, InOrderTheyAreComplete) {
  Moments moments;
  read_all(moments, {Moment::kEmpty, Moment::kStart, Moment::kEnd, Moment::kIdle});
  EXPECT_FALSE(moments.complete());
  moments.read(Moment::kAfter, 0);
  EXPECT_TRUE(moments.complete());
  EXPECT_GE(moments.peak_kib(), moments.rss_kib(Moment::kIdle));
}

TEST(MomentsDeathTest, AnyOtherOrderIsRefused) {
  constexpr auto kMessage = "lane: a moment of the run was read out of order";
  Moments moments;
  EXPECT_EXIT(moments.read(Moment::kStart, 0), testing::ExitedWithCode(3), kMessage);
  read_all(moments, {Moment::kEmpty, Moment::kStart});
  EXPECT_EXIT(moments.read(Moment::kIdle, 0), testing::ExitedWithCode(3), kMessage);
  EXPECT_EXIT(moments.read(Moment::kStart, 0), testing::ExitedWithCode(3), kMessage);
  moments.read(Moment::kEnd, 0);
  EXPECT_EXIT(moments.read(Moment::kAfter, 0), testing::ExitedWithCode(3), kMessage);
}

TEST(MomentsDeathTest, IdleWithoutWorkersAndAfterWithThemAreRefused) {
  constexpr auto kMessage = "lane: a moment of the run was read with the wrong number of workers alive";
  Moments moments;
  read_all(moments, {Moment::kEmpty, Moment::kStart, Moment::kEnd});
  EXPECT_EXIT(moments.read(Moment::kIdle, 2), testing::ExitedWithCode(3), kMessage);
  moments.read(Moment::kIdle, 0);
  alive_workers = 1;
  EXPECT_EXIT(moments.read(Moment::kAfter, 0), testing::ExitedWithCode(3), kMessage);
  alive_workers = 0;
}

TEST(MomentsDeathTest, ARecordWithoutAllMomentsIsNotPrinted) {
  Record record;
  read_all(record.moments, {Moment::kEmpty, Moment::kStart, Moment::kEnd, Moment::kIdle});
  EXPECT_EXIT(print_record(stderr, hz::bench::Run{}, record), testing::ExitedWithCode(3),
              "a moment of the run is missing");
}

// Holds 16 MiB while timed, 8 MiB until untimed ends, 4 MiB until the thread has ended.
struct Holder {
  std::atomic<unsigned>* together;
  unsigned threads;
  std::optional<Mapping> until_untimed{};

  void timed() {
    Mapping until_timed(16 * kMiB, true);
    until_untimed.emplace(8 * kMiB, true);
    thread_local std::optional<Mapping> until_thread_end;
    until_thread_end.emplace(4 * kMiB, true);
    // Nobody passes before everybody is here, so all of them hold their memory at once.
    together->fetch_add(1);
    while (together->load() < threads) sched_yield();
    sleep_ms(20);
  }
  void untimed() {
    sleep_ms(2 * kSettleMs);  // whoever does not wait for the end of this sees what is still held
    until_untimed.reset();
  }
};

class CrewTest : public testing::TestWithParam<Mode> {};

TEST_P(CrewTest, MemoryIsSeenAtTheMomentsAtWhichItIsHeld) {
  if (hz_test::kUnderTool) GTEST_SKIP() << "a sanitizer's own memory would be seen";
  constexpr unsigned kThreads = 3;
  const hz::bench::Run run{.threads = kThreads, .mode = GetParam()};
  Record record;
  std::atomic<unsigned> together{0};
  record.moments.read(Moment::kEmpty, 0);
  {
    HarnessMemory memory;
    memory.take<char>(32 * kMiB);
    Holder workers[kThreads] = {{&together, kThreads}, {&together, kThreads}, {&together, kThreads}};
    run_crew(run, memory, workers, record);
  }
  record.moments.read(Moment::kAfter, 0);

  const auto above_empty = [&](Moment moment) {
    return record.moments.rss_kib(moment) - record.moments.rss_kib(Moment::kEmpty);
  };
  EXPECT_GE(record.harness_kib, 32 * 1024U);
  EXPECT_LE(record.harness_kib, 32 * 1024U + 64);
  EXPECT_GE(record.moments.peak_kib() - record.moments.rss_kib(Moment::kEmpty),
            (32 + kThreads * 28) * 1024U - 512);
  EXPECT_GE(above_empty(Moment::kIdle), (32 + kThreads * 4) * 1024U);
  EXPECT_LE(above_empty(Moment::kIdle), (32 + kThreads * 4) * 1024U + kSlackKib);
  EXPECT_LE(above_empty(Moment::kAfter), kSlackKib);
  EXPECT_GE(record.seconds, 0.020);
  EXPECT_EQ(alive_workers.load(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes, CrewTest, testing::Values(Mode::kFair, Mode::kUpstream),
                         [](const auto& info) { return info.param == Mode::kFair ? "fair" : "upstream"; });

struct Sleeper {
  unsigned* order;
  void timed() {
    sleep_ms(20);
    *order = *order * 10 + 1;
  }
  void untimed() {
    sleep_ms(200);
    *order = *order * 10 + 2;
  }
};

TEST(Crew, OnlyTheTimedPartIsTimed) {
  unsigned order = 0;
  Sleeper worker{&order};
  HarnessMemory memory;
  Record record;
  record.moments.read(Moment::kEmpty, 0);
  const std::uint64_t start = now_ns();
  run_alone(memory, worker, record);
  const double all_seconds = static_cast<double>(now_ns() - start) * 1e-9;
  EXPECT_EQ(order, 12U);
  EXPECT_GE(record.seconds, 0.020);
  EXPECT_LE(record.seconds, all_seconds - 0.200);
}

}  // namespace
}  // namespace hz::bench
