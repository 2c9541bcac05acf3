// SPDX-License-Identifier: Apache-2.0
//
// The heap profile of a program that knows its own: how much each of its call sites allocates and frees, in
// patterns that a sample of convenience would get wrong. What the profile says is compared with the truth, by
// the standard error of what it samples; six of them, so that a failure by chance is one in a hundred million
// comparisons. The interval is set by the test's environment, or, where that says 0, when the first test
// begins.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "base/size_classes.hpp"
#include "hakozuna/hakozuna.h"
#include "heap_profile/profile_file.hpp"
#include "stress/scale.hpp"
#include "stress/threads.hpp"
#include "support/barrier.hpp"
#include "support/fork.hpp"
#include "support/heap_api.hpp"

namespace hz_test {
namespace {

constexpr double kErrors = 6;
constexpr int kSites = 32;

// What each site did, by size of its slots.
struct Truth {
  std::map<std::size_t, std::uint64_t> allocated, freed;
};
std::array<Truth, kSites> truths;

// The sites: a function for each, that allocates, and does not end with the call.
using Make = void* (*)(std::size_t);
template <int kSite>
__attribute__((noinline)) void* MakeAt(std::size_t size) {
  void* block = api::Malloc(size);
  return Opaque(block);
}
template <int... kSite>
constexpr std::array<Make, kSites> Makers(std::integer_sequence<int, kSite...>) {
  return {&MakeAt<kSite>...};
}
constexpr std::array<Make, kSites> kMakers = Makers(std::make_integer_sequence<int, kSites>{});

// The slots that blocks of that size have. With seals one is behind the block, and what is large has a run of
// its own.
std::size_t SlotBytes(std::size_t size) {
  if (!HasSeals()) return hz_good_size(size);
  constexpr std::size_t kSeal = 8, kMostSlot = 32 * 1024;
  const hz::Bin bin = hz::most_aligned_bin(size + kSeal, 1);
  return bin != hz::kHugeBin && hz::bin_size(bin) <= kMostSlot ? hz::bin_size(bin)
                                                               : hz::align_up(size, hz::kGranule);
}

void* MakeOf(int site, std::size_t size) {
  ++truths[static_cast<std::size_t>(site)].allocated[SlotBytes(size)];
  return kMakers[static_cast<std::size_t>(site)](size);
}
void FreeOf(int site, void* block, std::size_t size) {
  ++truths[static_cast<std::size_t>(site)].freed[SlotBytes(size)];
  api::Free(block);
}

// The maker that the address lies in; -1: none.
int SiteOf(std::uintptr_t at) {
  constexpr std::uintptr_t kLongest = 4096;
  int found = -1;
  std::uintptr_t nearest = at - kLongest;
  for (int i = 0; i < kSites; ++i) {
    const auto start = reinterpret_cast<std::uintptr_t>(kMakers[static_cast<std::size_t>(i)]);
    if (start < at && start >= nearest) {
      found = i;
      nearest = start;
    }
  }
  return found;
}

// Where nothing is inlined, it has called what calls us.
int SiteOf(const std::vector<std::uintptr_t>& frames) {
  for (std::size_t i = 0; i < frames.size() && i < 3; ++i)
    if (const int site = SiteOf(frames[i]); site >= 0) return site;
  return -1;
}

ProfileFile Now() { return ProfileFile::Now(&hz_write_heap_profile); }

ProfiledSite Found(const ProfileFile& profile, int site) {
  ProfiledSite sum;
  for (const ProfiledSite& one : profile.sites)
    if (SiteOf(one.frames) == site) sum.Add(one);
  return sum;
}

// Blocks, bytes, and the square of their standard errors.
struct Expected {
  double blocks = 0, bytes = 0, of_blocks = 0, of_bytes = 0;

