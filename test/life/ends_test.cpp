// SPDX-License-Identifier: Apache-2.0
//
// How processes end: main is gone before its threads, exit is called from a destructor, while others are
// busy, and what handlers and static destructors allocate and free on the way. Nothing hangs, and nothing is
// said.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "life/scene.hpp"
#include "stress/blocks.hpp"

namespace hz_test {
namespace {

constexpr int kCode = 42;
constexpr std::size_t kSizes[] = {1, 40, 1000, 30000, 200000, std::size_t{5} << 20};

// No word of gtest's in a scene: nobody reads it.
Block Make(std::size_t size) {
  const Block block = {api::Malloc(size), size, FreshSeed()};
  Require(block.at != nullptr, "malloc has memory");
  FillPattern(block.at, size, block.seed);
  return block;
}
void Drop(const Block& block) {
  Require(Intact(block), "a block is intact");
  api::Free(block.at);
}
void Use() {
  Block blocks[60];
  for (std::size_t i = 0; i < 60; ++i) blocks[i] = Make(kSizes[i % 4] + i);
  for (const Block& block : blocks) Drop(block);
}

// Blocks of every size that somebody made earlier, and somebody else frees.
struct Estate {
  Block blocks[6];
  void Fill() {
    for (int i = 0; i < 6; ++i) blocks[i] = Make(kSizes[i]);
  }
  void Settle() {
    for (const Block& block : blocks) Drop(block);
  }
};
Estate estate;

// Threads that work until the process is gone.
void StartChurn(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) {
    std::thread([i] {
      Random random(i);
      for (;;) {
        Block blocks[200];
        for (Block& block : blocks) block = Make(LogSize(random, Below(random, 200) == 0 ? 18 : 11));
        for (const Block& block : blocks) Drop(block);
      }
    }).detach();
  }
}

const Scene main_leaves("MainLeaves", [] {
  estate.Fill();
  const pthread_t main_thread = pthread_self();
  std::thread([main_thread] {
    Require(pthread_join(main_thread, nullptr) == 0, "the main thread can be joined");
    Use();
    estate.Settle();
    std::thread(&Use).join();
    std::exit(kCode);
  }).detach();
  pthread_exit(nullptr);
});
TEST(End, MainLeavesBeforeItsThreads) { ExpectScene("MainLeaves", kCode); }

const Scene all_leave("AllLeave", [] {
  estate.Fill();
  for (int i = 0; i < 4; ++i) std::thread(&Use).detach();
  std::atexit([] {
    Use();
    estate.Settle();
  });
  pthread_exit(nullptr);  // the last thread to end ends the process, with code 0
});
TEST(End, EveryThreadLeaves) { ExpectScene("AllLeave", 0); }
// What is run then has the program's files.
TEST(End, EveryThreadLeavesAndControlIsThere) {
  if (OnLibc()) GTEST_SKIP() << "it has none";
  const ChildResult result = RunScene("AllLeave", {{"HZ_CONTROL", "1"}, {"HZ_STATS", "1"}});
  EXPECT_EQ(0, result.exit_code) << result.signal;
  EXPECT_EQ(0U, result.err.find("hz: stats line=" + ExpectedLine() + " ")) << result.err;
}

// With much in use, long after whatever works in the background has come to rest.
const Scene all_leave_late("AllLeaveLate", [] {
  constexpr int kLarge = 300;
  for (int i = 0; i < kLarge; ++i) Make(100'000);
  std::thread([] {
    Use();
    sleep(4);
  }).detach();
  Use();
  pthread_exit(nullptr);
});
TEST(End, EveryThreadLeavesAfterAPause) { ExpectScene("AllLeaveLate", 0); }

void ExitFromKey(void*) {
  Use();
  estate.Settle();
  std::exit(kCode);
}
const Scene key_exits("KeyExits", [] {
  pthread_key_t key = 0;
  Require(pthread_key_create(&key, &ExitFromKey) == 0, "a key");
  StartChurn(2);
  std::thread([key] {
    estate.Fill();
    pthread_setspecific(key, &estate);
  }).join();
  Require(false, "the destructor has ended the process");
});
TEST(End, ExitInADestructorOfThreadSpecificData) { ExpectScene("KeyExits", kCode); }

struct ExitsWhenGone {
  bool armed = false;
  ~ExitsWhenGone() {
    if (!armed) return;
    Use();
    estate.Settle();
    std::exit(kCode);
  }
};
thread_local ExitsWhenGone exits_when_gone;
const Scene local_exits("LocalExits", [] {
  StartChurn(2);
  std::thread([] {
    estate.Fill();
    exits_when_gone.armed = true;
  }).join();
  Require(false, "the destructor has ended the process");
});
TEST(End, ExitInADestructorOfAThreadLocal) { ExpectScene("LocalExits", kCode); }

const Scene busy("Busy", [] {
  StartChurn(6);
  usleep(static_cast<useconds_t>(getpid() % 16 * 1000));  // another moment in every run
  std::atexit(&Use);
  std::exit(kCode);
});
TEST(End, ExitWhileOthersAreBusy) {
  for (int run = 0; run < 25; ++run) ExpectScene("Busy", kCode);
}

const Scene quick("Quick", [] {
  StartChurn(2);
  at_quick_exit(&Use);
  std::quick_exit(kCode);
});
TEST(End, QuickExit) {
  const ChildResult result = RunScene("Quick");
  EXPECT_EQ(kCode, result.exit_code);
  EXPECT_EQ("", result.err);
}

// Handlers and destructors of static objects run in the reverse order of their making.
int order = 0;
void Third() {
  Require(++order == 3, "third");
  Use();
  estate.Settle();
  estate.Fill();
}
void First() {
  Require(++order == 1, "first");
  std::thread(&Use).join();
  std::atexit([] { Require(++order == 2, "second: made while handlers run"); });
}
struct Static {
  bool armed = false;
  Block made_early = Make(777);  // before main
  ~Static() {
    if (armed) {
      Require(++order == 4, "fourth: static objects that are older than the handlers");
      estate.Settle();
      Use();
    }
    Drop(made_early);
  }
};
Static older;
const Scene handlers("Handlers", [] {
  estate.Fill();
  older.armed = true;
  std::atexit(&Third);
  std::atexit(&First);
  std::exit(kCode);
});
TEST(End, HandlersAndStaticDestructorsAllocate) { ExpectScene("Handlers", kCode); }

}  // namespace
}  // namespace hz_test
