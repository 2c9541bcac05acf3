// SPDX-License-Identifier: Apache-2.0
//
// A thread's cache is taken back while the thread stands inside of malloc or free, once for every instruction
// of their hot paths and of the beginning of the slow ones: the processor's trap flag stops the thread after
// each one, and at the chosen one another thread trims the heap. Whatever the interrupted call was about to
// do, no slot may be lost and none handed out twice.
#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <set>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"

#if defined(__x86_64__)

namespace hz_test {
namespace {

constexpr std::size_t kSize = 320;

// What the single steps of one thread and the trims of another agree on.
struct Stepping {
  std::atomic<int> step{0}, stop_at{0};
  std::atomic<bool> wanted{false}, done{false}, end{false}, reached{false};
};
Stepping stepping;

void OnStep(int, siginfo_t*, void* context) {
  if (++stepping.step != stepping.stop_at) return;
  // The rest of the call runs at full speed: a refill has 100,000 instructions, and each step costs a signal.
  constexpr greg_t kTrapFlag = 0x100;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  stepping.reached = true;
  stepping.wanted = true;
  // Inside a slow path the trim waits for our lock: then we go on first.
  for (int i = 0; i < 5 && !stepping.done; ++i) usleep(200);
}

void TrimOnDemand() {
  while (!stepping.end) {
    if (!stepping.wanted.exchange(false)) {
      usleep(50);
      continue;
    }
    api::Trim();
    stepping.done = true;
  }
}

// Runs `call` by single steps, with a trim after step `stop_at`; false if it has fewer.
template <class Call>
bool SteppedWithTrim(int stop_at, Call call) {
  stepping.step = 0;
  stepping.stop_at = stop_at;
  stepping.reached = stepping.done = false;
  __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
  call();
  __asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
  while (stepping.reached && !stepping.done) usleep(50);
  return stepping.reached;
}

class Revocation : public ::testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action = {};
    action.sa_sigaction = &OnStep;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(0, sigaction(SIGTRAP, &action, nullptr));
    stepping.end = false;
    trimmer_ = std::make_unique<Thread>(&TrimOnDemand);
  }
  void TearDown() override {
    stepping.end = true;
    trimmer_.reset();
    std::signal(SIGTRAP, SIG_DFL);
  }

  // Leaves `cached` free slots of the size in this thread's bin.
  static void Cache(unsigned cached) {
    api::Trim();
    std::vector<void*> blocks;
    for (unsigned i = 0; i < cached; ++i) blocks.push_back(api::Malloc(kSize));
    // What a refill brought along is taken out again.
    while (HeapStats().bytes_cached > 0 && blocks.size() < 4096) blocks.push_back(api::Malloc(kSize));
    for (std::size_t i = cached; i < blocks.size(); ++i) held_.push_back(blocks[i]);
    for (unsigned i = 0; i < cached; ++i) api::Free(blocks[i]);
  }

  // No two blocks share a byte, and in the end nothing is missing.
  static void ExpectWhole(std::size_t bytes_held_before) {
    std::set<void*> blocks(held_.begin(), held_.end());
    ASSERT_EQ(held_.size(), blocks.size());
    for (int i = 0; i < 300; ++i) {
      const Block block = MakeBlock(kSize);
      ASSERT_TRUE(blocks.insert(block.at).second) << "handed out twice";
    }
    for (void* block : blocks) api::Free(block);
    held_.clear();
    api::Trim();
    ASSERT_EQ(bytes_held_before, HeapStats().bytes_held) << "lost, or put back twice";
  }

  // `prepare` leaves something for `call` to work on, `after` takes what came of it.
  template <class Prepare, class Call, class After>
  static void AtEveryInstruction(Prepare prepare, Call call, After after) {
    if (kUnderTool) GTEST_SKIP() << "single steps through a sanitizer's runtime prove nothing about the heap";
    const Watchdog watchdog;
    api::Free(api::Malloc(kSize));
    api::Trim();
    const std::size_t before = HeapStats().bytes_held;
    int stop_at = 1;
    for (; stop_at < 80; ++stop_at) {
      prepare();
      const bool reached = SteppedWithTrim(stop_at, call);
      after();
      ASSERT_NO_FATAL_FAILURE(ExpectWhole(before)) << "after instruction " << stop_at;
      if (!reached) break;
    }
    EXPECT_GT(stop_at, 20) << "no call has so few instructions";
  }

  static std::vector<void*> held_;
  std::unique_ptr<Thread> trimmer_;
};
std::vector<void*> Revocation::held_;

void* block = nullptr;
void Allocate() { block = api::Malloc(kSize); }
void Release() { api::Free(block); }
void Zeroed() { block = api::Calloc(1, kSize); }

class InBinOf : public Revocation, public ::testing::WithParamInterface<unsigned> {};

TEST_P(InBinOf, Malloc) {
  AtEveryInstruction([] { Cache(GetParam()); }, &Allocate, [] { held_.push_back(block); });
}
TEST_P(InBinOf, Calloc) {
  AtEveryInstruction([] { Cache(GetParam()); }, &Zeroed, [] { held_.push_back(block); });
}
TEST_P(InBinOf, Free) {
  AtEveryInstruction([] { Cache(GetParam() + 1), Allocate(); }, &Release, [] {});
}
// Slots of another owner go to the outbox, which has `GetParam()` already.
TEST_P(InBinOf, RemoteFree) {
  AtEveryInstruction(
      [] {
        std::vector<void*> strange;
        Together(1, [&](unsigned) {
          for (unsigned i = 0; i <= GetParam(); ++i) strange.push_back(api::Malloc(kSize));
        });
        block = strange.back();
        strange.pop_back();
        for (void* other : strange) api::Free(other);
      },
      &Release, [] {});
}

INSTANTIATE_TEST_SUITE_P(Revocation, InBinOf, ::testing::Values(0, 1, 2, 5, 12, 24),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace hz_test

#endif
