// SPDX-License-Identifier: Apache-2.0
//
// Page tags: what their header says beyond the contract of a route.
#include "box/route/page_tag.hpp"

#include <gtest/gtest.h>

#include "unit/region.hpp"

namespace hz_test {
namespace {

using hz::PageTag;

TEST(PageTag, TableIs64BytesAGranule) { EXPECT_EQ(64u, PageTag::kTableBytesPerGranule); }

TEST(PageTag, LayoutOfTheWord) {
  Region arena(4 * hz::kGranule);
  PageTag::Global route;
  PageTag::open(route, arena.address(), arena.size());
  PageTag::bind(route, arena.address() + hz::kGranule, hz::kPage, 9, 5);
  EXPECT_EQ((5u + 1) << 8 | 9, PageTag::find(route, arena.address() + hz::kGranule));
  std::uint32_t in_table = 0;
  memcpy(&in_table, arena.bytes() + hz::kPagesPerGranule * sizeof in_table, sizeof in_table);
  EXPECT_EQ((5u + 1) << 8 | 9, in_table) << "the table stands at the arena's start";
}

TEST(PageTag, OwnAndForeignTagsDifferAboveTheBin) {
  PageTag::PerThread thread;
  EXPECT_GT(PageTag::local_bin(0, thread), hz::kLastBin);
  PageTag::join(thread, 0);
  EXPECT_GT(PageTag::local_bin(0, thread), hz::kLastBin) << "nothing there is nobody's";
  for (unsigned owner = 0; owner < 256; ++owner) {
    PageTag::join(thread, owner);
    for (unsigned other = 0; other < 256; ++other) {
      const PageTag::Tag tag = (other + 1) << 8 | 3;
      EXPECT_EQ(owner == other, PageTag::local_bin(tag, thread) <= hz::kLastBin) << owner << " " << other;
    }
  }
}

TEST(PageTag, HugeIsNeverLocal) {
  PageTag::PerThread thread;
  PageTag::join(thread, 3);
  EXPECT_GT(PageTag::local_bin((3 + 1) << 8 | hz::kHugeBin, thread), hz::kLastBin);
}

}  // namespace
}  // namespace hz_test
