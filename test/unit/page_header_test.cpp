// SPDX-License-Identifier: Apache-2.0
//
// Page headers: what their header file says beyond the contract of a route.
#include "box/route/page_header.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "unit/region.hpp"

namespace hz_test {
namespace {

using hz::kGranule;
using hz::PageHeader;

class PageHeaders : public ::testing::Test {
 protected:
  PageHeaders() : arena_(8 * kGranule) { PageHeader::open(route_, arena_.address(), arena_.size()); }
  std::uintptr_t At(std::size_t page, std::size_t offset = 0) const {
    return arena_.address() + page * kGranule + offset;
  }
  bool Known(std::size_t page, std::size_t offset) const {
    return PageHeader::find(route_, At(page, offset)) != 0;
  }

  Region arena_;
  PageHeader::Global route_;
};

TEST_F(PageHeaders, StandSideBySideAtTheArenasStart) {
  EXPECT_EQ(8u, PageHeader::kTableBytesPerGranule);
  PageHeader::bind(route_, At(3), 0x1000, 9, 5);
  std::uint64_t header = 0;
  memcpy(&header, arena_.bytes() + 3 * sizeof header, sizeof header);
  EXPECT_EQ(std::uint64_t{5 + 1} << 24 | 9 << 16 | 0xFFF, header);
}

TEST_F(PageHeaders, WhatUserMemoryHoldsIsNoHeader) {
  memset(arena_.bytes() + kGranule, 0xFF, 7 * kGranule);
  for (std::size_t page = 1; page < 8; ++page) EXPECT_FALSE(Known(page, 0));
}

TEST_F(PageHeaders, ReachToTheByte) {
  PageHeader::bind(route_, At(2), 3 * 48, 3, 0);
  EXPECT_TRUE(Known(2, 2 * 48));
  EXPECT_TRUE(Known(2, 3 * 48 - 1));
  EXPECT_FALSE(Known(2, 3 * 48)) << "never handed out";
  PageHeader::bind(route_, At(2), 5 * 48, 3, 0);
  EXPECT_TRUE(Known(2, 4 * 48));
  EXPECT_FALSE(Known(2, 5 * 48));
}

TEST_F(PageHeaders, ALateBindTakesNothingBack) {
  PageHeader::bind(route_, At(2), 10 * 48, 3, 1);
  PageHeader::bind(route_, At(2), 5 * 48, 3, 2);
  EXPECT_TRUE(Known(2, 9 * 48));
  EXPECT_EQ(2u, PageHeader::owner(PageHeader::find(route_, At(2))));
}

TEST_F(PageHeaders, ThreadsBindPartsOfAPageInAnyOrder) {
  for (int round = 0; round < 200; ++round) {
    PageHeader::clear(route_, At(4), kGranule);
    std::thread other([&] {
      for (std::size_t slots = 2; slots <= 1000; slots += 2)
        PageHeader::bind(route_, At(4), slots * 16, 1, 1);
    });
    for (std::size_t slots = 1; slots < 1000; slots += 2) {
      PageHeader::bind(route_, At(4), slots * 16, 1, 0);
      ASSERT_TRUE(Known(4, (slots - 1) * 16)) << "what this thread has handed out";
    }
    other.join();
    ASSERT_TRUE(Known(4, 999 * 16));
  }
}

TEST_F(PageHeaders, OwnersWithoutLimit) {
  PageHeader::PerThread thread;
  for (unsigned owner : {0u, 1u, 255u, 256u, 65'536u, (1u << 22) - 1, 1u << 22}) {
    PageHeader::bind(route_, At(5), 16, 7, owner);
    const PageHeader::Tag tag = PageHeader::find(route_, At(5));
    EXPECT_EQ(owner, PageHeader::owner(tag));
    EXPECT_EQ(7u, PageHeader::bin(tag));
    PageHeader::join(thread, owner);
    EXPECT_EQ(7u, PageHeader::local_bin(tag, thread));
    PageHeader::join(thread, owner + 1);
    EXPECT_GT(PageHeader::local_bin(tag, thread), hz::kLastBin);
  }
}

}  // namespace
}  // namespace hz_test
