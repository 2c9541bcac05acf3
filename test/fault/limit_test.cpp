// SPDX-License-Identifier: Apache-2.0
//
// Random walks while the limit of address space falls and rises around what the process has, down to nothing
// new at all. Each turn is a process of its own with a seed of its own: it starts under a limit, so that the
// arena grows in place and the limit is felt. HZ_TEST_SEED repeats a turn; HZ_TEST_LONG walks for many
// minutes.
#include <gtest/gtest.h>

#include "fault/walk.hpp"
#include "stress/threads.hpp"
#include "support/address_space.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr unsigned kBits = 26;

// A new limit near what the process has now; sometimes none, sometimes not a byte more.
void Squeeze(Random& random) {
  const std::size_t now = ProcBytes("/proc/self/status", "VmSize:");
  switch (Below(random, 6)) {
    case 0: return ForbidMoreAddressSpace();
    case 1: return SetSoftLimit(now);
    case 2: return SetSoftLimit(now - std::min(now / 2, LogSize(random, kBits)));
    case 3: return SetSoftLimit(now + LogSize(random, 20));
    case 4: return SetSoftLimit(now + LogSize(random, kBits));
    default: return AllowMoreAddressSpace();
  }
}

// The stack of the first thread grows when it is used, which no limit may forbid.
void GrowStack() {
  char deep[256 << 10];
  for (std::size_t at = 0; at < sizeof deep; at += 1024) Opaque(&deep[at])[0] = 1;
}

void WalkUnderLimit(unsigned threads, unsigned steps) {
  const Watchdog watchdog(100);
  GrowStack();
  Verdict verdict;
  Mailbox mailbox;
  std::vector<std::unique_ptr<Walk>> walks;
  for (unsigned i = 0; i < threads; ++i) {
    walks.push_back(std::make_unique<Walk>(verdict, mailbox, Seed() * 100 + i, kBits));
  }
  if (threads == 1) {
    walks[0]->Run(steps, Squeeze);
  } else {
    Barrier started(threads);  // what starts threads allocates, and is not what is tested here
    Together(threads, [&](unsigned i) {
      started.Wait();
      walks[i]->Run(steps, Squeeze);
    });
  }
  ForbidMoreAddressSpace();
  for (auto& walk : walks) walk->CheckAll();
  AllowMoreAddressSpace();
  const unsigned refused = EndWalks(verdict, walks, steps, kBits);
  EXPECT_GT(refused, steps / 400) << "the limit was not felt";
  ExpectNothingLost();
  const hz_stats_t stats = HeapStats();
  if (kHeapIsOurs && stats.counting != 0) {
    EXPECT_EQ(stats.alloc_small + stats.alloc_medium + stats.alloc_large,
              stats.free_small + stats.free_medium + stats.free_large);
  }
}

// One turn after the other, every other one with counting.
void Turns(unsigned threads, unsigned steps) {
  if (kUnderTool) GTEST_SKIP() << "a sanitizer does not start under a limit of address space";
  if (StartedUnderLimit()) return WalkUnderLimit(threads, steps);
  const std::uint64_t first = Seed();
  const unsigned turns = NumberFrom("HZ_TEST_SEED", 0) != 0 ? 1 : Long() ? 300 : Quick() ? 1 : 3;
  for (unsigned turn = 0; turn < turns && !::testing::Test::HasFailure(); ++turn) {
    const std::string seed = std::to_string(first + turn);
    SCOPED_TRACE("HZ_TEST_SEED=" + seed);
    setenv("HZ_TEST_SEED", seed.c_str(), 1);
    setenv("HZ_STATS", turn % 2 == 0 ? "0" : "1", 1);
    RunThisTestUnderLimit();
  }
  unsetenv("HZ_TEST_SEED");
}

TEST(ShrinkingLimit, OneThread) { Turns(1, 8000); }
TEST(ShrinkingLimit, FourThreads) { Turns(4, 3000); }

}  // namespace
}  // namespace hz_test
