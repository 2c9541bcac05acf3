// SPDX-License-Identifier: Apache-2.0
//
// Size classes, exhaustively: every size, every class, every offset.
#include "base/size_classes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "support/sanitizers.hpp"

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
    while (size > hz::bin_size(fits) || hz::is_spare(fits)) ++fits;
    ASSERT_EQ(fits, hz::scan_bin(size)) << size;
  }
  EXPECT_EQ(hz::kLastBin, fits);
}

TEST(SizeClasses, TheTableSaysWhatTheScanSays) {
  for (std::size_t size = 1; size <= hz::kTableMax; ++size) {
    ASSERT_EQ(hz::scan_bin(size), hz::classes.of((size - 1) / hz::kMinAlign)) << size;
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

// --- spare classes

// With none dealt out yet. Its thousands of words are written by as many instructions: in one place, or the
// compiler takes ten seconds.
[[gnu::noinline]] std::unique_ptr<hz::SizeClasses> NewClasses() {
  return std::make_unique<hz::SizeClasses>();
}

Bin SpareOf(std::size_t size) {
  for (unsigned spare = 0; spare < hz::kSpares; ++spare) {
    const Bin bin = hz::spare_bin(spare);
    if (hz::bin_size(bin - 1) < size && size <= 2 * hz::bin_size(bin - 1)) return bin;
  }
  return 0;
}

TEST(SpareClasses, NoSizeHasOneBeforeItIsDealtOut) {
  for (std::size_t n = 0; n < hz::kTableMax / hz::kMinAlign; ++n)
    EXPECT_FALSE(hz::is_spare(hz::classes.of(n)));
  unsigned spares = 0;
  for (Bin bin = 0; bin < hz::kBins; ++bin) spares += hz::is_spare(bin) ? 1 : 0;
  EXPECT_EQ(hz::kSpares, spares);
}

// Every size that one can be dealt, each in classes of its own: it and smaller ones down to the class below
// have it, all others what they had.
TEST(SpareClasses, SizesFromTheClassBelowHaveIt) {
  if (kThreadSanitizer) GTEST_SKIP() << "one thread, and a thousand times all that it may write to";
  unsigned dealt = 0;
  for (std::size_t size = hz::kMinAlign; size <= hz::kTableMax; size += hz::kMinAlign) {
    const auto own = NewClasses();
    const Bin above = hz::scan_bin(size), spare = SpareOf(size);
    const bool may = spare != 0 && hz::bin_size(above) != size;
    ASSERT_EQ(may, own->deal(size)) << size;
    dealt += may ? 1 : 0;
    for (std::size_t n = 0; n < hz::kTableMax / hz::kMinAlign; ++n) {
      const Bin before = hz::classes.of(n);
      const bool moved = may && before == above && (n + 1) * hz::kMinAlign <= size;
      ASSERT_EQ(moved ? spare : before, own->of(n)) << size << " and " << (n + 1) * hz::kMinAlign;
    }
    if (may) {
      ASSERT_EQ(size, own->size(spare));
      ASSERT_FALSE(own->deal(size)) << "each once";
      ASSERT_FALSE(own->deal(size + hz::kMinAlign));
    }
  }
  EXPECT_EQ(992u - 5 * 8, dealt);  // multiples of 16 between 512 and 16 KiB that no class has
}

TEST(SpareClasses, NothingElseIsDealt) {
  const auto own = NewClasses();
  for (const std::size_t size : {std::size_t{0}, std::size_t{16}, std::size_t{500}, std::size_t{1041},
                                 hz::kFineMax + 16, SIZE_MAX, SIZE_MAX - 15})
    EXPECT_FALSE(own->deal(size)) << size;
}

// The index and the start of a slot, by the same arithmetic, for every size that a spare class can have.
TEST(SpareClasses, TheirReciprocalsAreExact) {
  for (std::size_t size = hz::kSpareMin + hz::kMinAlign; size <= hz::kFineMax; size += hz::kMinAlign) {
    const std::uint32_t reciprocal = hz::SizeClasses::reciprocal_of(size);
    unsigned index = 0, at = 0, wrong = 0;
    for (unsigned offset = 0; offset < hz::kGranule; ++offset, ++at) {
      if (at == size) ++index, at = 0;
      const bool is_start = static_cast<std::uint32_t>(offset * reciprocal) <= 0xFFFF;
      if (index != (std::uint64_t{offset} * reciprocal) >> 32 || is_start != (at == 0)) wrong = offset + 1;
    }
    ASSERT_EQ(0u, wrong) << size << ": the last offset that is wrong, and 1";
  }
}

// Readers find a class that the size fits, whatever is dealt out meanwhile; of several who deal one does.
TEST(SpareClasses, WhoeverLooksMeanwhileFindsAClassThatFits) {
  for (unsigned round = 0; round < 40; ++round) {
    const auto own = NewClasses();
    std::atomic<bool> done{false};
    std::atomic<unsigned> dealt{0};
    std::vector<std::thread> threads;
    for (unsigned reader = 0; reader < 2; ++reader) {
      threads.emplace_back([&] {
        for (bool last = false; !last;) {
          last = done.load();
          for (std::size_t n = hz::kSpareMin / hz::kMinAlign; n < hz::kFineMax / hz::kMinAlign; ++n)
            ASSERT_GE(own->size(own->of(n)), (n + 1) * hz::kMinAlign);
        }
      });
    }
    for (unsigned dealer = 0; dealer < 2; ++dealer) {
      threads.emplace_back([&, dealer] {
        for (std::size_t size = 1008 + 16 * dealer + round * 16; size < 1008 + round * 16 + 8192; size += 80)
          dealt += own->deal(size) ? 1 : 0;
      });
    }
    threads[2].join();
    threads[3].join();
    done = true;
    threads[0].join();
    threads[1].join();
    EXPECT_GE(dealt.load(), 2u);
    EXPECT_LE(dealt.load(), hz::kSpares);
  }
}

TEST(SizeClasses, SettledOnesStay) {
  const auto classes = NewClasses();
  EXPECT_TRUE(classes->deal(1040));
  classes->settle();
  EXPECT_FALSE(classes->deal(4112));
  EXPECT_EQ(1u, classes->dealt());
}

bool Serves(Bin bin, std::size_t size, std::size_t alignment) {
  // Spans start with a granule, so the slots of a large class lie on multiples of it.
  return hz::bin_size(bin) >= size && (hz::is_large(bin) || hz::bin_size(bin) % alignment == 0);
}

TEST(SizeClasses, AlignedBinIsTheSmallestThatServes) {
  for (std::size_t alignment = 1; alignment <= hz::kGranule; alignment *= 2) {
    Bin smallest = 1;
    for (std::size_t size = 1; size <= hz::kLargeMax; size += size < hz::kMediumMax + 100 ? 1 : 61) {
      while (!Serves(smallest, size, alignment) || hz::is_spare(smallest)) ++smallest;
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
