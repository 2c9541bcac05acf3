// SPDX-License-Identifier: Apache-2.0
//
// The lock of four bytes.
#include "os/lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/fork.hpp"

namespace hz_test {
namespace {

TEST(Lock, IsFourBytes) { EXPECT_EQ(4u, sizeof(hz::os::Lock)); }

TEST(Lock, ExcludesOthers) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 20000;
  hz::os::LockOf<hz::os::Rank::kSource> lock;
  int plain = 0;  // not atomic: lost updates and ThreadSanitizer tell
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kTimes; ++n) {
        const hz::os::Guarded hold(lock);
        ++plain;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kThreads * kTimes, plain);
}

TEST(Lock, SleepersAreWoken) {
  constexpr int kSleepers = 3;
  hz::os::LockOf<hz::os::Rank::kSource> lock;
  std::atomic<int> entered{0};
  lock.lock();
  std::vector<std::thread> threads;
  for (int i = 0; i < kSleepers; ++i) {
    threads.emplace_back([&] {
      const hz::os::Guarded hold(lock);
      ++entered;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // long enough for them to stop spinning
  EXPECT_EQ(0, entered.load());
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kSleepers, entered.load());
}

TEST(Lock, GivesUpWhenTheTimeIsOver) {
  hz::os::LockOf<hz::os::Rank::kSource> lock;
  EXPECT_TRUE(lock.lock_within(1));
  EXPECT_FALSE(lock.lock_within(1)) << "held, and by this thread";
  EXPECT_FALSE(lock.lock_within(50));
  lock.unlock();
  EXPECT_TRUE(lock.lock_within(0));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    lock.unlock();
  });
  EXPECT_TRUE(lock.lock_within(60'000));
  other.join();
  lock.unlock();
}

TEST(Ranks, AreWaitedForUpwards) {
  using hz::os::Rank;
  hz::os::Ranks ranks;
  EXPECT_TRUE(ranks.may_wait_for(Rank::kOpening));
  const auto none = ranks.add(Rank::kState);
  EXPECT_FALSE(ranks.may_wait_for(Rank::kThreads));
  EXPECT_FALSE(ranks.may_wait_for(Rank::kState));
  EXPECT_TRUE(ranks.may_wait_for(Rank::kShelf));
  const auto state = ranks.add(Rank::kShelf);
  EXPECT_TRUE(ranks.may_wait_for(Rank::kShelf)) << "of two shelves, the one at the higher address";
  EXPECT_FALSE(ranks.may_wait_for(Rank::kPurger));
  EXPECT_TRUE(ranks.may_wait_for(Rank::kSource));
  ranks.remove(state);
  EXPECT_TRUE(ranks.may_wait_for(Rank::kPurger));
  ranks.remove(none);
  EXPECT_TRUE(ranks.may_wait_for(Rank::kThreads));
}

TEST(Ranks, StopADebugBuildThatWaitsDownwards) {
  if (!hz::kDebug) GTEST_SKIP() << "other builds do not check";
  hz::os::LockOf<hz::os::Rank::kState> state;
  hz::os::LockOf<hz::os::Rank::kSource> source;
  {
    const hz::os::Guarded lower(state);
    const hz::os::Guarded upper(source);
  }
  const auto downwards = [&] {
    const hz::os::Guarded upper(source);
    const hz::os::Guarded lower(state);
  };
  EXPECT_DEATH(downwards(), "");
}

TEST(Lock, AChildMayReleaseWhatItsParentTook) {
  hz::os::LockOf<hz::os::Rank::kSource> lock;
  lock.lock();
  if (!kForks) GTEST_SKIP() << "there are no forks";
  EXPECT_EQ(7, InAFork([&] {
              lock.unlock();
              lock.lock();
              lock.unlock();
              return 7;
            }));
  lock.unlock();
}

// Contended when the parent forks: the child's unlock wakes nobody, and the lock is free again.
TEST(Lock, AChildMayReleaseAContendedOne) {
  if (!kForks) GTEST_SKIP() << "there are no forks";
  hz::os::LockOf<hz::os::Rank::kSource> lock;
  lock.lock();
  std::thread sleeper([&] { const hz::os::Guarded hold(lock); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(7, InAFork([&] {
              lock.unlock();
              lock.lock();
              return 7;
            }));
  lock.unlock();
  sleeper.join();
}

}  // namespace
}  // namespace hz_test