  void Add(std::size_t slot, double n, double interval) {
    const double p = -std::expm1(-static_cast<double>(slot) / interval), s = static_cast<double>(slot);
    blocks += n;
    bytes += n * s;
    of_blocks += n * (1 - p) / (p * p);
    of_bytes += n * s * s * (1 - p) / (p * p);
  }
  void Compare(std::uint64_t found_blocks, std::uint64_t found_bytes, const char* what) const {
    EXPECT_NEAR(blocks, static_cast<double>(found_blocks), kErrors * std::sqrt(of_blocks) + 1 + blocks / 1e4)
        << what;
    EXPECT_NEAR(bytes, static_cast<double>(found_bytes), kErrors * std::sqrt(of_bytes) + 1 + bytes / 1e4)
        << what;
  }
};

void ExpectTrue(const ProfileFile& profile, int site) {
  const Truth& truth = truths[static_cast<std::size_t>(site)];
  const auto interval = static_cast<double>(profile.interval);
  Expected allocated, live;
  for (const auto& [slot, n] : truth.allocated) {
    const auto found = truth.freed.find(slot);
    const std::uint64_t freed = found == truth.freed.end() ? 0 : found->second;
    allocated.Add(slot, static_cast<double>(n), interval);
    live.Add(slot, static_cast<double>(n - freed), interval);
  }
  const ProfiledSite found = Found(profile, site);
  allocated.Compare(found.allocated_blocks, found.allocated_bytes, "allocated");
  live.Compare(found.live_blocks, found.live_bytes, "live");
  EXPECT_GE(found.samples, found.freed);
  EXPECT_GE(found.peak_bytes, 0u);
}
void ExpectTrue(std::initializer_list<int> sites) {
  const ProfileFile profile = Now();
  EXPECT_EQ(0u, profile.dropped);
  for (const int site : sites) {
    SCOPED_TRACE("site " + std::to_string(site));
    ExpectTrue(profile, site);
  }
}

// What stands under the knob now.
std::string Interval(const char* wanted = nullptr) {
  char text[200];
  EXPECT_EQ(0, hz_ctl("profile_heap", wanted, text, sizeof text)) << text;
  return text;
}

// Whether some of the blocks that are no samples lie on guarded pages.
bool OthersAreGuarded() {
  char text[200];
  EXPECT_EQ(0, hz_ctl("guard_sample", nullptr, text, sizeof text)) << text;
  return std::string(text) != "0";
}

class HeapProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (IsTiny()) GTEST_SKIP() << "the line keeps no profile";
    if (Interval() == "0") {
      EXPECT_EQ(0, hz_write_heap_profile("/dev/null"));
      Interval("1K");
    }
  }
};

const unsigned kMany = Long() ? 1'000'000 : Scaled(24'000, 4'000);

TEST(HeapProfileOfATinyLine, IsRefused) {
  if (!IsTiny()) GTEST_SKIP() << "the line keeps a profile";
  EXPECT_EQ(0, hz_write_heap_profile("/tmp/hz_heap_profile.none"));
  EXPECT_NE(0, access("/tmp/hz_heap_profile.none", F_OK));
}

