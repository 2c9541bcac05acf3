// SPDX-License-Identifier: Apache-2.0
//
// The purger and the ends and copies of its process: fork, exit and exec at any moment of its work.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "returns/service.hpp"
#include "support/child.hpp"

namespace hz_test {
namespace {

enum Outcome { kSound = 0, kDamaged = 1, kHasPurger = 2, kNotGivenBack = 3, kNoPurger = 4, kNotFilled = 5 };

int StatusOf(pid_t pid) {
  int status = -1;
  EXPECT_EQ(pid, waitpid(pid, &status, 0));
  return status;
}

// No word of gtest's: in the child nobody reads it.
bool UseHeap(std::uint64_t seed) {
  Random random(seed);
  Block blocks[200];
  bool sound = true;
  for (Block& block : blocks) {
    block.size = LogSize(random, 17);
    block.seed = random();
    block.at = api::Malloc(block.size);
    if (block.at == nullptr) return false;
    FillPattern(block.at, block.size, block.seed);
  }
  for (const Block& block : blocks) {
    sound = sound && Intact(block);
    api::Free(block.at);
  }
  return sound;
}

// A child with threads and a load of its own: does its memory come back, too?
int LiveAgain() {
  std::signal(SIGALRM, SIG_DFL);
  alarm(100);
  if (Purger() != 0 || TaskCount() != 1) return kHasPurger;
  if (!UseHeap(1)) return kDamaged;
  if (kThreadSanitizer) return kSound;  // it does not allow threads here
  Crew crew(4);
  std::vector<Load> loads;
  for (unsigned i = 0; i < 4; ++i) loads.emplace_back(kServiceBytes / 4, Sizes::kMixed);
  api::Trim();  // what it has from its parent
  const std::size_t before = RssBytes();
  crew.Run([&](unsigned i) { loads[i].Make(i); });
  const std::size_t full = RssBytes();
  crew.Run([&](unsigned i) { loads[i].Free(); });
  const auto small = [&] { return RssBytes() <= before + 16 * kMiB; };
  if (kUnderTool) return kSound;
  if (full < before + kServiceBytes / 2) return kNotFilled;
  return Within(2, small) ? kSound : kNotGivenBack;
}

TEST(PurgerAndFork, ChildHasNoneAndMayStartItsOwn) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  if (kThreadSanitizer) GTEST_SKIP() << "it does not allow threads in the child of a fork";
  const Watchdog watchdog;
  Service service;
  ASSERT_TRUE(service.WakePurger());
  const pid_t pid = fork();
  if (pid == 0) _exit(LiveAgain());
  EXPECT_EQ(kSound, StatusOf(pid));
  EXPECT_TRUE(service.WakePurger()) << "the parent's goes on, or comes again";
}

// The purger is at work all the time: threads churn and sleep in turn, and the process forks.
TEST(PurgerAndFork, HundredsOfForksWhileItWorks) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  if (kThreadSanitizer) GTEST_SKIP() << "it does not allow threads in the child of a fork";
  const Watchdog watchdog(Long() ? 3000 : 240);
  std::atomic<bool> stop{false};
  {
    Service service(8);
    ASSERT_TRUE(service.WakePurger());
    service.Threads().Start([&stop](unsigned i) {
      Load load(kServiceBytes / 16, Sizes::kMixed);
      for (std::uint64_t turn = 0; !stop; ++turn) {
        load.Make(turn * 8 + i);
        load.Free();
        SleepFor(0.02 * static_cast<double>(i));
      }
    });
    const unsigned forks = Long() ? 5000 : Rounds(200, 40);
    for (unsigned number = 0; number < forks && !::testing::Test::HasFailure(); ++number) {
      const pid_t pid = fork();
      if (pid == 0) {
        std::signal(SIGALRM, SIG_DFL);
        alarm(60);
        _exit(Purger() != 0 ? kHasPurger : UseHeap(number) ? kSound : kDamaged);
      }
      EXPECT_EQ(kSound, StatusOf(pid)) << "child " << number;
      SleepFor(0.001 * static_cast<double>(number % 10));
    }
    stop = true;
    service.Threads().Wait();
  }
  ExpectNothingLost();
}

// Starts the purger, then leaves after some milliseconds. What happens is in the environment.
TEST(PurgerAndExit, DISABLED_Leave) {
  const std::uint64_t wait = NumberFrom("HZ_TEST_WAIT", 0);
  Service service;
  if (!service.WakePurger()) _exit(kNoPurger);
  service.Fill();
  service.Empty();
  SleepFor(0.001 * static_cast<double>(wait));
  if (NumberFrom("HZ_TEST_EXEC", 0) == 0) std::exit(kSound);
  // The new program must be alone; it may have another C library.
  unsetenv("LD_PRELOAD");
  execl("/bin/sh", "sh", "-c", "set -- /proc/$$/task/*; exit $(($# - 1))", nullptr);
  _exit(kDamaged);
}

void Leave(const char* exec) {
  char program[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  for (unsigned turn = 0; turn < (Long() ? 200U : Rounds(8, 3)); ++turn) {
    const ChildResult result =
        RunChild({program, "--gtest_filter=PurgerAndExit.DISABLED_Leave", "--gtest_also_run_disabled_tests"},
                 {{"HZ_TEST_WAIT", std::to_string(turn * 37 % 250)}, {"HZ_TEST_EXEC", exec}});
    ASSERT_EQ(kSound, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
  }
}

TEST(PurgerAndExit, ExitsWhileItWorks) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  Leave("0");
}
TEST(PurgerAndExit, ExecsWhileItWorks) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  Leave("1");
}

}  // namespace
}  // namespace hz_test
