// SPDX-License-Identifier: Apache-2.0
//
// What threads leave behind when they end: their states, and what these cached, go back like any other
// memory, by a trim at once and by the purger in time.
#include <gtest/gtest.h>

#include <algorithm>

#include "returns/service.hpp"
#include "support/child.hpp"

namespace hz_test {
namespace {

constexpr unsigned kClasses = 64;

// Blocks of 64 sizes, some of each, so that the thread's state has them all in use.
void UseManyClasses() {
  void* blocks[kClasses][8];
  for (unsigned i = 0; i < kClasses; ++i) {
    for (void*& block : blocks[i]) block = api::Malloc(i < 32 ? 16 * i + 1 : 512 * (i - 30));
  }
  for (auto& some : blocks) {
    for (void* block : some) api::Free(block);
  }
}

// All of them alive at once.
void LiveAndDie(unsigned threads) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  std::vector<pthread_t> alive(threads);
  static Barrier* together = nullptr;
  Barrier barrier(threads);
  together = &barrier;
  for (pthread_t& thread : alive) {
    const int error = pthread_create(
        &thread, &attributes,
        [](void*) -> void* {
          UseManyClasses();
          together->Wait();
          return nullptr;
        },
        nullptr);
    ASSERT_EQ(0, error);
  }
  for (const pthread_t& thread : alive) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Resident beyond what there was before, when the C library's own stacks of dead threads are there as well.
class DeadThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kUnderTool) GTEST_SKIP() << "shadow memory is resident as well";
    LiveAndDie(8);
    api::Trim();
    before_ = RssBytes();
  }
  bool IsSmall(std::size_t most) const { return RssBytes() <= before_ + most; }
  std::size_t Left() const { return RssBytes() > before_ ? (RssBytes() - before_) / 1024 : 0; }

  const Watchdog watchdog_;
  std::size_t before_ = 0;
};

// The C library keeps up to 40 MiB of stacks of the dead, of which some pages each were touched: with its own
// malloc this program is left with 5 MiB after 200 threads, and with 13 to 17 after 2,000.
constexpr std::size_t kMost = 5 * kMiB;
constexpr std::size_t kMostOfMany = 13 * kMiB;

TEST_F(DeadThreads, LeaveNothingBeyondATrim) {
  LiveAndDie(200);
  api::Trim();
  EXPECT_LE(Left() * 1024, kMost);
}

TEST_F(DeadThreads, LeaveNothingForLong) {
  constexpr unsigned kThreads = 2000;
  LiveAndDie(kThreads);
  EXPECT_TRUE(Within(2, [this] { return IsSmall(kMostOfMany); })) << Left() << " KiB";
}

// A call for the test below.
TEST_F(DeadThreads, DISABLED_WithoutAPurger) {
  LiveAndDie(2000);
  EXPECT_LE(Left() * 1024, kMostOfMany + kMost);
}
TEST_F(DeadThreads, LeaveLittleWithoutAPurger) {
  char program[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  const ChildResult result = RunChild(
      {program, "--gtest_filter=DeadThreads.DISABLED_WithoutAPurger", "--gtest_also_run_disabled_tests"},
      {{"HZ_BACKGROUND", "0"}});
  EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
  EXPECT_NE(std::string::npos, result.out.find("1 test from 1 test suite ran.")) << result.out;
}

}  // namespace
}  // namespace hz_test