// A bin is last in, first out: of two calls in turn, of which one frees at once, all misses are the same
// one's.
TEST_F(HeapProfile, KeepThenTemporary) {
  std::vector<void*> kept;
  for (unsigned i = 0; i < kMany; ++i) {
    kept.push_back(MakeOf(0, 64));
    FreeOf(1, MakeOf(1, 64), 64);
  }
  ExpectTrue({0, 1});
  for (void* block : kept) FreeOf(0, block, 64);
  ExpectTrue({0, 1});
}
TEST_F(HeapProfile, TemporaryThenKeep) {
  std::vector<void*> kept;
  for (unsigned i = 0; i < kMany; ++i) {
    FreeOf(2, MakeOf(2, 200), 200);
    kept.push_back(MakeOf(3, 200));
  }
  ExpectTrue({2, 3});
  for (void* block : kept) FreeOf(3, block, 200);
}
// In bursts of every length up to that of a bin, so that each place in a bin is somebody's.
TEST_F(HeapProfile, Bursts) {
  std::array<void*, 300> blocks;
  for (unsigned round = 0; round < kMany / 100; ++round) {
    const unsigned length = 1 + round % 300;
    for (unsigned i = 0; i < length; ++i) blocks[i] = MakeOf(4 + static_cast<int>(i % 3), 48);
    for (unsigned i = 0; i < length; ++i) {
      const unsigned at = round % 2 == 0 ? i : length - 1 - i;
      FreeOf(4 + static_cast<int>(at % 3), blocks[at], 48);
    }
  }
  ExpectTrue({4, 5, 6});
}
// Blocks that are nearly as large as the interval, and larger: most are samples.
TEST_F(HeapProfile, LargerSizes) {
  std::vector<void*> kept;
  const std::size_t sizes[] = {1000, 5000, 20'000, 70'000, 300'000};
  for (unsigned i = 0; i < kMany / 60 && i < 2000; ++i) {
    for (const std::size_t size : sizes) {
      void* block = MakeOf(7, size);
      std::memset(block, 1, 64);
      if (i % 3 == 0) {
        FreeOf(7, block, size);
      } else {
        kept.push_back(block);
      }
    }
  }
  ExpectTrue({7});
  for (void* block : kept) api::Free(block);
}

TEST_F(HeapProfile, HugeBlocksAndWhatReallocMakesOfThem) {
  constexpr std::size_t kSize = 6u << 20;
  const ProfileFile before = Now();
  std::uint64_t samples = 0;
  for (const ProfiledSite& site : before.sites) samples += site.samples;
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(MakeOf(8, kSize));
  ExpectTrue({8});
  EXPECT_EQ(10u, Found(Now(), 8).live_blocks) << "each of them is a sample";
  for (void*& block : blocks) {
    std::memset(block, 7, 4096);
    block = api::Realloc(block, 2 * kSize);
    EXPECT_EQ(7, static_cast<unsigned char*>(block)[4095]);
  }
  // They are others now.
  ProfiledSite site = Found(Now(), 8);
  EXPECT_EQ(0u, site.live_blocks);
  EXPECT_EQ(10u, site.freed);
  std::uint64_t live = 0, now = 0;
  for (const ProfiledSite& one : Now().sites) {
    if (one.live_bytes >= 10 * 2 * kSize) live += one.live_blocks;
    now += one.samples;
  }
  EXPECT_EQ(10u, live);
  EXPECT_EQ(samples + 20, now);
  for (void* block : blocks) api::Free(block);
}

// In line secure it grows where it lies as well.
// Its chunks do, for the calls that made it grow, and its huge blocks.
TEST_F(HeapProfile, AFirstClassHeapCounts) {
  constexpr std::size_t kBytes = 48u << 20, kBlock = 1000, kHuge = 6u << 20;
  const auto all = [] {
    std::uint64_t bytes = 0;
    for (const ProfiledSite& site : Now().sites) bytes += site.live_bytes;
    return static_cast<double>(bytes);
  };
  const double before = all();
  hz_heap_t* const heap = hz_heap_new();
  if (heap == nullptr) GTEST_SKIP() << "the line has none";
  for (std::size_t done = 0; done < kBytes; done += kBlock) ASSERT_NE(nullptr, hz_heap_malloc(heap, kBlock));
  // 750 chunks, each a sample with a probability that makes the sum differ by some percents.
  EXPECT_NEAR(double{kBytes}, all() - before, double{kBytes} / 4);
  void* block = hz_heap_malloc(heap, kHuge);
  EXPECT_NEAR(double{kBytes + kHuge}, all() - before, double{kBytes} / 4);
  block = hz_heap_realloc(heap, block, 2 * kHuge);
  EXPECT_NE(nullptr, block);
  hz_heap_destroy(heap);
  EXPECT_EQ(before, all());
}

TEST_F(HeapProfile, AHugeBlockThatGrowsByStepsIsOneAtATime) {
  constexpr std::size_t kSize = 6u << 20, kStep = 64u << 10;
  const auto live = [] {
    std::uint64_t bytes = 0;
    for (const ProfiledSite& site : Now().sites) bytes += site.live_bytes;
    return bytes;
  };
  const std::uint64_t before = live();
  void* block = MakeOf(8, kSize);
  for (std::size_t i = 1; i <= 32; ++i) block = api::Realloc(block, kSize + i * kStep);
  api::Free(block);
  EXPECT_EQ(before, live());
}

TEST_F(HeapProfile, AnotherThreadFrees) {
  std::vector<void*> blocks(kMany / 2);
  Thread([&] {
    for (void*& block : blocks) block = MakeOf(9, 96);
  }).Join();
  ExpectTrue({9});
  Thread([&] {
    for (void*& block : blocks) FreeOf(9, block, 96);
  }).Join();
  ExpectTrue({9});
  const ProfiledSite site = Found(Now(), 9);
  EXPECT_EQ(site.samples, site.freed);
  EXPECT_EQ(0u, site.live_bytes);
}

// Each in a site of its own, at once; with revocations between, and with caches that are taken back.
TEST_F(HeapProfile, ManyThreads) {
  constexpr int kThreads = 4;
  std::array<std::vector<void*>, kThreads> kept;
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int n = 0; n < kThreads; ++n) {
      threads.push_back(std::make_unique<Thread>([n, &kept] {
        const int keeps = 10 + 2 * n;
        for (unsigned i = 0; i < kMany / 4; ++i) {
          void* temporary = MakeOf(keeps + 1, 128);
          if (i % 2 == 0) kept[static_cast<std::size_t>(n)].push_back(MakeOf(keeps, 128));
          FreeOf(keeps + 1, temporary, 128);
        }
      }));
    }
    for (int i = 0; i < 20; ++i) {
      api::Trim();
      usleep(500);
    }
  }
  ExpectTrue({10, 11, 12, 13, 14, 15, 16, 17});
  for (int n = 0; n < kThreads; ++n)
    for (void* block : kept[static_cast<std::size_t>(n)]) FreeOf(10 + 2 * n, block, 128);
}
// A thread that ends has drawn and not come to it; all of them together are as one.
TEST_F(HeapProfile, ThreadsThatDoLittle) {
  const unsigned threads = Scaled(400, 60);
  for (unsigned n = 0; n < threads; ++n) {
    Thread([] {
      for (int i = 0; i < 10; ++i) FreeOf(18, MakeOf(18, 400), 400);
      for (int i = 0; i < 5; ++i) FreeOf(19, MakeOf(19, 400), 400);
    }).Join();
  }
  ExpectTrue({18, 19});
}

