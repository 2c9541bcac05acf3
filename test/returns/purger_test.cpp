// SPDX-License-Identifier: Apache-2.0
//
// The purger as other parts of a process see it: when it is there and when not, that it takes no signal, and
// that its being there changes nothing for those who ask for all threads.
#include <gtest/gtest.h>

#include <csignal>

#include "returns/service.hpp"
#include "support/child.hpp"
#include "support/gnu_malloc.hpp"

namespace hz_test {
namespace {

TEST(Purger, ComesWithWorkAndGoesWithoutIt) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  if (kThreadSanitizer) GTEST_SKIP() << "it knows no barrier on all threads, so the heap does not get small";
  const Watchdog watchdog;
  Service service;
  ASSERT_EQ(0, Purger()) << "there is no work yet";
  ASSERT_TRUE(service.WakePurger());
  EXPECT_TRUE(Within(15, [] { return Purger() == 0; })) << "everything is free, nothing is left to do";
  EXPECT_TRUE(service.WakePurger()) << "it comes again";
}

// What may stay is nothing that it could give back.
TEST(Purger, GoesWhereMuchMayStay) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  if (kThreadSanitizer) GTEST_SKIP() << "it knows no barrier on all threads, so the heap does not get small";
#ifdef HZ_TEST_DIRECT
  GTEST_SKIP() << "mallopt is the C library's";
#else
  const Watchdog watchdog;
  ASSERT_EQ(1, mallopt(M_TRIM_THRESHOLD, 32 * kMiB));
  Service service;
  ASSERT_TRUE(service.WakePurger());
  EXPECT_TRUE(Within(15, [] { return Purger() == 0; }));
  if (!HasSeals()) {  // what is free has pages
    EXPECT_GT(RssBytes(), 16 * kMiB) << "and it stays";
  }
#endif
}

TEST(Purger, IsOne) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  const Watchdog watchdog;
  Service service(8);
  ASSERT_TRUE(service.WakePurger());
  for (int turn = 0; turn < 5; ++turn) {
    service.Fill();
    service.Empty();
    unsigned purgers = 0;
    ForEachTask([&purgers](int tid) {
      char name[32];
      ReadOfTask(tid, "comm", name);
      purgers += std::strncmp(name, kPurgerName, std::strlen(kPurgerName)) == 0 ? 1 : 0;
    });
    EXPECT_LE(purgers, 1U);
    SleepFor(0.05);
  }
}

// What a thread that is never idle has not needed for a second goes, although its recent peak would allow it
// to stay.
TEST(Purger, GivesBackWhatABusyProgramNoLongerNeeds) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  if (kUnderTool) GTEST_SKIP() << "shadow memory is resident as well";
  const Watchdog watchdog;
  Load stays(kServiceBytes, Sizes::kLarge);
  Load goes(kServiceBytes / 2, Sizes::kLarge);
  Crew crew(1);
  crew.Run([&](unsigned) {
    stays.Make(Seed());
    goes.Make(Seed());
    const std::size_t full = RssBytes();
    goes.Free();
    Load small(kMiB, Sizes::kSmall);
    const double began = Now();
    const auto is_small = [full] { return RssBytes() + kServiceBytes / 2 <= full + 16 * kMiB; };
    for (std::uint64_t turn = 0; !is_small() && Now() < began + 15; turn += 100) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        small.Make(Seed() + turn + i);
        small.Free();
      }
    }
    EXPECT_TRUE(is_small()) << RssBytes() / kMiB << " MiB of " << full / kMiB;
    stays.Free();
  });
}

// One slot of each span, the last to be freed, lies in the bin of a thread that goes on with other sizes:
// what is out does not become less, and yet they go.
TEST(Purger, TakesFewSlotsOfManySpansFromABusyThread) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  if (kThreadSanitizer) GTEST_SKIP() << "it knows no barrier on all threads";
  const Watchdog watchdog;
  constexpr std::size_t kSize = 100, kSpans = 100, kOfSpan = 650;
  static void* blocks[kSpans * kOfSpan];
  Crew crew(1);
  crew.Run([](unsigned) {
    void* small[64] = {};
    std::uint64_t turn = 0;
    const auto work_until = [&](const std::function<bool()>& done) {
      return Within(5, [&] {
        for (const double end = Now() + 0.02; Now() < end; ++turn) {
          api::Free(small[turn % 64]);
          small[turn % 64] = api::Malloc(200 + turn % 97);
        }
        return done();
      });
    };
    const auto spans = [] {
      const hz_stats_t stats = HeapStats();
      return stats.spans_acquired - stats.spans_retired;
    };
    work_until([] { return true; });
    const std::uint64_t before = spans();
    for (void*& block : blocks) std::memset(block = api::Malloc(kSize), 1, kSize);
    for (std::size_t i = 0; i < kSpans * kOfSpan; ++i) {
      if (i % kOfSpan != 0) api::Free(blocks[i]);
    }
    const double then = Now();
    work_until([then] { return Now() > then + 1; });  // the heap is seen to have shrunk
    const std::uint64_t pinned = spans();
    ASSERT_GT(pinned, before + kSpans * 9 / 10) << "each span has a slot that is out";
    for (std::size_t i = 0; i < kSpans * kOfSpan; i += kOfSpan) api::Free(blocks[i]);
    EXPECT_TRUE(work_until([&] { return spans() < before + kSpans * 48 / 100; }))
        << spans() - before << " spans of " << pinned - before;
    for (void* block : small) api::Free(block);
  });
}

