// SPDX-License-Identifier: Apache-2.0
//
// Random walks while the limit of address space, or of data, falls and rises around what the process has,
// down to nothing new at all. Each turn is a process of its own with a seed of its own: it starts under a
// limit, so that the arena grows in place and the limit is felt. HZ_TEST_SEED repeats a turn; HZ_TEST_LONG
// walks for many minutes.
#include <gtest/gtest.h>

#include "fault/walk.hpp"
#include "stress/threads.hpp"
#include "support/address_space.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr unsigned kBits = 26;

// What is limited, and what the process has of it.
struct Limited {
  int resource;
  const char* used;
};
constexpr Limited kAddressSpace = {RLIMIT_AS, "VmSize:"}, kData = {RLIMIT_DATA, "VmData:"};

void SetLimit(const Limited& what, rlim_t bytes) {
  rlimit limit = {};
  getrlimit(what.resource, &limit);
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  setrlimit(what.resource, &limit);
}

// A new limit near what the process has now; sometimes none, sometimes not a byte more.
void Squeeze(const Limited& what, Random& random) {
  const std::size_t now = ProcBytes("/proc/self/status", what.used);
  switch (Below(random, 6)) {
    case 0: return SetLimit(what, 1);
    case 1: return SetLimit(what, now);
    case 2: return SetLimit(what, now - std::min(now / 2, LogSize(random, kBits)));
    case 3: return SetLimit(what, now + LogSize(random, 20));
    case 4: return SetLimit(what, now + LogSize(random, kBits));
    default: return SetLimit(what, kLimitBytes);
  }
}

// The stack of the first thread grows when it is used, which no limit may forbid.
void GrowStack() {
  char deep[256 << 10];
  for (std::size_t at = 0; at < sizeof deep; at += 1024) Opaque(&deep[at])[0] = 1;
}

void WalkUnderLimit(const Limited& what, unsigned threads, unsigned steps) {
  const Watchdog watchdog(100);
  GrowStack();
  Verdict verdict;
  Mailbox mailbox;
  std::vector<std::unique_ptr<Walk>> walks;
  for (unsigned i = 0; i < threads; ++i) {
    walks.push_back(std::make_unique<Walk>(verdict, mailbox, Seed() * 100 + i, kBits));
  }
  const auto squeeze = [&](Random& random) { Squeeze(what, random); };
  if (threads == 1) {
    walks[0]->Run(steps, squeeze);
  } else {
    Barrier started(threads);  // what starts threads allocates, and is not what is tested here
    Together(threads, [&](unsigned i) {
      started.Wait();
      walks[i]->Run(steps, squeeze);
    });
  }
  SetLimit(what, 1);
  for (auto& walk : walks) walk->CheckAll();
  SetLimit(what, kLimitBytes);
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
void Turns(const Limited& what, unsigned threads, unsigned steps) {
  if (kUnderTool) GTEST_SKIP() << "a sanitizer does not start under a limit of address space";
  if (StartedUnderLimit()) return WalkUnderLimit(what, threads, steps);
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

TEST(ShrinkingLimit, OneThread) { Turns(kAddressSpace, 1, 8000); }
TEST(ShrinkingLimit, FourThreads) { Turns(kAddressSpace, 4, 3000); }
TEST(ShrinkingLimit, OfData) { Turns(kData, 1, 3000); }

}  // namespace
}  // namespace hz_test
