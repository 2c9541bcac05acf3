// SPDX-License-Identifier: Apache-2.0
//
// Memory that held small blocks becomes part of a huge one, and the huge one a small one again, unwritten:
// what the heap left behind in free memory must not make a live block look like a free one. Found by the
// walks of limit_test.cpp.
#include <gtest/gtest.h>

#include "stress/blocks.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

// Memory in which everything is a free slot of `size` bytes.
void LeaveFreeSlots(std::size_t size) {
  std::vector<void*> blocks;
  for (std::size_t bytes = 0; bytes < 64 * kMiB; bytes += size) blocks.push_back(api::Malloc(size));
  for (void* block : blocks) api::Free(block);
}

// Above a granule's alignment every block is a huge one, also of a few bytes: so there are many of them.
template <class Make>
void ExpectSoundAfterRealloc(std::size_t written, Make make) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{4096}, std::size_t{20000}}) {
    LeaveFreeSlots(size);
    std::vector<unsigned char*> blocks;
    for (int i = 0; i < 64; ++i) blocks.push_back(static_cast<unsigned char*>(make()));
    for (unsigned char*& block : blocks) {
      std::memset(block, 1, written);
      block = static_cast<unsigned char*>(api::Realloc(block, 5000));
    }
    for (unsigned char* block : blocks) {
      EXPECT_TRUE(IsFilledWith(block, written, 1));
      EXPECT_LE(5000U, api::UsableSize(block));
      api::Free(block);
    }
  }
  ExpectNothingLost();
}

TEST(RecycledMemory, UnwrittenHugeBlockMayShrink) {
  ExpectSoundAfterRealloc(0, [] { return api::Malloc(5 * kMiB); });
}
TEST(RecycledMemory, BarelyWrittenAlignedBlockMayMove) {
  ExpectSoundAfterRealloc(5, [] { return api::AlignedAlloc(std::size_t{128} << 10, 5); });
}

}  // namespace
}  // namespace hz_test
