// SPDX-License-Identifier: Apache-2.0
//
// A kernel that cannot move pages and leave their place mapped: bytes are copied, and it is asked once.
#include <gtest/gtest.h>

#include <atomic>

#include "stress/blocks.hpp"
#include "support/rss.hpp"

extern bool mremap_knows_every_flag;
extern std::atomic<unsigned> mremap_calls;

namespace hz_test {
namespace {

TEST(OlderKernel, IsAskedOnce) {
  if (IsTiny() || HasSeals()) GTEST_SKIP() << "it moves no pages";
  const unsigned before = mremap_calls;
  mremap_knows_every_flag = false;
  for (int i = 0; i < 10; ++i) {
    Block block = MakeBlock(6 * kMiB);
    void* in_the_way = api::Malloc(5 * kMiB);
    void* moved = api::Realloc(block.at, 20 * kMiB);
    ASSERT_NE(nullptr, moved);
    EXPECT_NE(block.at, moved) << "it had to move";
    EXPECT_TRUE(HasPattern(moved, block.size, block.seed));
    api::Free(moved);
    api::Free(in_the_way);
    api::Trim();  // so that the next one goes where nothing is, as pages do
  }
  EXPECT_EQ(before + 1, mremap_calls);
  mremap_knows_every_flag = true;
  ExpectNothingLost();
}

}  // namespace
}  // namespace hz_test