// What is asked of a block does not depend on whether it is a sample.
TEST_F(HeapProfile, SamplesAreBlocksLikeAnyOther) {
  Random random(7);
  const bool guarded = OthersAreGuarded();
  for (unsigned i = 0; i < kMany / 4; ++i) {
    const std::size_t size = LogSize(random, 15);
    const std::size_t alignment = std::size_t{1} << Below(random, 13);
    auto* block =
        static_cast<unsigned char*>(i % 2 == 0 ? api::Calloc(1, size) : api::AlignedAlloc(alignment, size));
    ASSERT_NE(nullptr, block);
    if (i % 2 == 0) {
      ASSERT_EQ(size, static_cast<std::size_t>(std::count(block, block + size, 0)));
      if (guarded) {  // what was asked for, which each block has
        ASSERT_LE(hz_good_size(size), api::UsableSize(block));
      } else {
        ASSERT_EQ(hz_good_size(size), api::UsableSize(block));
      }
    } else {
      ASSERT_EQ(0u, reinterpret_cast<std::uintptr_t>(block) % alignment);
      ASSERT_LE(size, api::UsableSize(block));
    }
    ASSERT_EQ(0, hz_check(block));
    ASSERT_EQ(1, hz_owns(block));
    std::memset(block, 5, api::UsableSize(block));
    switch (i % 4) {
      case 0: {
        auto* moved = static_cast<unsigned char*>(api::Realloc(block, size * 2));
        ASSERT_EQ(size, static_cast<std::size_t>(std::count(moved, moved + size, 5)));
        api::Free(moved);
        break;
      }
      case 1: api::FreeAlignedSized(block, alignment, size); break;
      case 2: api::FreeSized(block, size); break;
      default: api::Free(block);
    }
  }
}

