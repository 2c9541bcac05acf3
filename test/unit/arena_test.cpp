// SPDX-License-Identifier: Apache-2.0
//
// The arena: what its header says beyond the contract of a source, and life under a limit of address space.
#include "box/source/arena.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/pattern.hpp"
#include "support/rss.hpp"
#include "support/sanitizers.hpp"
#include "unit/again.hpp"

namespace hz_test {
namespace {

using hz::Arena;
using hz::kGranule;

constexpr std::size_t kTableBytes = 100;

class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Arena::open(arena_, kTableBytes)); }
  void TearDown() override { hz::os::unmap(hz::pointer(Arena::base(arena_)), Arena::bytes(arena_)); }

  hz::Run Acquire(std::size_t granules, std::size_t alignment = 1) {
    return Arena::acquire(arena_, granules, alignment);
  }
  void Fill(const hz::Run& run, std::size_t granules) { std::memset(hz::pointer(run.at), 0x5A, granules * kGranule); }

  Arena::Global arena_;
};

TEST_F(ArenaTest, ReservesFarMoreThanThereIsMemory) {
  if (hz::os::address_space_limit() != SIZE_MAX) return;  // then it grows instead
  EXPECT_GE(Arena::bytes(arena_), Arena::kDefaultBytes);
  EXPECT_GE(Arena::bytes(arena_), 4 * hz::os::memory_bytes());
}

TEST_F(ArenaTest, NoHugePageIsUsableInPart) {
  using hz::AddressRange;
  for (const std::size_t granules : {1, 63, 64, 65}) {
    ASSERT_NE(0u, Acquire(granules).at);
    EXPECT_EQ(0u, arena_.range.base % AddressRange::kHugePage);
    EXPECT_EQ(0u, (arena_.range.committed - arena_.range.base) % AddressRange::kHugePage);
  }
}

TEST_F(ArenaTest, TablesComeFirstAndReadAsZero) {
  const std::size_t bytes = Arena::bytes(arena_) / kGranule * kTableBytes;
  EXPECT_EQ(Arena::base(arena_), Arena::tables(arena_));
  const auto* tables = static_cast<const char*>(hz::pointer(Arena::tables(arena_)));
  for (std::size_t at = 0; at < bytes; at += hz::kPage) ASSERT_EQ(0, tables[at]);
  EXPECT_GE(Acquire(1).at, Arena::tables(arena_) + bytes);
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
  Arena::purge(arena_, 0);
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
  EXPECT_EQ(0u, Acquire(1, std::size_t{1} << 47).at);
  const hz::Run run = Acquire(1);
  EXPECT_FALSE(Arena::resize(arena_, run.at, SIZE_MAX / kGranule));
  EXPECT_EQ(1u, Arena::granules(arena_, run.at));
}

TEST_F(ArenaTest, RowsOfACleanRunGoBackButForItsEnds) {
  constexpr std::size_t kRuns = 20000;
  std::vector<std::uintptr_t> runs(kRuns);
  for (std::uintptr_t& run : runs) run = Acquire(1).at;
  ASSERT_NE(0u, runs.back());
  const hz::RunTable& table = arena_.runs;
  const auto resident = [&] {
    const std::uintptr_t from = hz::align_up(hz::address(table.rows + table.first), hz::kPage);
    const std::uintptr_t to = hz::address(table.rows + table.top) & ~(hz::kPage - 1);
    std::vector<unsigned char> pages((to - from) / hz::kPage);
    EXPECT_EQ(0, mincore(hz::pointer(from), to - from, pages.data()));
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  };
  const auto page = static_cast<long>(hz::os::page_bytes() / hz::kPage);
  EXPECT_GE(resident(), 100);
  for (std::size_t i = 0; i < kRuns; ++i) {
    if (i != kRuns / 2) Arena::release(arena_, runs[i], false);
  }
  Arena::purge(arena_, 0);
  EXPECT_LE(resident(), 4 * page) << "two clean runs have four ends";
  Arena::release(arena_, runs[kRuns / 2], false);
  Arena::purge(arena_, 0);
  EXPECT_LE(resident(), 2 * page);
  EXPECT_EQ(runs.front(), Acquire(kRuns).at) << "one run again";
}

TEST_F(ArenaTest, PurgeGivesPagesBack) {
  if (kSanitized) GTEST_SKIP() << "resident memory means nothing here";
  constexpr std::size_t kGranules = 1024;  // 64 MiB
  const std::size_t before = RssBytes();
  const hz::Run run = Acquire(kGranules);
  Fill(run, kGranules);
  EXPECT_GE(RssBytes(), before + 60 * hz::kMiB);
  Arena::release(arena_, run.at, false);
  EXPECT_EQ(kGranules * kGranule, Arena::purge(arena_, 0));
  EXPECT_LE(RssBytes(), before + 2 * hz::kMiB);
}

std::size_t VirtualBytes() { return ProcBytes("/proc/self/status", "VmSize:"); }

void ExpectServesUntilTheLimit() {
  Arena::Global arena;
  const std::size_t limit = hz::os::address_space_limit();
  ASSERT_NE(SIZE_MAX, limit);
  ASSERT_TRUE(Arena::open(arena, kTableBytes));
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
    Arena::purge(arena, 0);
  }
}

TEST(ArenaUnderALimit, OpensAndServesUntilTheLimit) {
  if (kSanitized) GTEST_SKIP() << "no sanitizer starts under a limit of address space";
  if (std::getenv("HZ_UNIT_LIMITED") != nullptr) return ExpectServesUntilTheLimit();
  for (std::size_t mebibytes : {64, 256, 1024, 4096}) {
    const ChildResult result = RunThisTestAgain({{"HZ_UNIT_LIMITED", "1"}}, std::to_string(mebibytes * 1024));
    EXPECT_EQ(0, result.exit_code) << mebibytes << " MiB, signal " << result.signal << "\n" << result.out << result.err;
  }
}

}  // namespace
}  // namespace hz_test
