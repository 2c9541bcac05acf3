// SPDX-License-Identifier: Apache-2.0
//
// A broad piece of work on a system with pages of HZ_TEST_PAGE bytes (emulated_pages.cpp): every size and
// alignment, huge blocks that move, memory that is given back. What is asked of the system is in whole pages,
// always.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>

#include "life/pages.hpp"
#include "stress/blocks.hpp"
#include "stress/threads.hpp"
#include "support/gnu_malloc.hpp"
#include "support/rss.hpp"

// The heap's own, which emulated_pages.cpp stands in for.
extern "C" long hz_system_call(long number, long a, long b, long c, long d, long e, long f);

namespace hz_test {
namespace {

class Pages : public ::testing::Test {
 protected:
  void SetUp() override { before_ = emulated_calls; }
  // The process wide count: what happened before main counts, too.
  void TearDown() override { EXPECT_EQ(0U, refused_calls); }

  std::uint64_t before_ = 0;
};

TEST_F(Pages, AreEmulated) {
  EXPECT_GT(emulated_calls, 0U) << "the heap does not ask by this function";
  alignas(65536) static char area[2 * 65536];
  const std::uint64_t refused = refused_calls;
  const auto at = reinterpret_cast<long>(area + 4096);
  EXPECT_EQ(HZ_TEST_PAGE == 4096 ? 0 : -EINVAL, hz_system_call(SYS_madvise, at, 4096, MADV_NORMAL, 0, 0, 0));
  refused_calls = refused;
}

TEST_F(Pages, EverySize) {
  std::vector<Block> blocks;
  for (std::size_t size = 1; size < std::size_t{20} << 20; size += size / 8 + 1)
    blocks.push_back(MakeBlock(size));
  for (Block& block : blocks) {
    const std::size_t size = block.size % 3 == 0 ? block.size * 2 : block.size / 2 + 1;
    ASSERT_TRUE(Intact(block));
    auto* moved = api::Realloc(block.at, size);
    ASSERT_NE(nullptr, moved);
    EXPECT_TRUE(HasPattern(moved, std::min(size, block.size) / 8 * 8, block.seed));
    block = {moved, size, FreshSeed()};
    FillPattern(moved, size, block.seed);
  }
  for (const Block& block : blocks) CheckAndFree(block);
}

TEST_F(Pages, EveryAlignment) {
  for (std::size_t alignment = 16; alignment <= std::size_t{8} << 20; alignment *= 2) {
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{5000}, std::size_t{70000}, std::size_t{5} << 20}) {
      void* block = api::AlignedAlloc(alignment, size);
      ASSERT_NE(nullptr, block);
      EXPECT_TRUE(IsAligned(block, alignment));
      FillPattern(block, size, alignment);
      EXPECT_TRUE(HasPattern(block, size, alignment));
      api::Free(block);
    }
  }
}

TEST_F(Pages, VallocMeansTheSystemsPage) {
  for (const std::size_t size : {1, 4096, 5000, 70000, 3000000}) {
    void* block = Opaque(valloc(size));
    EXPECT_TRUE(IsAligned(block, HZ_TEST_PAGE));
    api::Free(block);
    block = Opaque(pvalloc(size));
    EXPECT_TRUE(IsAligned(block, HZ_TEST_PAGE));
    EXPECT_GE(malloc_usable_size(block), (size + HZ_TEST_PAGE - 1) / HZ_TEST_PAGE * HZ_TEST_PAGE);
    api::Free(block);
  }
}

TEST_F(Pages, HugeBlocksMove) {
  Block blocks[4];
  for (Block& block : blocks) block = MakeBlock(std::size_t{5} << 20);
  for (int round = 0; round < 6; ++round) {
    for (Block& block : blocks) {
      const std::size_t size = block.size * 5 / 4 + 12345;
      void* moved = api::Realloc(block.at, size);
      ASSERT_NE(nullptr, moved);
      ASSERT_TRUE(HasPattern(moved, block.size / 8 * 8, block.seed));
      block = {moved, size, FreshSeed()};
      FillPattern(moved, size, block.seed);
    }
  }
  for (const Block& block : blocks) CheckAndFree(block);
}

TEST_F(Pages, MemoryComesBack) {
  std::vector<void*> blocks;
  for (std::size_t bytes = 0; bytes < 128 * kMiB; bytes += 3000) {
    blocks.push_back(api::Malloc(3000));
    static_cast<char*>(blocks.back())[0] = static_cast<char*>(blocks.back())[2999] = 1;
  }
  const std::size_t full = RssBytes();
  for (void* block : blocks) api::Free(block);
  api::Trim();
  EXPECT_LT(RssBytes() + 100 * kMiB, full);
  EXPECT_GT(HeapStats().bytes_purged, 50 * kMiB);
}

TEST_F(Pages, ThreadsCome) {
  Together(8, [](unsigned thread) {
    Random random(thread);
    Block live[100];
    for (int i = 0; i < 20000; ++i) {
      Block& block = live[Below(random, 100)];
      CheckAndFree(block);
      block = MakeBlock(LogSize(random, Below(random, 500) == 0 ? 22 : 12));
    }
    for (const Block& block : live) CheckAndFree(block);
  });
}

}  // namespace
}  // namespace hz_test