// A sample lies in a run of its own, but the figures count what the program asked for.
TEST_F(HeapProfile, FiguresCountASampleAsWhatWasAskedFor) {
  constexpr std::size_t kBytes = 1024;
  const auto now = [] {
    hz_stats_t stats;
    hz_stats(&stats, sizeof stats);
    return stats;
  };
  std::vector<void*> blocks(kMany / 4);
  const hz_stats_t before = now();
  for (void*& block : blocks) block = api::Malloc(kBytes);
  const hz_stats_t full = now();
  EXPECT_NEAR(static_cast<double>(blocks.size() * kBytes),
              static_cast<double>(full.bytes_live - before.bytes_live), 1024.0 * kBytes);
  EXPECT_LE(full.bytes_live, full.bytes_held);
  EXPECT_LE(full.bytes_held, full.bytes_peak);
  for (void* block : blocks) api::Free(block);
  EXPECT_NEAR(static_cast<double>(before.bytes_live), static_cast<double>(now().bytes_live), 1024.0 * kBytes);
}

TEST_F(HeapProfile, TheFileIsWhole) {
  FreeOf(20, MakeOf(20, 5u << 20), 5u << 20);
  const ProfileFile profile = Now();
  EXPECT_EQ(static_cast<std::uint64_t>(getpid()), profile.pid);
  EXPECT_EQ(hz_line(), profile.library);
  EXPECT_EQ('/', profile.process.empty() ? 0 : profile.process[0]);
  EXPECT_NE(0u, profile.interval);
  EXPECT_NE(0u, profile.uptime);
  bool mapped = false;
  const auto here = reinterpret_cast<std::uintptr_t>(kMakers[0]);
  for (const std::string& line : profile.mappings) {
    std::size_t at = 0;
    const std::uintptr_t start = std::stoull(line, &at, 16),
                         end = std::stoull(line.substr(at + 1), nullptr, 16);
    mapped |= start <= here && here < end;
  }
  EXPECT_TRUE(mapped);
  for (const ProfiledSite& site : profile.sites) {
    EXPECT_EQ(24u, site.lifetimes.size());
    std::uint64_t freed = 0;
    for (const std::uint64_t n : site.lifetimes) freed += n;
    EXPECT_EQ(site.freed, freed);
    EXPECT_GE(64u, site.frames.size());
  }
  const ProfiledSite once = Found(profile, 20);
  EXPECT_EQ(1u, once.samples);
  EXPECT_EQ(1u, once.freed);
  EXPECT_EQ(0, hz_write_heap_profile("/no/such/folder/file"));
}

// Its peak is when all live bytes were the most, which is not when each site's were. In a process of its own.
class HeapProfilePeak : public HeapProfile {};
TEST_F(HeapProfilePeak, IsOneMoment) {
  constexpr std::size_t kSize = 64u << 20;
  void* first = MakeOf(21, kSize);
  FreeOf(21, first, kSize);
  void* second = MakeOf(22, 2 * kSize);
  const ProfileFile profile = Now();
  EXPECT_EQ(0u, Found(profile, 21).peak_blocks);
  EXPECT_EQ(1u, Found(profile, 22).peak_blocks);
  FreeOf(22, second, 2 * kSize);
  EXPECT_EQ(1u, Found(Now(), 22).peak_blocks);
  EXPECT_EQ(0u, Found(Now(), 22).live_blocks);
}

