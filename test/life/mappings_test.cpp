// SPDX-License-Identifier: Apache-2.0
//
// The kernel allows a process so many mappings (vm.max_map_count). Ours stay few, whatever moves and whatever
// is given back; and where the process has used them up, the heap answers null and ENOMEM and loses nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "life/scene.hpp"
#include "stress/blocks.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

// Read without allocating.
std::size_t Mappings() {
  char text[4096];
  std::size_t lines = 0;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  for (ssize_t got = 0; (got = read(fd, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < got; ++i) lines += text[i] == '\n' ? 1U : 0U;
  }
  close(fd);
  return lines;
}

// What lives grows and shrinks, most of it small, some of it huge and on the move.
class Walk {
 public:
  explicit Walk(std::uint64_t seed, std::size_t live) : random_(seed), live_(live) {}

  // Only what malloc has answered with null and ENOMEM may fail.
  void Step() {
    Block& block = live_[Below(random_, live_.size())];
    const std::size_t size =
        Below(random_, 8) == 0 ? 4 * kMiB + Below(random_, 12 * kMiB) : LogSize(random_, 15);
    errno = 0;
    if (block.at != nullptr && Below(random_, 2) == 0) {
      Resize(block, size);
    } else {
      Drop(block);
      Settle(block, api::Malloc(size), size);
      if (block.at == nullptr) Refused();
    }
  }
  void DropAll() {
    for (Block& block : live_) Drop(block);
  }
  unsigned refused() const { return refused_; }

 private:
  // Of large blocks the first part is enough, or the pattern takes more time than the heap.
  static void Settle(Block& block, void* at, std::size_t size) {
    block = {at, std::min(size, std::size_t{100000}), FreshSeed()};
    if (at != nullptr) FillPattern(at, block.size, block.seed);
  }
  static void Drop(Block& block) {
    Require(Intact(block), "a block is intact");
    api::Free(block.at);
    block = {};
  }
  void Resize(Block& block, std::size_t size) {
    void* moved = api::Realloc(block.at, size);
    if (moved == nullptr) {
      Refused();
      Require(Intact(block), "a block that could not be resized is intact");
      return;
    }
    const std::size_t kept = (size < block.size ? size : block.size) / 8 * 8;
    Require(HasPattern(moved, kept, block.seed), "a block that was resized has its contents");
    Settle(block, moved, size);
  }
  void Refused() {
    ++refused_;
    Require(errno == ENOMEM, "what cannot be had is ENOMEM");
  }

  Random random_;
  std::vector<Block> live_;
  unsigned refused_ = 0;
};

TEST(Mappings, StayFew) {
  const Watchdog watchdog;
  Walk walk(Seed(), 60);
  std::size_t most = 0;
  const unsigned rounds = Long() ? 400 : Quick() ? 16 : 40;
  for (unsigned round = 0; round < rounds; ++round) {
    for (int step = 0; step < 500; ++step) walk.Step();
    if (round % 8 == 7) walk.DropAll();
    if (round % 4 == 3) api::Trim();
    most = std::max(most, Mappings());
  }
  walk.DropAll();
  EXPECT_EQ(0U, walk.refused());
  EXPECT_LT(most, 1000U);
}

// Runs of pages between others that live on: purging them one by one must not cut the arena into pieces.
TEST(Mappings, PurgeDoesNotSplit) {
  const Watchdog watchdog;
  constexpr std::size_t kBlocks = 3000;
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(api::Malloc(60000));
  for (void* block : blocks) static_cast<char*>(block)[0] = 1;
  const std::size_t before = Mappings();
  for (std::size_t i = 0; i < kBlocks; i += 2) api::Free(blocks[i]);
  api::Trim();
  EXPECT_LT(Mappings(), before + 100);
  for (std::size_t i = 1; i < kBlocks; i += 2) api::Free(blocks[i]);
}

// Mappings until there are no more; `spare` of them are given back.
class AllMappings {
 public:
  explicit AllMappings(std::size_t spare) {
    std::size_t limit = 65530;
    std::ifstream("/proc/sys/vm/max_map_count") >> limit;
    bytes_ = 2 * kPage * (limit + 100);
    area_ = static_cast<char*>(
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    Require(area_ != MAP_FAILED, "address space");
    std::size_t cut = 0;
    while (mprotect(area_ + 2 * cut * kPage, kPage, PROT_READ) == 0) ++cut;
    Require(errno == ENOMEM && cut > limit / 4, "the limit was met");
    for (std::size_t i = 0; i < spare; ++i) mprotect(area_ + 2 * --cut * kPage, kPage, PROT_NONE);
  }
  AllMappings(const AllMappings&) = delete;
  AllMappings& operator=(const AllMappings&) = delete;
  ~AllMappings() { Require(munmap(area_, bytes_) == 0, "mappings can be given back"); }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t bytes_ = 0;
  char* area_ = nullptr;
};

const Scene none_left("NoneLeft", [] {
  const Watchdog watchdog;
  unsigned refused = 0;
  Walk walk(Seed(), 60);
  for (int step = 0; step < 300; ++step) walk.Step();
  for (const std::size_t spare : {0, 1, 2, 3, 4, 6, 8, 12}) {
    {
      const AllMappings all(spare);
      for (unsigned step = 0; step < Rounds(3000, 3000); ++step) {
        walk.Step();
        if (step % 500 == 250) api::Trim();
      }
      if (spare % 2 == 0) walk.DropAll();
      api::Trim();
    }
    const unsigned so_far = walk.refused();
    for (int step = 0; step < 500; ++step) walk.Step();
    Require(walk.refused() == so_far, "all can be had again");
    refused = so_far;
  }
  walk.DropAll();
  std::printf("refused: %u\n", refused);
});
TEST(Mappings, NoneLeft) { ExpectScene("NoneLeft", 0); }

const Scene named("Named", [] {
  Walk walk(1, 60);
  for (int step = 0; step < 300; ++step) walk.Step();
  std::size_t all = 0, blocks = 0, tables = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line); ++all) {
    blocks += line.find("[anon:hakozuna]") != std::string::npos ? 1U : 0U;
    tables += line.find("[anon:hakozuna tables]") != std::string::npos ? 1U : 0U;
  }
  std::printf("%zu %zu %zu", all, blocks, tables);
});

bool KernelHasNames() {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool has = prctl(0x53564d41, 0, page, 4096, "test") == 0;  // PR_SET_VMA
  munmap(page, 4096);
  return has;
}

// On request; and names do not make them more.
TEST(Mappings, AreNamed) {
  std::size_t all = 0, blocks = 0, tables = 0, unnamed = 0, none = 0;
  const ChildResult with = RunScene("Named", {{"HZ_NAME_MAPPINGS", "1"}}), without = RunScene("Named");
  EXPECT_EQ("", with.err + without.err);
  ASSERT_EQ(3, std::sscanf(with.out.c_str(), "%zu %zu %zu", &all, &blocks, &tables)) << with.out;
  ASSERT_EQ(2, std::sscanf(without.out.c_str(), "%zu %zu", &unnamed, &none)) << without.out;
  EXPECT_EQ(0U, none) << "nobody asked";
  EXPECT_LE(all, unnamed + (HasSeals() ? unnamed / 4 : 4)) << "secure's gaps are drawn";
  if (!KernelHasNames()) GTEST_SKIP() << "this kernel names none (CONFIG_ANON_VMA_NAME)";
  EXPECT_NE(0U, blocks);
  EXPECT_NE(0U, tables);
}

}  // namespace
}  // namespace hz_test
