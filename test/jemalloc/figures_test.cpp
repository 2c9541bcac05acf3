// SPDX-License-Identifier: Apache-2.0
//
// The figures: they are those of our statistics, stand in the order that the manual promises, stand still
// between epochs, and follow what is allocated; and what malloc_stats_print makes of them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "hakozuna/hakozuna.h"
#include "jemalloc/interface.hpp"
#include "support/capture.hpp"

namespace {

using namespace hz_test::jemalloc;

std::size_t Stat(const std::string& name) { return Value<std::size_t>("stats." + name); }

std::vector<void*> Allocate(std::size_t count, std::size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = mallocx(size, 0);
    std::memset(block, 1, size);
  }
  return blocks;
}
void Free(std::vector<void*>& blocks) {
  for (void* block : blocks) dallocx(block, 0);
  blocks.clear();
}

hz_stats_t Statistics() {
  hz_stats_t stats;
  hz_stats(&stats, sizeof stats);
  return stats;
}

TEST(Figures, AreThoseOfOurStatistics) {
  if (OnJemalloc()) GTEST_SKIP();
  for (const std::size_t size : {100u, 3000u, 80'000u, 5'000'000u}) {
    std::vector<void*> blocks = Allocate(20, size);
    for (int i = 0; i < 5; ++i) dallocx(std::exchange(blocks[i], mallocx(16, 0)), 0);
    Stat("arenas.0.small.allocated");  // what a question itself takes is there from here on
    const hz_stats_t stats = Statistics();
    BeginEpoch();
    EXPECT_EQ(stats.bytes_live, Stat("allocated")) << size;
    EXPECT_EQ(stats.bytes_metadata, Stat("metadata")) << size;
    EXPECT_EQ(stats.bytes_dirty, Stat("arenas.0.pdirty") * 4096) << size;
    EXPECT_EQ(stats.threads, Value<unsigned>("stats.arenas.0.nthreads"));
    EXPECT_EQ(Stat("active") + stats.bytes_metadata + stats.bytes_dirty, Stat("resident"));
    EXPECT_EQ(stats.bytes_held, Stat("arenas.0.small.allocated") + Stat("arenas.0.large.allocated")) << size;
    Free(blocks);
  }
}

TEST(Figures, StandInOrder) {
  for (const std::size_t size : {16u, 1000u, 20'000u, 100'000u, 6'000'000u}) {
    std::vector<void*> blocks = Allocate(30, size);
    for (int round = 0; round < 2; ++round) {
      BeginEpoch();
      EXPECT_LE(Stat("allocated"), Stat("active")) << size;
      EXPECT_LE(Stat("active"), Stat("resident")) << size;
      EXPECT_LE(Stat("active"), Stat("mapped")) << size;
      EXPECT_LT(Stat("metadata"), Stat("resident")) << size;
      EXPECT_EQ(0u, Stat("active") % 4096);
      EXPECT_EQ(Stat("active"), Stat("arenas.4096.pactive") * 4096);
      EXPECT_EQ(Stat("mapped"), Stat("arenas.4096.mapped"));
      Free(blocks);
    }
  }
}

TEST(Figures, FollowWhatIsAllocated) {
  BeginEpoch();
  const std::size_t before = Stat("allocated"), active = Stat("active");
  for (const std::size_t size : {std::size_t{1024}, std::size_t{1} << 16, 8 * kMiB}) {
    const std::size_t count = 64 * kMiB / size, bytes = count * nallocx(size, 0);
    std::vector<void*> blocks = Allocate(count, size);
    BeginEpoch();
    EXPECT_NEAR(static_cast<double>(before + bytes), static_cast<double>(Stat("allocated")), 2.0 * kMiB)
        << size;
    EXPECT_GE(Stat("active"), bytes);
    Free(blocks);
    Do("thread.tcache.flush");
    Do("arena.4096.purge");
    BeginEpoch();
    EXPECT_NEAR(static_cast<double>(before), static_cast<double>(Stat("allocated")), 2.0 * kMiB) << size;
    EXPECT_LT(Stat("active"), active + 8 * kMiB) << size;
  }
}

// What redis counts as fragmentation: active less allocated. Blocks of 80 KiB have two granules each, of
// whose second one most is never touched.
TEST(Figures, ActiveIsPagesAndNotGranules) {
  Do("arena.4096.purge");
  std::vector<void*> blocks = Allocate(500, 80 * 1024);
  BeginEpoch();
  EXPECT_LT(Stat("active"), Stat("allocated") + 4 * kMiB);
  Free(blocks);
}

TEST(Figures, StandStillBetweenEpochs) {
  std::vector<void*> blocks = Allocate(1000, 3000);
  BeginEpoch();
  const char* const names[] = {"allocated", "active",   "metadata",           "resident",
                               "mapped",    "retained", "arenas.4096.pdirty", "arenas.4096.pactive"};
  std::vector<std::size_t> before;
  for (const char* name : names) before.push_back(Stat(name));
  std::vector<void*> more = Allocate(20'000, 3000);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i], Stat(names[i])) << names[i];
  BeginEpoch();
  EXPECT_GT(Stat("allocated"), before[0] + 40 * kMiB);
  Free(more);
  Free(blocks);
}

// What Redis and Valkey add up for fragmentation, and for lack of which they end.
TEST(Figures, OfEachBin) {
  const auto bins = Value<unsigned>("arenas.nbins");
  std::vector<void*> blocks = Allocate(3000, 320);
  BeginEpoch();
  std::size_t used = 0, room = 0, of_size = 0;
  for (unsigned i = 0; i < bins; ++i) {
    const std::string number = std::to_string(i);
    const auto size = Value<std::size_t>("arenas.bin." + number + ".size");
    const auto regions = Value<std::uint32_t>("arenas.bin." + number + ".nregs");
    const auto current = Stat("arenas.4096.bins." + number + ".curregs");
    const auto slabs = Stat("arenas.4096.bins." + number + ".curslabs");
    EXPECT_LE(current, slabs * regions) << size;
    used += current * size;
    room += slabs * regions * size;
    if (size == 320) of_size = current;
  }
  EXPECT_GE(of_size, blocks.size());
  EXPECT_LT(of_size, blocks.size() + 1000);
  EXPECT_GE(room, used);
  EXPECT_EQ(used, Stat("arenas.4096.small.allocated"));
  // Blocks that come and go between epochs are not seen.
  dallocx(std::exchange(blocks.back(), mallocx(320, 0)), 0);
  EXPECT_EQ(used, Stat("arenas.4096.small.allocated"));
  Free(blocks);
}

TEST(Figures, AskedByAForkedChild) {
  BeginEpoch();
  const std::size_t before = Stat("allocated");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::size_t value = 0, length = sizeof value;
    bool good = Read("stats.allocated", value) == 0 && value == before;
    std::uint64_t epoch = 1;
    good = good && mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch) == 0;
    good = good && mallctl("stats.active", &value, &length, nullptr, 0) == 0;
    good = good && mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0) == 0;
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
}