// A child goes on with what its parent had, and neither sees the other.
TEST_F(HeapProfile, AChildGoesOnByItself) {
  constexpr std::size_t kSize = 8u << 20;
  void* block = MakeOf(23, kSize);
  const int answer = InAFork([&] {
    if (Found(Now(), 23).live_blocks != 1) return 1;
    api::Free(block);
    for (int i = 0; i < 3; ++i) MakeOf(24, kSize);
    const ProfileFile profile = Now();
    if (profile.pid != static_cast<std::uint64_t>(getpid())) return 2;
    return Found(profile, 23).live_blocks == 0 && Found(profile, 24).live_blocks == 3 ? 0 : 3;
  });
  EXPECT_EQ(0, answer);
  EXPECT_EQ(1u, Found(Now(), 23).live_blocks);
  EXPECT_EQ(0u, Found(Now(), 24).live_blocks);
  FreeOf(23, block, kSize);
}

// What is allocated meanwhile is nobody's, also of a thread that lives through it; what was a sample before
// is one.
class HeapProfileThatPauses : public HeapProfile {};
TEST_F(HeapProfileThatPauses, GoesOnWhereItWas) {
  constexpr std::size_t kSize = 100;
  std::vector<void*> before, meanwhile, after;
  // A crossing of each thread tells it.
  const auto cross = [] { FreeOf(31, MakeOf(31, 8u << 20), 8u << 20); };
  const auto make = [](int site, std::vector<void*>& into) {
    for (unsigned i = 0; i < kMany / 2; ++i) into.push_back(MakeOf(site, kSize));
  };
  Barrier step(2);
  Thread other([&] {
    for (unsigned i = 0; i < 1000; ++i) FreeOf(25, MakeOf(25, kSize), kSize);
    step.Wait();  // it pauses
    cross();
    for (unsigned i = 0; i < kMany / 4; ++i) FreeOf(26, MakeOf(26, kSize), kSize);
    step.Wait();
    step.Wait();  // it goes on
    cross();
    for (unsigned i = 0; i < kMany / 4; ++i) FreeOf(27, MakeOf(27, kSize), kSize);
  });
  cross();
  make(28, before);
  ExpectTrue({28});
  EXPECT_EQ("0", Interval("0"));
  cross();
  step.Wait();
  make(29, meanwhile);
  for (void* block : before) FreeOf(28, block, kSize);
  step.Wait();
  EXPECT_EQ("2048", Interval("2K")) << "another one: of what is a sample already nothing changes";
  cross();
  step.Wait();
  make(30, after);
  other.Join();
  const ProfileFile profile = Now();
  EXPECT_EQ(2048u, profile.interval);
  for (const int site : {26, 29}) EXPECT_EQ(0u, Found(profile, site).samples) << site;
  for (const int site : {27, 30}) ExpectTrue(profile, site);
  EXPECT_EQ(Found(profile, 28).samples, Found(profile, 28).freed);
  EXPECT_EQ(0u, Found(profile, 28).live_bytes);
  for (void* block : meanwhile) api::Free(block);
  for (void* block : after) FreeOf(30, block, kSize);
  EXPECT_EQ(0u, Found(Now(), 30).live_bytes);
}
TEST_F(HeapProfileThatPauses, AndGoesOnWhileThreadsAreAtWork) {
  std::atomic<bool> done{false};
  std::vector<std::unique_ptr<Thread>> threads;
  for (unsigned n = 0; n < 3; ++n) {
    threads.push_back(std::make_unique<Thread>([n, &done] {
      Random random(n);
      std::array<unsigned char*, 200> blocks = {};
      while (!done.load(std::memory_order_relaxed)) {
        unsigned char*& block = blocks[Below(random, 200)];
        if (block != nullptr && *block != n) std::abort();
        api::Free(block);
        block = static_cast<unsigned char*>(api::Malloc(1 + Below(random, 3000)));
        *block = static_cast<unsigned char>(n);
      }
      for (unsigned char* block : blocks) api::Free(block);
    }));
  }
  const char* const intervals[] = {"0", "1K", "4K", "0", "64"};
  for (unsigned i = 0; i < Scaled(200, 40); ++i) {
    Interval(intervals[i % 5]);
    if (i % 3 == 0) api::Trim();
    usleep(300);
  }
  done.store(true, std::memory_order_relaxed);
  threads.clear();
  EXPECT_EQ("1024", Interval("1K"));
  const ProfileFile profile = Now();
  for (const ProfiledSite& site : profile.sites) EXPECT_GE(site.samples, site.freed);
}

