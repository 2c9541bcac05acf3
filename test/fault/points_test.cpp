// SPDX-License-Identifier: Apache-2.0
//
// Every point at which the system may refuse something, one after the other, in a life that uses all that a
// heap has (fault/life.hpp), from the heap's start on, which is before main: in one process its first call
// fails, in the next its second, and so on to the last. Once with the heap as it is by default, once with all
// that can be switched on, once in a range that is reserved, and once more while each and all that follow
// fail; and while nobody calls the heap and its purger is at work. Prints how many calls of each kind failed
// (doc/faults.md). HZ_TEST_LONG walks over every point; else a walk that goes over the points of another one
// again leaves some out, and all do in the quick tier and under sanitizers.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <functional>
#include <map>
#include <string>

#include "fault/life.hpp"
#include "support/fork.hpp"
#include "support/sanitizers.hpp"

namespace hz_test {
namespace {

using failing::Seen;

constexpr std::pair<const char*, const char*> kAllOn[] = {
    {"HZ_PROFILE_HEAP", "16K"},  {"HZ_PROFILE_HEAP_FILE", "/dev/null"},
    {"HZ_STATS", "1"},           {"HZ_STATS_FILE", "/dev/null"},
    {"HZ_CONTROL", "1"},         {"HZ_NAME_MAPPINGS", "1"},
    {"HZ_THP", "always"},        {"HZ_POLICY", "observe"},
    {"HZ_PROFILE", "/dev/null"}, {"HZ_GUARD_SAMPLE", "400"}};

bool IsOfSamples(const char* name) {
  return std::strncmp(name, "HZ_PROFILE_HEAP", 15) == 0 || std::strcmp(name, "HZ_GUARD_SAMPLE") == 0;
}

class Points : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = memfd_create("seen", 0);
    seen_ = Seen::Shared(file_);
    ASSERT_NE(nullptr, seen_);
  }
  void TearDown() override {
    munmap(seen_, sizeof(Seen));
    close(file_);
  }

  // Every point, or one in so many. `dear`: of a walk that goes over the points of another one again.
  static unsigned Stride(unsigned dear) { return Quick() ? 8 : Long() ? 1 : Scaled(dear, 20); }

  // `start` makes a process in which the call of that number fails, and that ends with kSound, kUnsound or
  // kNoSuchCall; so many at once. How many points there are.
  unsigned Walk(const char* name, unsigned stride, unsigned at_once,
                const std::function<pid_t(unsigned call)>& start) {
    unsigned points = 0;
    bool any = true;
    for (unsigned call = 1; any && !HasFailure();) {
      std::map<pid_t, unsigned> children;
      for (unsigned i = 0; i < at_once; ++i, call += stride) children[start(call)] = call;
      any = false;
      for (const auto& [pid, number] : children) {
        int status = -1;
        EXPECT_TRUE(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchCall) continue;
        any = true;
        ++points;
        EXPECT_EQ(kSound, status) << name << ", when call " << number << " fails";
      }
    }
    Tell(name, points, stride);
    every_ = stride == 1;
    return points;
  }
  void ExpectFailed(std::initializer_list<unsigned> kinds) const {
    if (!every_) return;
    for (const unsigned kind : kinds) {
      const int place = __builtin_ctz(kind);
      EXPECT_NE(0U, seen_->of_kind[place]) << "no call of kind " << failing::kNames[place] << " failed";
    }
  }

  // This program again, from its start; `how` is "once" or "from".
  enum class As { kDefault, kAllOn, kReserved };
  pid_t Started(const std::string& how, unsigned call, As as) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    setenv("HZ_TEST_FAIL", (how + " " + std::to_string(call)).c_str(), 1);
    setenv("HZ_TEST_SEEN", std::to_string(file_).c_str(), 1);
    for (const auto& [name, value] : kAllOn)
      if (as == As::kAllOn && !(IsTiny() && IsOfSamples(name))) setenv(name, value, 1);
    if (as == As::kReserved) setenv("HZ_TEST_RESERVED", "1", 1);
    execl("/proc/self/exe", "fault_calls", nullptr);
    _exit(kUnsound);
  }

  int file_ = -1;
  Seen* seen_ = nullptr;
  bool every_ = false;

 private:
  void Tell(const char* name, unsigned points, unsigned stride) const {
    std::string text = "points: " + ExpectedLine() + " " + name + " " + std::to_string(points) + " (one in " +
                       std::to_string(stride) + "):";
    for (unsigned kind = 0; kind < failing::kKinds; ++kind) {
      if (const unsigned n = seen_->of_kind[kind])
        text += " " + std::string(failing::kNames[kind]) + " " + std::to_string(n);
    }
    std::printf("%s\n", text.c_str());
  }
};