// The slots of a span are counted under its lock.
TEST(Figures, AForkFindsNoSpanLocked) {
  std::vector<void*> blocks = Allocate(100'000, 80);
  std::atomic<bool> done{false};
  std::thread looker([&] {
    while (!done.load(std::memory_order_relaxed)) {
      BeginEpoch();
      Stat("arenas.4096.bins.4.curregs");
    }
  });
  int status = 0;
  for (int i = 0; i < 100 && status == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      for (int k = 0; k < 3000; ++k) mallocx(80, 0);
      _exit(0);
    }
    waitpid(child, &status, 0);
  }
  EXPECT_EQ(0, status) << "a child waits for ever";
  done = true;
  looker.join();
  Free(blocks);
}

// --- malloc_stats_print

void Append(void* text, const char* part) { *static_cast<std::string*>(text) += part; }

std::string Printed(const char* options) {
  std::string text;
  malloc_stats_print(&Append, &text, options);
  return text;
}

std::size_t NumberAfter(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  EXPECT_NE(std::string::npos, at) << word << " in " << text;
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + word.size(), nullptr, 10);
}

TEST(Print, HasTheFigures) {
  for (const char* options : {static_cast<const char*>(nullptr), "", "gmdablxe", "unknown letters!"}) {
    const std::string text = Printed(options);
    EXPECT_EQ(Stat("allocated"), NumberAfter(text, "Allocated: ")) << text;
    EXPECT_EQ(Stat("active"), NumberAfter(text, ", active: "));
    EXPECT_EQ(Stat("metadata"), NumberAfter(text, ", metadata: "));
    EXPECT_EQ(Stat("resident"), NumberAfter(text, ", resident: "));
    EXPECT_EQ(Stat("mapped"), NumberAfter(text, ", mapped: "));
    EXPECT_EQ(Stat("retained"), NumberAfter(text, ", retained: "));
    EXPECT_EQ(0u, text.find("___ Begin jemalloc statistics ___\n"));
    EXPECT_TRUE(text.ends_with("End jemalloc statistics ___\n") || text.ends_with("---\n"));
  }
}

TEST(Print, LeavesOutWhatIsSaid) {
  const std::string version = Value<const char*>("version");
  EXPECT_NE(std::string::npos, Printed("").find(version));
  EXPECT_EQ(std::string::npos, Printed("g").find(version));
  EXPECT_LT(Printed("bl").size(), Printed("").size());
}

TEST(Print, AsJson) {
  const std::string text = Printed("J");
  EXPECT_EQ(Stat("allocated"), NumberAfter(text, "\"allocated\":"));
  EXPECT_EQ(Stat("resident"), NumberAfter(text, "\"resident\":"));
  if (OnJemalloc()) return;
  const auto number = [](const char* name) { return std::to_string(Stat(name)); };
  EXPECT_EQ("{\"jemalloc\":{\"version\":\"5.3.0-hakozuna-" HZ_VERSION "\",\"stats\":{\"allocated\":" +
                number("allocated") + ",\"active\":" + number("active") +
                ",\"metadata\":" + number("metadata") + ",\"resident\":" + number("resident") +
                ",\"mapped\":" + number("mapped") + ",\"retained\":" + number("retained") + "}}}\n",
            text);
}

TEST(Print, GoesWhereTheProgramSays) {
  {
    hz_test::Capture told;
    malloc_stats_print(nullptr, nullptr, "");
    EXPECT_NE(std::string::npos, told.Text().find("Allocated: "));
  }
  static std::string text;
  text.clear();
  malloc_message = [](void*, const char* part) { text += part; };
  malloc_stats_print(nullptr, nullptr, "");
  malloc_message = nullptr;
  EXPECT_NE(std::string::npos, text.find("Allocated: "));
}

}  // namespace
