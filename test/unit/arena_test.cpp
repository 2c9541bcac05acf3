// SPDX-License-Identifier: Apache-2.0
//
// The arena: what its header says beyond the contract of a source, and life under a limit of address space.
#include "box/source/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "support/pattern.hpp"
#include "support/rss.hpp"
#include "support/sanitizers.hpp"
#include "unit/again.hpp"

namespace hz_test {
namespace {

using hz::Arena;
using hz::kGranule;

constexpr hz::TableShape kShapes[] = {{1, true, true}, {99, true, true}};

class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Arena::open(arena_, kShapes, 2)); }
  void TearDown() override { Arena::close(arena_); }

  hz::Run Acquire(std::size_t granules, std::size_t alignment = 1) {
    return Arena::acquire(arena_, granules, alignment);
  }
  void Fill(const hz::Run& run, std::size_t granules) {
    std::memset(hz::pointer(run.at), 0x5A, granules * kGranule);
  }

  Arena::Global arena_;
};

// Bytes of writable private mappings: what a system that never overcommits charges. Allocates nothing, for
// that may be charged, too.
std::size_t Charged() {
  static std::array<char, hz::kMiB> text;
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  std::size_t length = 0;
  while (length < text.size() - 1) {
    const ssize_t n = read(file, text.data() + length, text.size() - 1 - length);
    if (n <= 0) break;
    length += static_cast<std::size_t>(n);
  }
  close(file);
  text[length] = 0;
  std::size_t bytes = 0;
  for (const char* line = text.data(); line != nullptr && *line != 0;) {
    std::size_t begin = 0, end = 0;
    char access[5] = {};
    if (std::sscanf(line, "%zx-%zx %4s", &begin, &end, access) == 3 && access[1] == 'w' && access[3] == 'p')
      bytes += end - begin;
    line = std::strchr(line, '\n');
    if (line != nullptr) ++line;
  }
  return bytes;
}

TEST_F(ArenaTest, PlansFarMoreThanThereIsMemoryAndTakesWhatIsUsed) {
  if (arena_.plan.reserved()) GTEST_SKIP() << "this system wants addresses to be reserved";
  EXPECT_GE(Arena::bytes(arena_), 4 * hz::os::memory_bytes());
  Arena::Global other;
  const std::size_t before = Charged();
  ASSERT_TRUE(Arena::open(other, kShapes, 2));
  EXPECT_LE(Charged(), before + 3 * hz::kMiB) << "at first";
  ASSERT_NE(0u, Arena::acquire(other, 16384, 1).at);
  EXPECT_GE(Charged(), before + hz::kGiB);
  EXPECT_LE(Charged(), before + hz::kGiB + 80 * hz::kMiB);
  Arena::close(other);
  EXPECT_LE(Charged(), before + hz::kMiB) << "closed";
}

TEST_F(ArenaTest, NoHugePageButTheFirstIsUsableInPart) {
  using hz::AddressPlan;
  const std::uintptr_t first = Acquire(3).at;
  EXPECT_TRUE(hz::os::is_mapped(hz::pointer(first), 4 * kGranule));
  if (!arena_.plan.reserved()) {
    EXPECT_FALSE(hz::os::is_mapped(hz::pointer(first + 4 * kGranule), kGranule)) << "few for a small process";
  }
  for (const std::size_t granules : {30, 63, 64, 65, 5000}) {
    const std::uintptr_t run = Acquire(granules).at;
    ASSERT_NE(0u, run);
    const std::uintptr_t end = hz::align_up(run + granules * kGranule, AddressPlan::kHugePage);
    EXPECT_TRUE(hz::os::is_mapped(hz::pointer(end - kGranule), kGranule));
  }
  EXPECT_EQ(0u, Arena::base(arena_) % AddressPlan::kHugePage);
}