// A process that never had a thread is left alone while its memory lives, however much it is, and while it is
// small. (What happens when its memory is stuck, the shapes of one thread show.)
TEST(Purger, LeavesASingleThreadAlone) {
  const Watchdog watchdog;
  Load small(4 * kMiB, Sizes::kMixed);
  for (int turn = 0; turn < 20; ++turn) {
    small.Make(Seed() + turn);
    small.Free();
    EXPECT_EQ(0, Purger());
  }
  Load large(kServiceBytes, Sizes::kMixed);
  large.Make(Seed());
  EXPECT_EQ(0, Purger());
  SleepFor(0.5);
  EXPECT_EQ(0, Purger());
  large.Free();
}

// Where no purger will come, a program that empties itself is small at once. It does not pay for that again
// and again.
TEST(Purger, IsNotMissedByASingleThreadThatTurnsMemoryOver) {
  if (KeepsLittle()) GTEST_SKIP() << "it promises to be small each time";
  constexpr std::size_t kTurns = 200;
  constexpr std::size_t kSize = 8 * kMiB;
  const std::uint64_t purged = HeapStats().bytes_purged;
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    void* from = api::Malloc(kSize);
    void* to = api::Malloc(kSize);
    *static_cast<volatile char*>(from) = 1;
    *static_cast<volatile char*>(to) = 1;
    api::Free(from);
    api::Free(to);
  }
  EXPECT_LE(HeapStats().bytes_purged - purged, kTurns / 10 * 2 * kSize);
}

// Runs the test of that name in a process with another environment.
void RunWith(const char* variable, const char* value, const char* test) {
  char program[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  const ChildResult result =
      RunChild({program, std::string("--gtest_filter=") + test, "--gtest_also_run_disabled_tests"},
               {{variable, value}});
  EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
  EXPECT_NE(std::string::npos, result.out.find("1 test from 1 test suite ran.")) << result.out;
  EXPECT_EQ(std::string::npos, result.err.find("not understood")) << result.err;
}

// Not a test of its own: with the option, WakePurger finds none. Nor is there a barrier on all threads
// (doc/life.md, "System calls"): sleeping threads keep what they cache while they live, and no longer.
TEST(Purger, DISABLED_StaysAway) {
  const Watchdog watchdog;
  std::size_t full = 0;
  {
    Service service;
    service.Fill();
    full = RssBytes();
    EXPECT_FALSE(service.WakePurger(1));
    service.Empty();
    api::Trim();
    EXPECT_EQ(0U, HeapStats().revocations);
  }
  api::Trim();
  if (!kUnderTool) {
    EXPECT_LT(RssBytes() + kServiceBytes / 10 * 9, full) << "a trim reaches what ended threads held";
  }
}
TEST(Purger, StaysAwayByVariable) { RunWith("HZ_BACKGROUND", "0", "Purger.DISABLED_StaysAway"); }
TEST(Purger, StaysAwayByOption) { RunWith("HZ_OPTIONS", "background:0", "Purger.DISABLED_StaysAway"); }

// --- signals

// What is not in the mask: SIGKILL and SIGSTOP, which nobody can block, and those that the C library's own
// threads are told by: two of glibc's (cancellation, setuid), three of musl's.
constexpr std::uint64_t Bit(int signal) { return std::uint64_t{1} << (signal - 1); }
constexpr std::uint64_t kOfTheSystem = Bit(SIGKILL) | Bit(SIGSTOP);
constexpr std::uint64_t kOfTheLibrary = Bit(32) | Bit(33) | (kGlibc ? 0 : Bit(34));

TEST(Purger, BlocksAllSignals) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  const Watchdog watchdog;
  Service service;
  ASSERT_TRUE(service.WakePurger());
  char status[4096];
  ReadOfTask(Purger(), "status", status);
  const char* mask = std::strstr(status, "SigBlk:");
  ASSERT_NE(nullptr, mask) << "the purger went too early";
  const std::uint64_t blocked = std::strtoull(mask + 7, nullptr, 16);
  EXPECT_EQ(~std::uint64_t{0}, blocked | kOfTheSystem | kOfTheLibrary) << std::hex << blocked;
}

std::atomic<unsigned> handled{0};

// Nobody but the purger could take it, and so it waits.
TEST(Purger, TakesNoSignalOfTheProcess) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  const Watchdog watchdog;
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGUSR1);
  std::signal(SIGUSR1, [](int) { ++handled; });
  Service service;  // its threads, and so perhaps the purger's creator, do not block it
  ASSERT_TRUE(service.WakePurger());
  service.Threads().Run([&ours](unsigned) { pthread_sigmask(SIG_BLOCK, &ours, nullptr); });
  pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  kill(getpid(), SIGUSR1);
  SleepFor(0.3);
  EXPECT_EQ(0U, handled);
  const timespec none = {};
  EXPECT_EQ(SIGUSR1, sigtimedwait(&ours, nullptr, &none)) << "it is still pending";
}

// setuid() asks every thread of the process by a signal of the C library, and waits for the answers.
TEST(Purger, AnswersTheLibrary) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  const Watchdog watchdog(60);
  Service service;
  ASSERT_TRUE(service.WakePurger());
  EXPECT_EQ(0, setgid(getgid()));
  EXPECT_EQ(0, setuid(getuid()));
}

}  // namespace
}  // namespace hz_test
