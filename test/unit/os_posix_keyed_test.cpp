// SPDX-License-Identifier: Apache-2.0
//
// What each thread has behind a thread-specific key (src/os/posix_keyed.hpp), alone: from a thread's first
// use to the last of the rounds in which the destructors of its keys are called.
#include "os/posix_keyed.hpp"

#include <gtest/gtest.h>
#include <limits.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/sanitizers.hpp"

namespace hz_test {
namespace {

// A kind apart for each test, because each has a table of its own.
template <int kKind>
struct Notes {
  int value = 7;
  bool over = true;

  static constexpr Notes late() { return {.value = -1}; }
  bool is_over() const { return over; }
};
template <int kKind>
using Keyed = hz::os::Keyed<Notes<kKind>>;

class OsPosixKeyed : public testing::Test {
 protected:
  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "it forgets a thread before the last destructors of its keys";
  }
};

TEST_F(OsPosixKeyed, IsEachThreadsOwn) {
  std::mutex lock;
  std::set<void*> addresses;
  std::vector<std::thread> threads;
  std::atomic<int> there{0};
  for (int i = 0; i < 100; ++i) {  // more than are in the table at first
    threads.emplace_back([&, i] {
      auto& mine = Keyed<1>::mine();
      EXPECT_EQ(mine.value, 7);
      mine.value = i;
      {
        const std::lock_guard hold(lock);
        addresses.insert(&mine);
      }
      ++there;
      while (there != 100) std::this_thread::yield();
      EXPECT_EQ(Keyed<1>::mine().value, i);
      EXPECT_EQ(&Keyed<1>::mine(), &mine);
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(addresses.size(), 100u);
  EXPECT_EQ(Keyed<1>::in_use(), 0u);
}

TEST_F(OsPosixKeyed, IsMadeAnewForTheNextThread) {
  void* first = nullptr;
  std::thread([&] {
    first = &Keyed<2>::mine();
    Keyed<2>::mine().value = 3;
  }).join();
  std::thread([&] {
    EXPECT_EQ(&Keyed<2>::mine(), first);
    EXPECT_EQ(Keyed<2>::mine().value, 7);
  }).join();
}

pthread_key_t round_key;
std::vector<int> seen;
template <int kKind>
void look(void* left) {
  seen.push_back(Keyed<kKind>::mine().value);
  pthread_setspecific(round_key, static_cast<char*>(left) - 1);
}
// What a thread sees that says 5 while it runs, in each round of destructors.
template <int kKind>
std::vector<int> SeenAtTheEnd(bool over) {
  seen.clear();
  std::thread([&] {
    Keyed<kKind>::mine() = {.value = 5, .over = over};
    pthread_key_create(&round_key, &look<kKind>);  // behind ours: called after it
    pthread_setspecific(round_key, reinterpret_cast<void*>(100));
  }).join();
  pthread_key_delete(round_key);
  return seen;
}

TEST_F(OsPosixKeyed, StaysForTheDestructorsOfTwoRounds) {
  std::vector<int> expected(PTHREAD_DESTRUCTOR_ITERATIONS, -1);
  expected[0] = expected[1] = 5;
  EXPECT_EQ(SeenAtTheEnd<3>(true), expected);
  EXPECT_EQ(Keyed<3>::in_use(), 0u);
}

TEST_F(OsPosixKeyed, StaysUntilTheEndHasBeenSeenTo) {
  EXPECT_EQ(SeenAtTheEnd<4>(false), std::vector<int>(PTHREAD_DESTRUCTOR_ITERATIONS, 5));
  EXPECT_EQ(Keyed<4>::in_use(), 1u);
}

TEST_F(OsPosixKeyed, IsSharedByThoseThatComeWhenNoKeyIsLeft) {
  std::vector<pthread_key_t> keys;
  for (pthread_key_t key; pthread_key_create(&key, nullptr) == 0;) keys.push_back(key);
  auto& mine = Keyed<5>::mine();
  EXPECT_EQ(mine.value, -1);
  std::thread([&] { EXPECT_EQ(&Keyed<5>::mine(), &mine); }).join();
  for (const pthread_key_t key : keys) pthread_key_delete(key);
  EXPECT_EQ(Keyed<5>::mine().value, 7);
}

}  // namespace
}  // namespace hz_test
