// SPDX-License-Identifier: Apache-2.0
//
// Size classes, exhaustively: every size, every class, every offset.
#include "base/size_classes.hpp"

#include <gtest/gtest.h>

namespace hz_test {
namespace {

using hz::Bin;

TEST(SizeClasses, LimitsFallOnClasses) {
  EXPECT_EQ(hz::kSmallMax, hz::bin_size(hz::kLastSmallBin));
  EXPECT_EQ(hz::kMediumMax, hz::bin_size(hz::kLastMediumBin));
  EXPECT_EQ(hz::kLargeMax, hz::bin_size(hz::kLastBin));
  EXPECT_EQ(0u, hz::bin_size(0));
  EXPECT_LT(hz::kHugeBin, 256u);
}

TEST(SizeClasses, StepsGrowAndKeepTheLeastAlignment) {
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    ASSERT_GT(hz::bin_size(bin), hz::bin_size(bin - 1));
    ASSERT_EQ(0u, hz::bin_size(bin) % hz::kMinAlign) << bin;
  }
  for (Bin bin = 1; bin <= 8; ++bin) EXPECT_EQ(bin * 16, hz::bin_size(bin));
}

// Walks sizes upwards beside the classes, so it is right without arithmetic of its own.
TEST(SizeClasses, EverySizeGetsTheSmallestClassThatFits) {
  Bin fits = 1;
  for (std::size_t size = 1; size <= hz::kLargeMax; ++size) {
    if (size > hz::bin_size(fits)) ++fits;
    ASSERT_EQ(fits, hz::scan_bin(size)) << size;
  }
  EXPECT_EQ(hz::kLastBin, fits);
}

TEST(SizeClasses, TheTableSaysWhatTheScanSays) {
  for (std::size_t size = 1; size <= hz::kTableMax; ++size) {
    ASSERT_EQ(hz::scan_bin(size), hz::kClasses.bin_of[(size - 1) / hz::kMinAlign]) << size;
  }
}

TEST(SizeClasses, WasteIsAtMostOneNinthAndOneFifthAboveTheFineClasses) {
  for (Bin bin = 9; bin < hz::kBins; ++bin) {
    const std::size_t waste = hz::bin_size(bin) - (hz::bin_size(bin - 1) + 1);
    EXPECT_LT((hz::bin_size(bin) <= hz::kFineMax ? 9 : 5) * waste, hz::bin_size(bin)) << hz::bin_size(bin);
  }
}

TEST(SizeClasses, SlotsAndGranules) {
  for (Bin bin = 1; bin < hz::kBins; ++bin) {
    const std::size_t size = hz::bin_size(bin);
    const std::size_t span = hz::bin_granules(bin) * hz::kGranule;
    EXPECT_EQ(size > hz::kMediumMax, hz::is_large(bin));
    EXPECT_EQ(hz::is_large(bin) ? 1 : hz::kGranule / size, hz::bin_slots(bin));
    EXPECT_LE(hz::bin_slots(bin) * size, span) << size;
    EXPECT_GT(hz::bin_slots(bin) * size + (hz::is_large(bin) ? hz::kGranule : size), span) << size;
  }
}

TEST(SizeClasses, IndexAndStartAgainstDivision) {
  for (Bin bin = 1; bin <= hz::kLastMediumBin; ++bin) {
    const auto size = static_cast<unsigned>(hz::bin_size(bin));
    for (unsigned offset = 0; offset < hz::kGranule; ++offset) {
      ASSERT_EQ(offset / size, hz::slot_index(bin, offset)) << size << " at " << offset;
      ASSERT_EQ(offset % size == 0, hz::is_slot_start(bin, offset)) << size << " at " << offset;
    }
  }
}

// One slot in a span of granules: only an address whose low half is zero can be its start.
TEST(SizeClasses, LargeSlotsStartWithAGranule) {
  for (Bin bin = hz::kLastMediumBin + 1; bin < hz::kBins; ++bin) {
    for (unsigned offset = 0; offset < hz::kGranule; ++offset) {
      ASSERT_EQ(0u, hz::slot_index(bin, offset));
      ASSERT_EQ(offset == 0, hz::is_slot_start(bin, offset)) << hz::bin_size(bin) << " at " << offset;
    }
  }
}

bool Serves(Bin bin, std::size_t size, std::size_t alignment) {
  // Spans start with a granule, so the slots of a large class lie on multiples of it.
  return hz::bin_size(bin) >= size && (hz::is_large(bin) || hz::bin_size(bin) % alignment == 0);
}

TEST(SizeClasses, AlignedBinIsTheSmallestThatServes) {
  for (std::size_t alignment = 1; alignment <= hz::kGranule; alignment *= 2) {
    Bin smallest = 1;
    for (std::size_t size = 1; size <= hz::kLargeMax; size += size < hz::kMediumMax + 100 ? 1 : 61) {
      while (!Serves(smallest, size, alignment)) ++smallest;
      ASSERT_EQ(smallest, hz::aligned_bin(size, alignment)) << size << " at " << alignment;
    }
    EXPECT_EQ(hz::kLastBin, hz::aligned_bin(hz::kLargeMax, alignment));
    EXPECT_EQ(hz::kHugeBin, hz::aligned_bin(hz::kLargeMax + 1, alignment));
    EXPECT_EQ(hz::kHugeBin, hz::aligned_bin(SIZE_MAX, alignment));
  }
  for (std::size_t alignment = 2 * hz::kGranule; alignment <= hz::kGiB; alignment *= 2) {
    for (std::size_t size : {std::size_t{1}, hz::kPage, hz::kGranule, hz::kLargeMax}) {
      EXPECT_EQ(hz::kHugeBin, hz::aligned_bin(size, alignment)) << size << " at " << alignment;
    }
  }
}

}  // namespace
}  // namespace hz_test
