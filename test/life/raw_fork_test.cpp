// SPDX-License-Identifier: Apache-2.0
//
// A child that no fork handler is told of, by clone(2) or _Fork(3). Where the process never had a thread,
// nobody but its one thread can hold a lock of the heap. Where it had some, and has none left, our purger may
// be anywhere: the child finds out, and its heap works, and so does everything that the parent gave it. And a
// child of a signal handler that interrupted the heap: our fork handler may not wait for who waits for it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "life/scene.hpp"
#include "returns/patience.hpp"
#include "returns/tasks.hpp"
#include "stress/scale.hpp"
#include "support/heap_api.hpp"
#include "support/raw_fork.hpp"

namespace hz_test {
namespace {

constexpr unsigned kForks = 20;
constexpr int kForksInAHandler = 100;
constexpr unsigned kBlocks = 20'000;

void* blocks[kBlocks];

void Fill() {
  for (void*& block : blocks) {
    block = api::Malloc(1000);
    Require(block != nullptr, "there is memory");
    std::memset(block, 1, 1000);
  }
}
void Empty() {
  for (void* block : blocks) api::Free(block);
}

using Fork = pid_t (*)();
Fork By_Fork() { return reinterpret_cast<Fork>(dlsym(RTLD_DEFAULT, "_Fork")); }  // since glibc 2.34

// All classes and a huge block; what is handed out twice does not keep what was written.
void UseTheHeap() {
  constexpr unsigned kMany = 150;
  static unsigned char* held[kMany];
  static std::size_t sizes[kMany];
  for (unsigned round = 0; round < 2; ++round) {
    for (unsigned i = 0; i < kMany; ++i) {
      sizes[i] = i == 0 ? std::size_t{5} << 20 : 16 + i * (round + 1) * 167 % 40'000;
      held[i] = static_cast<unsigned char*>(api::Malloc(sizes[i]));
      Require(held[i] != nullptr, "there is memory in the child");
      std::memset(held[i], static_cast<int>(i % 251), sizes[i]);
    }
    for (unsigned i = 0; i < kMany; ++i) {
      for (std::size_t at = 0; at < sizes[i]; at += sizes[i] / 7 + 1)
        Require(held[i][at] == i % 251, "no block of the child's was handed out twice");
      api::Free(held[i]);
    }
  }
}

void ExpectWholeChild(pid_t child) { Require(ExitCodeOf(child) == 7, "its heap works"); }

void ForkAgainAndAgain(Fork fork_here) {
  for (unsigned number = 0; number < kForks; ++number) {
    Fill();
    if (number % 2 == 0) Empty();
    Require(TaskCount() == 1, "it never had a thread, and has none of ours");
    const pid_t child = fork_here();
    if (child == 0) {
      alarm(20);
      if (number % 2 != 0) Empty();
      UseTheHeap();
      _exit(7);
    }
    ExpectWholeChild(child);
    if (number % 2 != 0) Empty();
  }
}

// Threads that use the heap, so that the purger starts, and end. What they leave, and what this one frees, is
// what it works at while this one forks, sooner or later after that.
void LetThreadsComeAndGo() {
  std::vector<std::thread> crew;
  for (unsigned i = 0; i < 3; ++i) {
    crew.emplace_back([] {
      void* mine[2000];
      for (void*& block : mine) {
        block = api::Malloc(4000);
        std::memset(block, 1, 4000);
      }
      for (void* block : mine) api::Free(block);
    });
  }
  for (std::thread& thread : crew) thread.join();
}

void ForkBesideThePurger() {
  const Fork by_fork = By_Fork();
  const unsigned forks = Rounds(150, 50);
  unsigned beside = 0;
  for (unsigned number = 0; number < forks; ++number) {
    Fill();
    if (number % 10 == 0) LetThreadsComeAndGo();
    if (number % 2 == 0) Empty();
    SleepFor(0.0001 * (number * 37 % 101));
    if (Purger() != 0) ++beside;
    const pid_t child = by_fork != nullptr && number % 4 < 2 ? by_fork() : ForkByClone();
    if (child == 0) {
      alarm(20);
      if (number % 2 != 0) Empty();
      UseTheHeap();
      if (number % 3 == 0) std::thread(&UseTheHeap).join();
      if (number % 5 == 0) api::Trim();
      _exit(7);
    }
    ExpectWholeChild(child);
    if (number % 2 != 0) Empty();
  }
  Require(beside > forks / 4, "the purger was there");
}

// What takes locks most of the time, and the system's work in between.
void CrossWithoutEnd(const volatile sig_atomic_t& over) {
  while (over == 0) {
    void* held[8];
    for (unsigned i = 0; i < 8; ++i) held[i] = api::Malloc((i + 1) * 700'000);
    for (void* block : held) api::Free(block);
    const pid_t child = fork();  // is interrupted as well
    if (child == 0) _exit(7);
    ExpectWholeChild(child);
  }
}

// fork(3) may be called in a handler by POSIX of 2008, and by the C library in a process of one thread.
volatile sig_atomic_t forks_in_handler, over_in_handler;
void ForkInAHandler() {
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int) {
    const pid_t child = fork();
    if (child == 0) _exit(7);
    ExpectWholeChild(child);
    forks_in_handler = forks_in_handler + 1;
    over_in_handler = forks_in_handler >= kForksInAHandler ? 1 : 0;
  };
  Require(sigaction(SIGALRM, &action, nullptr) == 0, "there are signals");
  const itimerval each = {.it_interval = {0, 700}, .it_value = {0, 700}};
  Require(setitimer(ITIMER_REAL, &each, nullptr) == 0, "there are timers");
  CrossWithoutEnd(over_in_handler);
  const itimerval never = {};
  Require(setitimer(ITIMER_REAL, &never, nullptr) == 0, "it ends");
  UseTheHeap();
  const pid_t last = fork();
  if (last == 0) {
    alarm(20);
    UseTheHeap();
    _exit(7);
  }
  ExpectWholeChild(last);
}

const Scene in_handler("ForkInAHandler", [] { ForkInAHandler(); });
const Scene by_clone("ForkByClone", [] { ForkAgainAndAgain(&ForkByClone); });
const Scene by_fork("ForkBy_Fork", [] {
  if (By_Fork() != nullptr) ForkAgainAndAgain(By_Fork());
});
const Scene beside_purger("ForkBesideThePurger", [] { ForkBesideThePurger(); });

TEST(RawFork, ByClone) { ExpectScene("ForkByClone", 0); }
TEST(RawFork, By_Fork) { ExpectScene("ForkBy_Fork", 0); }
TEST(RawFork, InAHandler) { ExpectScene("ForkInAHandler", 0); }
TEST(RawFork, BesideThePurger) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  ExpectScene("ForkBesideThePurger", 0);
}

}  // namespace
}  // namespace hz_test
