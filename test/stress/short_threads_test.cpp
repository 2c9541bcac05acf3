// SPDX-License-Identifier: Apache-2.0
//
// Threads without number: each allocates a little and ends, and the process does not grow. Destructors of
// thread-specific data allocate and free after the heap has heard of the thread's end, or before, or without
// the thread ever having allocated.
#include <gtest/gtest.h>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr unsigned kAtOnce = 4;

// Starts `threads` threads, a few at a time, each of which runs work(number).
template <class Work>
void InTurn(unsigned threads, Work work) {
  for (unsigned done = 0; done < threads; done += kAtOnce) {
    Together(kAtOnce, [&](unsigned i) { work(done + i); });
  }
}

TEST(ShortThreads, DoNotGrowTheProcess) {
  const Watchdog watchdog;
  const auto work = [](unsigned number) {
    Block blocks[12];
    for (unsigned i = 0; i < 12; ++i) blocks[i] = MakeBlock((number * 37 + i * 131) % 3000 + 1);
    for (const Block& block : blocks) CheckAndFree(block);
  };
  const unsigned threads = Rounds(Long() ? 100000 : 30000, 5000);
  InTurn(threads / 20, work);
  const std::size_t before = RssBytes();
  InTurn(threads, work);
  const std::size_t after = RssBytes();
  if (!kUnderTool) {
    EXPECT_LT(after, before + 8 * kMiB);
  }
  ExpectNothingLost();
}

// Thread-specific data whose destructor allocates, frees, and asks to be called again until `rounds` are
// over.
class Keys {
 public:
  static constexpr int kKeys = 3;

  void Create() {
    for (pthread_key_t& key : keys_) ASSERT_EQ(0, pthread_key_create(&key, &Keys::Destructor));
  }
  void Delete() {
    for (pthread_key_t key : keys_) pthread_key_delete(key);
  }
  struct Value {
    pthread_key_t key = 0;
    int rounds = 0;
    int first_use = 0;  // allocates from this round on
    Block kept;
  };
  // `values` live longer than the thread.
  void Arm(Value* values, int rounds, int first_use) {
    for (int i = 0; i < kKeys; ++i) {
      values[i].key = keys_[i];
      values[i].rounds = rounds;
      values[i].first_use = first_use;
      pthread_setspecific(keys_[i], &values[i]);
    }
  }

 private:
  static void Destructor(void* data) {
    auto* value = static_cast<Value*>(data);
    if (--value->first_use <= 0) {
      if (value->kept.at != nullptr) CheckAndFree(value->kept);
      Block blocks[20];
      for (std::size_t i = 0; i < 20; ++i) blocks[i] = MakeBlock(i * 97 + 1);
      for (const Block& block : blocks) CheckAndFree(block);
      value->kept = MakeBlock(200);
    }
    if (--value->rounds != 0) pthread_setspecific(value->key, value);
  }

  pthread_key_t keys_[kKeys] = {};
};

// The heap's own key is older than `late` and may be older than `early`, so its turn comes between theirs.
Keys early;
const bool early_created = [] {
  early.Create();
  return true;
}();

// ThreadSanitizer leaves a thread in the last round, and code that it watches must not run after it.
constexpr int kRounds = PTHREAD_DESTRUCTOR_ITERATIONS - (kThreadSanitizer ? 1 : 0);

void RunDestructors(int rounds, int first_use) {
  ASSERT_TRUE(early_created);
  if (kThreadSanitizer && first_use > 1)
    GTEST_SKIP() << "ThreadSanitizer is gone before the heap may be told";
  const Watchdog watchdog;
  Keys late;
  late.Create();
  constexpr unsigned kThreads = 200;
  struct Values {
    Keys::Value early[Keys::kKeys], late[Keys::kKeys];
  };
  std::vector<Values> values(kThreads);
  CheckAndFree(MakeBlock(1));
  const std::uint64_t threads = HeapStats().threads;
  InTurn(kThreads, [&](unsigned number) {
    if (first_use == 0) CheckAndFree(MakeBlock(number % 1000 + 1));
    early.Arm(values[number].early, rounds, first_use);
    late.Arm(values[number].late, rounds, first_use);
  });
  // Nobody can tell the heap of the end of a thread that first allocates when all rounds are over.
  if (first_use < kRounds) {
    EXPECT_EQ(threads, HeapStats().threads) << "a thread's end went unnoticed: its state is lost";
  }
  for (const Values& value : values) {
    for (const Keys::Value& v : value.early) CheckAndFree(v.kept);
    for (const Keys::Value& v : value.late) CheckAndFree(v.kept);
  }
  late.Delete();
  ExpectNothingLost();
}

TEST(ShortThreads, DestructorsAllocateOnce) { RunDestructors(1, 0); }
TEST(ShortThreads, DestructorsAllocateInEveryRound) { RunDestructors(kRounds, 0); }
TEST(ShortThreads, DestructorsAllocateFirst) { RunDestructors(1, 1); }
TEST(ShortThreads, DestructorsAllocateFirstInTheSecondRound) { RunDestructors(kRounds, 2); }
TEST(ShortThreads, DestructorsAllocateFirstInTheThirdRound) { RunDestructors(kRounds, 3); }
TEST(ShortThreads, DestructorsAllocateFirstInTheLastRound) { RunDestructors(kRounds, kRounds); }

}  // namespace
}  // namespace hz_test