// Where the processor is not known, all threads are as on one.
TEST_F(Points, WithoutAProcessor) {
  if (kUnderTool) GTEST_SKIP() << "memory alone is refused";
  if (IsTiny()) GTEST_SKIP() << "it does not ask";
  const Watchdog watchdog;
  EXPECT_EQ(kSound, InAFork([] {
              failing::Forget();
              static Life life(1);
              failing::From(1, failing::kProcessor);
              life.Run();
              failing::None();
              return Outcome(life);
            }));
}

class PointsFromTheStart : public Points {
 protected:
  void SetUp() override {
    if (kUnderTool) GTEST_SKIP() << "a sanitizer's own calls come first";
    Points::SetUp();
  }
  void TearDown() override {
    if (!IsSkipped()) Points::TearDown();
  }
};
TEST_F(PointsFromTheStart, OneFails) {
  const Watchdog watchdog(Long() ? 3000 : 240);
  EXPECT_GT(
      Walk("by-default", Stride(1), 1, [this](unsigned call) { return Started("once", call, As::kDefault); }),
      0U);
  ExpectFailed({failing::kMap, failing::kUnmap, failing::kAdvise, failing::kHook, failing::kMachine});
  if (!IsTiny()) ExpectFailed({failing::kMove, failing::kBarrier});
}
// Who loads the library waits up to a second for a thread of control that does not come.
TEST_F(PointsFromTheStart, OneFailsWithAllSwitchedOn) {
  constexpr unsigned kAtOnce = 8;
  const Watchdog watchdog(Long() ? 3000 : 240);
  EXPECT_GT(Walk("all-switched-on", Stride(3), kAtOnce,
                 [this](unsigned call) { return Started("once", call, As::kAllOn); }),
            0U);
  ExpectFailed({failing::kMap, failing::kUnmap, failing::kAdvise, failing::kHook, failing::kMachine,
                failing::kThread, failing::kFile, failing::kSocket});
}
// Where the heap has to reserve a range, and makes it usable bit by bit.
TEST_F(PointsFromTheStart, OneFailsInARange) {
  const Watchdog watchdog(Long() ? 3000 : 240);
  if (IsTiny()) GTEST_SKIP() << "it maps regions";
  EXPECT_GT(
      Walk("reserved", Stride(3), 1, [this](unsigned call) { return Started("once", call, As::kReserved); }),
      0U);
  ExpectFailed({failing::kProtect});
}
TEST_F(PointsFromTheStart, AllFailFromOneOn) {
  const Watchdog watchdog(Long() ? 3000 : 240);
  EXPECT_GT(Walk("all-from-one-on", Stride(8), 1,
                 [this](unsigned call) { return Started("from", call, As::kDefault); }),
            0U);
}

// For sanitizers, too: memory alone is refused, when the heap is open.
TEST_F(Points, OneFailsInAChild) {
  const Watchdog watchdog(Long() ? 3000 : 240);
  constexpr unsigned kDear = 3;
  EXPECT_GT(Walk("in-a-child", Stride(kDear), 1,
                 [this](unsigned call) {
                   const pid_t pid = fork();
                   if (pid != 0) return pid;
                   alarm(100);
                   failing::Forget();
                   static Life life(1);
                   failing::Once(call, failing::kMemory);
                   life.Run();
                   failing::None();
                   seen_->Note();
                   _exit(Outcome(life));
                 }),
            0U);
  ExpectFailed({failing::kMap, failing::kAdvise});
}

// The heap has emptied itself, and its purger takes back what threads cache, purges, falls asleep, and is
// woken. While it does so its processes sleep, so many of them do at once.
TEST_F(Points, WhileIdle) {
  const Watchdog watchdog(Long() ? 3000 : 240);
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  constexpr unsigned kAtOnce = 24;
  EXPECT_GT(Walk("while-idle", Stride(1), kAtOnce,
                 [this](unsigned call) {
                   const pid_t pid = fork();
                   if (pid != 0) return pid;
                   std::signal(SIGALRM, SIG_DFL);
                   alarm(100);
                   failing::Forget();
                   static Life life(1);
                   life.Idle(call);
                   seen_->Note();
                   _exit(Outcome(life));
                 }),
            0U);
  ExpectFailed({failing::kBarrier, failing::kWait, failing::kAdvise});
}

}  // namespace
}  // namespace hz_test
