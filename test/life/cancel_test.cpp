// SPDX-License-Identifier: Apache-2.0
//
// Threads that are cancelled while they use the heap, whatever they were doing: what they held is freed by
// their cleanup handlers or by others, and nothing is lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "stress/blocks.hpp"
#include "stress/threads.hpp"

namespace hz_test {
namespace {

// Works with its blocks until it is cancelled; points where it can be are between any two operations, and in
// the C library's functions that allocate themselves.
class Victim {
 public:
  explicit Victim(std::uint64_t seed, Exchange& left) : random_(seed), left_(left) {
    EXPECT_EQ(0, pthread_create(&thread_, nullptr, &Victim::Run, this));
  }
  void Cancel() const { EXPECT_EQ(0, pthread_cancel(thread_)); }
  void Join() const {
    void* result = nullptr;
    EXPECT_EQ(0, pthread_join(thread_, &result));
    EXPECT_EQ(PTHREAD_CANCELED, result);
  }

 private:
  static constexpr std::size_t kLive = 50;

  static void* Run(void* self) {
    auto* victim = static_cast<Victim*>(self);
    pthread_cleanup_push(&Victim::CleanUp, victim);
    victim->Work();
    pthread_cleanup_pop(1);
    return nullptr;
  }
  // Half of the blocks go here, half to others: the heap of a thread that is being cancelled still works.
  static void CleanUp(void* self) {
    auto* victim = static_cast<Victim*>(self);
    for (std::size_t i = 0; i < kLive; ++i) {
      if (i % 2 == 0) {
        CheckAndFree(victim->live_[i]);
      } else if (victim->live_[i].at != nullptr) {
        victim->left_.Put(victim->live_[i]);
      }
    }
    CheckAndFree(MakeBlock(300));
  }
  [[noreturn]] void Work() {
    for (unsigned step = 0;; ++step) {
      Block& block = live_[Below(random_, kLive)];
      const Block old = block;
      block = {};
      CheckAndFree(old);
      block = MakeBlock(LogSize(random_, Below(random_, 100) == 0 ? 21 : 12));
      if (step % 3 == 0) pthread_testcancel();
      if (step % 50 == 0) close(open("/dev/null", O_RDONLY | O_CLOEXEC));
      Block stranger;
      if (step % 7 == 0 && left_.Take(random_, stranger)) CheckAndFree(stranger);
    }
  }

  Random random_;
  Exchange& left_;
  Block live_[kLive];
  pthread_t thread_ = {};
};

TEST(Cancel, NothingHangsNothingIsLost) {
  const Watchdog watchdog;
  const unsigned rounds = Long() ? 2000 : Rounds(200, 20);
  constexpr unsigned kVictims = 6;
  Exchange left;
  Random random(Seed());
  std::uint64_t threads = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<Victim>> victims;
    for (unsigned i = 0; i < kVictims; ++i) victims.push_back(std::make_unique<Victim>(random(), left));
    for (const auto& victim : victims) {
      for (std::size_t spin = Below(random, 200); spin-- > 0;) CheckAndFree(MakeBlock(100));
      victim->Cancel();
    }
    for (const auto& victim : victims) victim->Join();
    if (round == 0) threads = HeapStats().threads;
  }
  EXPECT_LE(HeapStats().threads, threads) << "the end of a cancelled thread went unnoticed";
  for (const Block& block : left.TakeAll()) CheckAndFree(block);
  ExpectNothingLost();
}

}  // namespace
}  // namespace hz_test
