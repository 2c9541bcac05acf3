// SPDX-License-Identifier: Apache-2.0
//
// An owner that does not run while others free its blocks: a signal handler holds it wherever it was, also in
// the middle of malloc; and a whole process that is stopped and continued. Others go on unless the owner was
// caught with a lock, and when it runs again nothing is lost.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"
#include "support/line.hpp"

namespace hz_test {
namespace {

constexpr unsigned kStrangers = 2;
constexpr unsigned kPublished = 600;
constexpr std::int64_t kPatience = 1000;  // milliseconds

std::atomic<bool> held{false};
std::atomic<unsigned> done{0}, blocked{0};

std::int64_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Waits for the others, but not for ever: the owner may hold what they need.
void Hold(int) {
  const int saved = errno;
  const std::int64_t start = Now();
  held = true;
  while (done != kStrangers && Now() - start <= kPatience) sched_yield();
  if (done != kStrangers) ++blocked;
  errno = saved;
}

void Work(Random& random, unsigned count) {
  Block live[50];
  for (unsigned i = 0; i < count; ++i) {
    Block& block = live[Below(random, 50)];
    CheckAndFree(block);
    block = MakeBlock(LogSize(random, Below(random, 50) == 0 ? 21 : 12));
  }
  for (const Block& block : live) CheckAndFree(block);
}

TEST(HeldOwner, OthersGoOnAndNothingIsLost) {
  const Watchdog watchdog;
  struct sigaction action = {};
  action.sa_handler = &Hold;
  ASSERT_EQ(0, sigaction(SIGUSR2, &action, nullptr));
  const unsigned rounds = Long() ? 3000 : std::max(8U, Rounds(300, 30));
  // It is with one lock that the owner is caught most often. Of few rounds chance may make more of them.
  const unsigned most = rounds / (IsTiny() ? 2 : 4) + 2;
  std::vector<Block> published(kPublished);
  std::atomic<bool> over{false};
  Barrier turn(kStrangers + 2);
  {
    Thread owner([&] {
      Random random(Seed());
      for (unsigned round = 0; round < rounds; ++round) {
        for (Block& block : published) block = MakeBlock(LogSize(random, 11));
        turn.Wait();
        while (!over) Work(random, 200);
        turn.Wait();
      }
    });
    std::vector<std::unique_ptr<Thread>> strangers;
    for (unsigned i = 0; i < kStrangers; ++i) {
      strangers.push_back(std::make_unique<Thread>([&, i] {
        Random random(Seed() + 1 + i);
        for (unsigned round = 0; round < rounds; ++round) {
          turn.Wait();
          while (!held) sched_yield();
          for (unsigned n = i; n < kPublished; n += kStrangers) CheckAndFree(published[n]);
          Work(random, 100);
          ++done;
          turn.Wait();
        }
      }));
    }
    Random random(Seed() + 99);
    for (unsigned round = 0; round < rounds; ++round) {
      held = over = false;
      done = 0;
      turn.Wait();
      for (std::size_t spin = Below(random, 20); spin-- > 0;) sched_yield();
      ASSERT_EQ(0, pthread_kill(owner.Handle(), SIGUSR2));
      while (done != kStrangers) sched_yield();
      over = true;
      turn.Wait();
      if (blocked > most) break;
    }
    ASSERT_LE(blocked, most) << "others wait for a thread that is not in their way";
  }
  ExpectNothingLost();
}

// In the child: four threads that pass blocks until they are told to stop.
std::atomic<bool> stop{false};
int PassBlocks(int ready) {
  std::signal(SIGUSR1, [](int) { stop = true; });
  Exchange passed;
  bool sound = true;
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (unsigned i = 0; i < 4; ++i) {
      threads.push_back(std::make_unique<Thread>([&, i] {
        Random random(i);
        while (!stop) {
          for (int n = 0; n < 100; ++n)
            passed.Put(MakeBlock(LogSize(random, Below(random, 100) == 0 ? 20 : 12)));
          Block block;
          for (int n = 0; n < 100 && passed.Take(random, block); ++n) CheckAndFree(block);
        }
      }));
    }
    if (write(ready, "r", 1) != 1) return 3;
  }
  for (const Block& block : passed.TakeAll()) {
    sound = sound && Intact(block);
    api::Free(block.at);
  }
  ExpectNothingLost();
  return sound && !::testing::Test::HasFailure() ? 0 : 1;
}

TEST(HeldOwner, ProcessIsStoppedAndContinued) {
  if (kThreadSanitizer) GTEST_SKIP() << "it does not allow threads in the child of a fork";
  const Watchdog watchdog;
  int ready[2];
  ASSERT_EQ(0, pipe(ready));
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(200);
    _exit(PassBlocks(ready[1]));
  }
  char told = 0;
  ASSERT_EQ(1, read(ready[0], &told, 1));
  const unsigned rounds = Long() ? 5000 : Rounds(500, 50);
  int status = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    ASSERT_EQ(0, kill(pid, SIGSTOP));
    ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
    ASSERT_TRUE(WIFSTOPPED(status)) << status;
    ASSERT_EQ(0, kill(pid, SIGCONT));
    usleep(200);
  }
  ASSERT_EQ(0, kill(pid, SIGUSR1));
  ASSERT_EQ(pid, waitpid(pid, &status, 0));
  EXPECT_EQ(0, status);
}

}  // namespace
}  // namespace hz_test