// Somebody's mapping, which must stay as it is.
class Stranger {
 public:
  Stranger(std::uintptr_t at, std::size_t bytes) : bytes_(bytes) {
    at_ = static_cast<unsigned char*>(mmap(hz::pointer(at), bytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                                           -1, 0));
    EXPECT_EQ(hz::pointer(at), at_);
    at_[0] = at_[bytes - 1] = kMark;
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() {
    EXPECT_TRUE(at_[0] == kMark && at_[bytes_ - 1] == kMark);
    munmap(at_, bytes_);
  }

 private:
  static constexpr unsigned char kMark = 0x77;
  unsigned char* at_;
  const std::size_t bytes_;
};

TEST_F(ArenaTest, WhatOthersMappedInItsWayIsSkipped) {
  if (arena_.plan.reserved()) GTEST_SKIP() << "what is reserved is nobody else's";
  const std::uintptr_t first = Acquire(1).at;
  for (const std::size_t megabytes : {2, 100, 5000}) {
    const hz::AddressPlan& plan = arena_.plan;
    const Stranger stranger(plan.at(plan.stretch(plan.stretches() - 1).usable) + 20 * hz::kMiB,
                            megabytes * hz::kMiB);
    for (int i = 0; i < 100; ++i) {
      const hz::Run run = Acquire(static_cast<std::size_t>(16 + i));
      ASSERT_NE(0u, run.at) << i;
      EXPECT_EQ(run.at, Arena::start(arena_, run.at + 5 * kGranule));
      Fill(run, 1);
    }
    EXPECT_NE(0u, Acquire(40000).at);
  }
  EXPECT_LE(arena_.plan.stretches(), 8u);
  EXPECT_EQ(first, Arena::start(arena_, first));
  EXPECT_EQ(0u, Arena::start(arena_, arena_.plan.at(arena_.plan.stretch(1).begin - 5))) << "nobody's";
}

TEST_F(ArenaTest, TablesThatCannotGrowMeanNoMemory) {
  if (arena_.plan.reserved()) GTEST_SKIP() << "what is reserved is nobody else's";
  for (unsigned table = 0; table < 3; ++table) {
    Arena::Global arena;
    ASSERT_TRUE(Arena::open(arena, kShapes, 2));
    ASSERT_NE(0u, Arena::acquire(arena, 1, 1).at);
    const hz::TableShape rows = {sizeof(hz::RunTable::Row), false, true};
    const std::size_t stride = table == 2 ? rows.row_bytes : kShapes[table].row_bytes;
    const std::size_t later = arena.plan.stretch(0).begin + 100000;
    const std::uintptr_t place = (arena.plan.table(table) + later * stride) & ~(hz::kPage - 1);
    std::size_t granules = 0;
    std::size_t charged = 0;
    {
      const Stranger stranger(place, hz::kPage);
      for (int refused = 0; refused < 3;) {
        charged = Charged();
        const hz::Run run = Arena::acquire(arena, 1000, 1);
        granules += run.at != 0 ? 1000 : 0;
        refused += run.at == 0 ? 1 : 0;
        ASSERT_LT(granules, 110000U) << table;
      }
      EXPECT_GE(granules, 70000U) << table;
      EXPECT_EQ(charged, Charged()) << "what is refused costs nothing";
      EXPECT_EQ(0u, Arena::acquire(arena, 50000, 1).at);
      const std::uintptr_t run = Arena::start(arena, arena.plan.at(arena.plan.stretch(0).begin));
      Arena::release(arena, run, false);
      EXPECT_NE(0u, Arena::acquire(arena, 1, 1).at) << "what is there goes on";
    }
    EXPECT_NE(0u, Arena::acquire(arena, 1000, 1).at) << "it is gone";
    Arena::close(arena);
  }
}

// A gap of gigabytes is not paid for, and not lost: the heap goes on in it. A small one is; where the arena
// lies, which is at random, decides whether a boundary is that near.
TEST_F(ArenaTest, LargeAlignmentsTouchOnlyWhatTheyNeed) {
  if (arena_.plan.reserved()) GTEST_SKIP() << "where a range is reserved it is none too long";
  Acquire(1);
  const std::size_t charged = Charged();
  const std::size_t held = Arena::held_bytes(arena_);
  std::size_t small_gaps = 0;
  for (unsigned shift = 30; shift <= 40; ++shift) {
    const std::size_t alignment = (std::size_t{1} << shift) / kGranule;
    const std::size_t gap = arena_.plan.gap(arena_.plan.spot(2, alignment)) * kGranule;
    ASSERT_LE(gap, 64 * hz::kMiB) << shift;
    small_gaps += gap + gap / 8;  // steps are generous
    const hz::Run run = Acquire(2, alignment);
    ASSERT_NE(0u, run.at) << shift;
    EXPECT_EQ(0u, run.at % (alignment * kGranule)) << shift;
    EXPECT_TRUE(run.zeroed);
    EXPECT_EQ(run.at, Arena::start(arena_, run.at + kGranule));
    EXPECT_EQ(0u, Arena::start(arena_, run.at - kGranule));
    Fill(run, 2);
    Arena::release(arena_, run.at, false);
    EXPECT_EQ(run.at, Acquire(2, alignment).at) << "and again";
  }
  EXPECT_LE(Charged(), charged + 11 * 3 * hz::kMiB + small_gaps);
  EXPECT_LE(Arena::held_bytes(arena_), held + 11 * 3 * kGranule);
  const hz::Run next = Acquire(1);
  EXPECT_LT(next.at, arena_.plan.at(arena_.plan.stretch(1).begin)) << "in the gap";
  EXPECT_EQ(0u, Acquire(1, std::size_t{1} << 31).at) << "beyond the plan";
}

TEST_F(ArenaTest, TouchedMemoryIsDealtOutAgainFirst) {
  const hz::Run clean = Acquire(3);
  Acquire(1);
  const hz::Run dirty = Acquire(3);
  Acquire(1);
  Fill(dirty, 3);
  Arena::release(arena_, clean.at, true);
  Arena::release(arena_, dirty.at, false);
  const hz::Run again = Acquire(2);
  EXPECT_EQ(dirty.at, again.at);
  EXPECT_FALSE(again.zeroed);
  EXPECT_EQ(kGranule, Arena::dirty_bytes(arena_));
  EXPECT_EQ(clean.at, Acquire(3).at);
}

TEST_F(ArenaTest, HalfDirtyIsNotZeroed) {
  const hz::Run run = Acquire(2);
  Acquire(1);
  Fill(run, 2);
  ASSERT_TRUE(Arena::resize(arena_, run.at, 1));
  Arena::purge(arena_, 0, SIZE_MAX);
  Arena::release(arena_, run.at, false);
  EXPECT_EQ(kGranule, Arena::dirty_bytes(arena_)) << "one of the two was purged before";
  const hz::Run whole = Acquire(2);
  EXPECT_EQ(run.at, whole.at);
  EXPECT_FALSE(whole.zeroed);
  EXPECT_EQ(0u, Arena::dirty_bytes(arena_));
  Fill(whole, 2);
}

TEST_F(ArenaTest, AnAlignedRunWastesNothing) {
  Acquire(1);
  for (std::size_t alignment = 2; alignment <= 1024; alignment *= 2) {
    const hz::Run run = Acquire(1, alignment);
    ASSERT_EQ(0u, run.at % (alignment * kGranule)) << alignment;
    Fill(run, 1);
  }
  const std::size_t reached = Arena::reached_bytes(arena_);
  std::size_t gaps = 0;
  for (hz::Run run = Acquire(1); Arena::reached_bytes(arena_) == reached; run = Acquire(1)) {
    EXPECT_TRUE(run.zeroed);
    ++gaps;
  }
  EXPECT_EQ(reached / kGranule - 11, gaps) << "the gaps before aligned runs are free runs";
}

TEST_F(ArenaTest, ImpossibleRequestsAreRefused) {
  for (std::size_t granules : {Arena::bytes(arena_) / kGranule, SIZE_MAX / kGranule, SIZE_MAX}) {
    EXPECT_EQ(0u, Acquire(granules).at);
  }
  for (unsigned shift = 27; shift < 48; ++shift) EXPECT_EQ(0u, Acquire(1, std::size_t{1} << shift).at);
  const hz::Run run = Acquire(1);
  EXPECT_FALSE(Arena::resize(arena_, run.at, SIZE_MAX / kGranule));
  EXPECT_EQ(1u, Arena::granules(arena_, run.at));
}

TEST_F(ArenaTest, RowsOfACleanRunGoBackButForItsEnds) {
  constexpr std::size_t kRuns = 20000;
  std::vector<std::uintptr_t> runs(kRuns);
  for (std::uintptr_t& run : runs) run = Acquire(1).at;
  ASSERT_NE(0u, runs.back());
  const hz::RunTable& table = arena_.book.runs;
  const auto resident = [&] {
    const hz::AddressPlan::Stretch& used = arena_.plan.stretch(0);
    const std::uintptr_t from = hz::align_up(hz::address(table.rows + used.begin), hz::kPage);
    const std::uintptr_t to = hz::address(table.rows + used.top) & ~(hz::kPage - 1);
    std::vector<unsigned char> pages((to - from) / hz::kPage);
    EXPECT_EQ(0, mincore(hz::pointer(from), to - from, pages.data()));
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  };
  const auto page = static_cast<long>(hz::os::page_bytes() / hz::kPage);
  EXPECT_GE(resident(), 100);
  for (std::size_t i = 0; i < kRuns; ++i) {
    if (i != kRuns / 2) Arena::release(arena_, runs[i], false);
  }
  Arena::purge(arena_, 0, SIZE_MAX);
  EXPECT_LE(resident(), 4 * page) << "two clean runs have four ends";
  Arena::release(arena_, runs[kRuns / 2], false);
  Arena::purge(arena_, 0, SIZE_MAX);
  EXPECT_LE(resident(), 2 * page);
  EXPECT_EQ(runs.front(), Acquire(kRuns).at) << "one run again";
}

TEST_F(ArenaTest, PurgeGivesPagesBack) {
  if (kUnderTool) GTEST_SKIP() << "resident memory means nothing here";
  constexpr std::size_t kGranules = 1024;  // 64 MiB
  const std::size_t before = RssBytes();
  const hz::Run run = Acquire(kGranules);
  Fill(run, kGranules);
  EXPECT_GE(RssBytes(), before + 60 * hz::kMiB);
  Arena::release(arena_, run.at, false);
  EXPECT_EQ(kGranules * kGranule, Arena::purge(arena_, 0, SIZE_MAX));
  EXPECT_LE(RssBytes(), before + 2 * hz::kMiB);
}

std::size_t VirtualBytes() { return ProcBytes("/proc/self/status", "VmSize:"); }

void ExpectServesUntilTheLimit() {
  Arena::Global arena;
  const std::size_t limit = hz::os::address_space_limit();
  ASSERT_NE(SIZE_MAX, limit);
  ASSERT_TRUE(Arena::open(arena, kShapes, 2));
  EXPECT_LT(VirtualBytes(), limit - limit / 8) << "nothing is reserved ahead";
  std::vector<std::uintptr_t> runs;
  runs.reserve(limit / kGranule);  // later there will be no room for it
  for (int round = 0; round < 2; ++round) {
    for (;;) {
      const hz::Run run = Arena::acquire(arena, 1 + runs.size() % 5, 1);
      if (run.at == 0) break;
      runs.push_back(run.at);
      if (runs.size() < 2000) std::memset(hz::pointer(run.at), 1, kGranule);
    }
    EXPECT_GE(VirtualBytes(), limit - 2 * hz::kMiB) << "refused although there was room";
    EXPECT_EQ(0u, Arena::acquire(arena, 4096, 1).at);
    ASSERT_FALSE(runs.empty());
    for (std::uintptr_t run : runs) Arena::release(arena, run, false);
    runs.clear();
    Arena::purge(arena, 0, SIZE_MAX);
  }
}

// Fills the limit with runs of which parts of the last granule are never used, frees some at random, and goes
// on with others, whose bytes all have to be there.
void ExpectPagesBehindRunsServeOthers() {
  struct Used {
    std::uintptr_t at;
    std::size_t granules, bytes;
    unsigned char mark;
  };
  Arena::Global arena;
  const std::size_t limit = hz::os::address_space_limit();
  ASSERT_TRUE(Arena::open(arena, kShapes, 2));
  std::vector<Used> runs;
  runs.reserve(limit / kGranule * 2);
  hz::Random random(17);
  const auto fill = [&](std::size_t size) {
    std::size_t total = 0;
    for (unsigned char mark = 1;; mark = mark % 250 + 1) {
      const std::size_t granules = 1 + random.below(4), whole = granules * kGranule;
      const std::size_t bytes = size != 0 ? size : whole - random.below(kGranule);
      hz::Run run = Arena::acquire(arena, size != 0 ? 1 : granules, 1, {.used = bytes});
      if (run.at == 0) {
        Arena::purge(arena, 0, SIZE_MAX);
        run = Arena::acquire(arena, size != 0 ? 1 : granules, 1, {.used = bytes});
      }
      if (run.at == 0) break;
      runs.push_back({run.at, size != 0 ? 1 : granules, bytes, mark});
      EXPECT_TRUE(!run.zeroed || IsZero(hz::pointer(run.at), bytes));
      std::memset(hz::pointer(run.at), mark, bytes);
    }
    for (const Used& run : runs) {
      total += run.bytes;
      const auto* byte = static_cast<const unsigned char*>(hz::pointer(run.at));
      for (std::size_t i = 0; i < run.bytes; i += 1000) ASSERT_EQ(run.mark, byte[i]);
    }
    EXPECT_GT(total, limit / 16 * 9) << size;
  };
  const auto free = [&](unsigned percent) {
    for (std::size_t i = runs.size(); i-- != 0;) {
      if (random.below(100) >= percent) continue;
      Arena::release(arena, runs[i].at, false);
      runs[i] = runs.back();
      runs.pop_back();
    }
    if (random.below(2) == 0) Arena::purge(arena, 0, SIZE_MAX);
  };
  for (int round = 0; round < 20; ++round) {
    fill(round % 5 == 0 ? 36 * hz::kKiB : 0);
    free(round % 5 == 4 ? 100 : 30 + random.below(60));
    if (round % 5 == 4) Arena::purge(arena, 0, SIZE_MAX);
  }
  const hz::Run half = Arena::acquire(arena, limit / 2 / kGranule, 1);
  ASSERT_NE(0u, half.at);
  std::memset(hz::pointer(half.at), 1, limit / 2);
}

TEST(ArenaUnderALimit, PagesBehindRunsServeOthers) {
  if (kUnderTool) GTEST_SKIP() << "no sanitizer starts under a limit of address space";
  if (std::getenv("HZ_UNIT_LIMITED") != nullptr) return ExpectPagesBehindRunsServeOthers();
  const ChildResult result = RunThisTestAgain({{"HZ_UNIT_LIMITED", "1"}}, std::to_string(128 * 1024));
  EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
}

TEST(ArenaUnderALimit, OpensAndServesUntilTheLimit) {
  if (kUnderTool) GTEST_SKIP() << "no sanitizer starts under a limit of address space";
  if (std::getenv("HZ_UNIT_LIMITED") != nullptr) return ExpectServesUntilTheLimit();
  for (std::size_t mebibytes : {64, 256, 1024, 4096}) {
    const ChildResult result = RunThisTestAgain({{"HZ_UNIT_LIMITED", "1"}}, std::to_string(mebibytes * 1024));
    EXPECT_EQ(0, result.exit_code) << mebibytes << " MiB, signal " << result.signal << "\n"
                                   << result.out << result.err;
  }
}

}  // namespace
}  // namespace hz_test
