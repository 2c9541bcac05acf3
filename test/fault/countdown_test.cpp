// SPDX-License-Identifier: Apache-2.0
//
// The same walk through every way of the heap again and again, while its first system call fails, then its
// second, and so on to the last (every fourth under sanitizers, every eighth in the quick tier); and once
// more while each and all that follow fail. Every turn runs in a child of its own, so that all begin alike.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "fault/failing_calls.hpp"
#include "fault/walk.hpp"

namespace hz_test {
namespace {

constexpr unsigned kBits = 21;
constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

class Tour {
 public:
  Tour(Verdict& verdict, Mailbox& mailbox) : walk_(verdict, mailbox, 5, kBits) {}

  void Run() {
    SpansOfEveryKind();
    HugeBlocksThatMove();
    walk_.TryThread();
    api::Trim();
    RemoteFrees();
    walk_.Run(Long() ? 600 : 60, [](Random&) {});
  }
  void Finish() {
    for (Block& block : blocks_) walk_.Free(block);
    walk_.CheckAll();
    walk_.FreeAll();
  }

 private:
  void SpansOfEveryKind() {
    for (std::size_t i = 0; i < 60; ++i) walk_.Make(blocks_[i], 16 + i * 100);
    for (std::size_t i = 60; i < 80; ++i) walk_.MakeZeroed(blocks_[i], 30 * kKiB);
    for (std::size_t i = 80; i < 100; ++i) walk_.MakeAligned(blocks_[i], 16 * kKiB, 300 * kKiB);
    for (std::size_t i = 0; i < 100; i += 2) walk_.Free(blocks_[i]);
  }
  // In place, to a place that is free, to the top, and smaller again.
  void HugeBlocksThatMove() {
    // Free memory that is there already: so that blocks find a place to move to also when nothing else works.
    walk_.Make(blocks_[106], 90 * kMiB);
    walk_.Free(blocks_[106]);
    for (std::size_t i = 100; i < 106; ++i) walk_.Make(blocks_[i], (5 + i % 2) * kMiB);
    for (std::size_t i = 100; i < 106; ++i) TryResize(i, 7 * kMiB);
    walk_.Free(blocks_[103]);
    for (std::size_t i = 100; i < 106; ++i) TryResize(i, 9 * kMiB);
    for (std::size_t i = 100; i < 106; ++i) TryResize(i, 5 * kMiB);
    for (std::size_t i = 100; i < 106; ++i) TryResize(i, 100 * kKiB);
  }
  void TryResize(std::size_t i, std::size_t size) {
    if (blocks_[i].at != nullptr) walk_.Resize(blocks_[i], size);
  }
  void RemoteFrees() {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, &Tour::FreeHalf, this) == 0) pthread_join(thread, nullptr);
  }
  static void* FreeHalf(void* self) {
    auto* tour = static_cast<Tour*>(self);
    for (std::size_t i = 1; i < 100; i += 4) tour->walk_.Free(tour->blocks_[i]);
    return nullptr;
  }

  Walk walk_;
  Block blocks_[110];
};

enum Outcome { kSound = 0, kUnsound = 1, kNoSuchCall = 2 };

int RunTour(void (*fail)(std::uint64_t), std::uint64_t call) {
  std::signal(SIGALRM, SIG_DFL);
  alarm(100);
  static Verdict verdict;
  static Mailbox mailbox;
  static Tour tour(verdict, mailbox);
  const std::uint64_t before = failing::Failures();
  fail(call);
  tour.Run();
  failing::None();
  tour.Finish();
  ExpectEverySizeWorks(verdict, kBits);
  verdict.Expect(HeapStats().bytes_live == 0, "nothing is lost");
  verdict.Write();
  if (verdict.Failed()) return kUnsound;
  return failing::Failures() == before ? kNoSuchCall : kSound;
}

// A fork is dear where a sanitizer watches.
unsigned Stride() { return Quick() ? 8 : Scaled(1, 4); }

// The last call that failed.
std::uint64_t CountDown(void (*fail)(std::uint64_t)) {
  for (std::uint64_t call = 1;; call += Stride()) {
    const pid_t pid = fork();
    if (pid == 0) _exit(RunTour(fail, call));
    int status = -1;
    EXPECT_EQ(pid, waitpid(pid, &status, 0));
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchCall) return call - 1;
    EXPECT_EQ(0, status) << "when call " << call << " fails";
    if (::testing::Test::HasFailure() || pid < 0) return call;
  }
}

TEST(CountDown, OneCallFails) {
  const Watchdog watchdog(Long() ? 3000 : 240);
  const std::uint64_t last = CountDown(&failing::Once);
  std::printf("fault: calls 1 to %d failed in turn\n", static_cast<int>(last));
  EXPECT_GT(last, 20U);
}

TEST(CountDown, AllCallsFailFromOneOn) {
  const Watchdog watchdog(Long() ? 3000 : 240);
  EXPECT_GT(CountDown(&failing::From), 5U);
}

}  // namespace
}  // namespace hz_test