// One of them begins it, whoever that is; and who forks meanwhile has a child that can do the same.
TEST_F(HeapProfileThatPauses, AsManyAtOnceSay) {
  std::atomic<unsigned> done{0};
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (unsigned n = 0; n < 4; ++n) {
      threads.push_back(std::make_unique<Thread>([n, &done] {
        for (unsigned i = 0; i < Scaled(200, 20); ++i) {
          char text[200];
          const int error = hz_ctl("profile_heap", (i + n) % 2 == 0 ? "2K" : "0", text, sizeof text);
          EXPECT_TRUE(error == 0 || error == EBUSY) << error << " " << text;
          done += error == 0 ? 1 : 0;
          api::Free(MakeAt<31>(8u << 20));
        }
      }));
    }
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(0, InAFork([] {
                  char text[200];
                  if (hz_ctl("profile_heap", "1K", text, sizeof text) != 0) return 1;
                  for (int n = 0; n < 1000; ++n) api::Free(MakeAt<31>(5000));
                  return Found(Now(), 31).samples != 0 ? 0 : 2;
                }));
    }
  }
  EXPECT_NE(0u, done);
  EXPECT_EQ("1024", Interval("1K"));
}

// More stacks than there is room for: the rest is said to be missing.
class HeapProfileThatIsFull : public HeapProfile {
 protected:
  static constexpr int kBits = 15;

  // A path of its own for each number.
  __attribute__((noinline)) static void Left(unsigned number, int bits);
  __attribute__((noinline)) static void Right(unsigned number, int bits);
  __attribute__((noinline)) static void Down(unsigned number, int bits) {
    if (bits == 0) {
      api::Free(MakeAt<31>(100'000));
    } else if ((number & 1) != 0) {
      Left(number >> 1, bits - 1);
    } else {
      Right(number >> 1, bits - 1);
    }
    asm volatile("");  // no jump
  }
};
void HeapProfileThatIsFull::Left(unsigned number, int bits) {
  Down(number, bits);
  asm volatile("# left");  // no jump, and not the same as the other one
}
void HeapProfileThatIsFull::Right(unsigned number, int bits) {
  Down(number, bits);
  asm volatile("# right");
}

TEST_F(HeapProfileThatIsFull, SaysWhatIsMissing) {
  hz_stats_t stats;
  hz_stats(&stats, sizeof stats);
  if (ExpectedLine() != "hakozuna" || stats.counting != 0 || OthersAreGuarded() || kUnderTool)
    GTEST_SKIP() << "the tables are every line's";
  constexpr unsigned kMost = 1u << 14, kAll = 1u << kBits;
  for (unsigned i = 0; i < kAll; ++i) Down(i, kBits);
  const ProfileFile profile = Now();
  ASSERT_EQ(kMost, profile.sites.size());
  EXPECT_GE(profile.dropped, kAll - kMost);
  EXPECT_LE(profile.dropped, kAll - kMost + 1000);
  EXPECT_EQ(kAll, Found(profile, 31).samples + profile.dropped);
}

}  // namespace
}  // namespace hz_test
