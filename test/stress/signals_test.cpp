// SPDX-License-Identifier: Apache-2.0
//
// Signals interrupt the heap anywhere, also where it waits in the kernel; a handler that does not allocate
// must not disturb it.
#include <gtest/gtest.h>
#include <sys/time.h>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"

namespace hz_test {
namespace {

std::atomic<unsigned> signals{0};

void Count(int) { signals.fetch_add(1, std::memory_order_relaxed); }

TEST(Signals, DoNotDisturbTheHeap) {
  const Watchdog watchdog;
  constexpr unsigned kWorkers = 3;
  const unsigned wanted = Rounds(1000000, 5000);
  struct sigaction action = {};
  action.sa_handler = &Count;
  const int queued = SIGRTMIN;  // of the others, one that arrives while one is pending is lost
  ASSERT_EQ(0, sigaction(queued, &action, nullptr));
  action.sa_handler = [](int) {};
  ASSERT_EQ(0, sigaction(SIGPROF, &action, nullptr));
  const itimerval timer = {{0, 1000}, {0, 1000}};
  ASSERT_EQ(0, setitimer(ITIMER_PROF, &timer, nullptr));
  std::atomic<bool> stop{false};
  Exchange passed;
  {
    std::vector<std::unique_ptr<Thread>> workers;
    for (unsigned i = 0; i < kWorkers; ++i) {
      workers.push_back(std::make_unique<Thread>([&, i] {
        Random random(Seed() + i);
        while (!stop) {
          for (int n = 0; n < 100; ++n)
            passed.Put(MakeBlock(LogSize(random, Below(random, 100) == 0 ? 22 : 12)));
          Block block;
          for (int n = 0; n < 100 && passed.Take(random, block); ++n) CheckAndFree(block);
        }
      }));
    }
    for (unsigned sent = 0; sent < wanted;) {
      const int error = pthread_kill(workers[sent % kWorkers]->Handle(), queued);
      ASSERT_TRUE(error == 0 || error == EAGAIN) << error;
      if (error == 0) {
        ++sent;
      } else {
        sched_yield();  // the queue is full
      }
    }
    // ThreadSanitizer keeps one signal of a kind waiting and drops the rest.
    while (!kThreadSanitizer && signals.load(std::memory_order_relaxed) < wanted) sched_yield();
    stop = true;
  }
  const itimerval off = {};
  setitimer(ITIMER_PROF, &off, nullptr);
  for (const Block& block : passed.TakeAll()) CheckAndFree(block);
  ExpectNothingLost();
}

}  // namespace
}  // namespace hz_test
