// SPDX-License-Identifier: Apache-2.0
//
// Seals: every byte behind a block and below it is looked at, whatever the block's size, and nothing that a
// program may do looks like somebody else's write.
#include "box/guard/sealed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "unit/region.hpp"

namespace hz_test {
namespace {

struct ThisTest {};
using Guard = hz::Sealed<ThisTest>;
using hz::Fault;

class Sealed : public ::testing::Test {
 protected:
  Sealed() : span_(hz::kGranule), table_(Guard::kTableBytesPerGranule) {
    Guard::open(span_.address(), table_.address(), 1);
  }
  unsigned char* Span() { return reinterpret_cast<unsigned char*>(span_.bytes()); }
  unsigned char* At(hz::Bin bin, unsigned index) { return Span() + index * hz::bin_size(bin); }
  unsigned char* Block(hz::Bin bin, unsigned index, std::size_t size) {
    unsigned char* const slot = At(bin, index);
    EXPECT_TRUE(Guard::on_alloc(slot, bin, size));
    return slot;
  }
  bool Free(unsigned char* slot, hz::Bin bin) {
    if (!Guard::may_free(thread_, slot, bin)) return false;
    return Guard::on_free(thread_, slot, bin), true;
  }
  void FreeMuch(unsigned char* slot, hz::Bin bin) {
    ASSERT_TRUE(Guard::may_free(thread_, slot, bin));
    Guard::on_free_much(slot, bin);
  }
  Fault Look(hz::Bin bin) {
    Fault fault = Fault::kNone;
    Guard::look(span_.address(), bin, fault, [](const void*) { return true; });
    return fault;
  }

  Fault LookWhereNobodyRests(hz::Bin bin) {
    Fault fault = Fault::kNone;
    Guard::look(span_.address(), bin, fault, [](const void*) { return false; });
    return fault;
  }

  Region span_, table_;
  Guard::PerThread thread_;
};

TEST_F(Sealed, FindsAnyByteBehindABlockAndBelowIt) {
  for (const hz::Bin bin :
       {hz::scan_bin(16), hz::scan_bin(48), hz::scan_bin(64), hz::scan_bin(80), hz::scan_bin(320)}) {
    Guard::prepare(span_.address(), bin, false);
    const std::size_t most = hz::bin_size(bin) - Guard::kSealBytes;
    for (std::size_t size = most < Guard::kFence ? 0 : most - Guard::kFence; size <= most; ++size) {
      unsigned char* const block = Block(bin, 1, size);
      EXPECT_EQ(size, Guard::bytes(block, bin));
      std::memset(block, 0xFF, size);
      for (std::size_t i = size; i < hz::bin_size(bin); ++i) {
        block[i] ^= 0x10;
        EXPECT_FALSE(Guard::may_free(thread_, block, bin)) << size << " " << i;
        EXPECT_EQ(Fault::kOutOfBounds, Guard::diagnose(thread_, block, bin));
        EXPECT_EQ(Fault::kOutOfBounds, Look(bin));
        block[i] ^= 0x10;
      }
      for (std::size_t i = 1; i <= Guard::kSealBytes; ++i) {
        block[-static_cast<std::ptrdiff_t>(i)] ^= 0x10;
        EXPECT_FALSE(Guard::may_free(thread_, block, bin)) << size << " " << i;
        block[-static_cast<std::ptrdiff_t>(i)] ^= 0x10;
      }
      EXPECT_EQ(Fault::kNone, Look(bin));
      EXPECT_TRUE(Free(block, bin));
      EXPECT_FALSE(Free(block, bin));
      EXPECT_EQ(Fault::kDoubleFree, Guard::diagnose(thread_, block, bin));
      for (std::size_t i = 0; i < most; ++i) ASSERT_EQ(0, block[i]);
    }
  }
}

TEST_F(Sealed, FindsAnyByteThatIsWrittenAfterAFree) {
  for (const hz::Bin bin : {hz::scan_bin(16), hz::scan_bin(32), hz::scan_bin(80), hz::scan_bin(1024)}) {
    Guard::prepare(span_.address(), bin, false);
    for (std::size_t i = 0; i < hz::bin_size(bin); ++i) {
      unsigned char* const block = Block(bin, 2, 5);
      ASSERT_TRUE(Free(block, bin));
      block[i] ^= 0x80;
      const bool in_seal = i >= hz::bin_size(bin) - Guard::kSealBytes;
      const Fault expected = in_seal ? Fault::kOutOfBounds : Fault::kWriteAfterFree;
      EXPECT_FALSE(Guard::on_alloc(block, bin, 5)) << i;
      EXPECT_EQ(expected, Guard::fault_of_free(block, bin));
      EXPECT_EQ(expected, Look(bin));
      block[i] ^= 0x80;
      EXPECT_EQ(Fault::kNone, Look(bin));
    }
  }
}

// Of a slot that is not at hand a free clears what block and fence had, and an allocation looks at what they
// will have; a look at all sees the rest.
TEST_F(Sealed, MuchIsClearedAndProvedAsFarAsTheBlockReaches) {
  constexpr std::size_t kFences[] = {0, 1, 7, 8, 63, 64, 65, 100, 500};
  for (const std::size_t slot_size : {640UL, 1024UL, 4096UL, 10UL * 1024, 32UL * 1024}) {
    const hz::Bin bin = hz::scan_bin(slot_size);
    ASSERT_GT(bin, Guard::kLastAtHand);
    const std::size_t most = slot_size - Guard::kSealBytes;
    Guard::prepare(span_.address(), bin, false);
    unsigned char* const block = At(bin, 1);
    for (const std::size_t between : kFences) {
      const std::size_t size = most - between, fence = std::min(between, Guard::kFence);
      ASSERT_TRUE(Guard::on_alloc_much(block, bin, size));
      EXPECT_EQ(size, Guard::bytes(block, bin));
      std::memset(block, 0xFF, size);
      EXPECT_EQ(Fault::kNone, Look(bin)) << slot_size << " " << between;
      FreeMuch(block, bin);
      for (std::size_t i = 0; i < most; ++i)
        ASSERT_EQ(0, block[i]) << slot_size << " " << between << " " << i;
      for (const std::size_t at : {std::size_t{0}, std::size_t{15}, size / 2, size - 1, size + fence - 1}) {
        block[at] ^= 0x20;
        EXPECT_FALSE(Guard::on_alloc_much(block, bin, size)) << slot_size << " " << between << " " << at;
        EXPECT_EQ(Fault::kWriteAfterFree, Guard::fault_of_free(block, bin));
        EXPECT_EQ(Fault::kWriteAfterFree, Look(bin));
        EXPECT_EQ(Fault::kNone, LookWhereNobodyRests(bin)) << "somebody has it in his hands";
        block[at] ^= 0x20;
      }
      block[most] ^= 1;
      EXPECT_FALSE(Guard::on_alloc_much(block, bin, size));
      block[most] ^= 1;
    }
    // Nobody gets what was written where no block was.
    block[most - 1] = 7;
    ASSERT_TRUE(Guard::on_alloc_much(block, bin, 1));
    FreeMuch(block, bin);
    EXPECT_FALSE(Guard::on_alloc_much(block, bin, most));
    EXPECT_EQ(Fault::kWriteAfterFree, Look(bin));
    block[most - 1] = 0;
  }
}

TEST_F(Sealed, FindsWhatWasWrittenBehindTheLastSlot) {
  const hz::Bin bin = hz::scan_bin(20 * hz::kKiB);
  Guard::prepare(span_.address(), bin, false);
  unsigned char* const behind = Span() + hz::bin_slots(bin) * hz::bin_size(bin);
  ASSERT_LT(behind, Span() + hz::kGranule);
  *behind = 1;
  EXPECT_EQ(Fault::kOutOfBounds, Look(bin));
}

TEST_F(Sealed, ABlockMayChangeItsSizeWhereItLies) {
  const hz::Bin bin = hz::scan_bin(1024);
  Guard::prepare(span_.address(), bin, false);
  unsigned char* const block = At(bin, 0);
  ASSERT_TRUE(Guard::on_alloc_much(block, bin, 600));
  std::memset(block, 7, 600);
  for (const std::size_t size : {599, 601, 1016, 560, 560, 1009, 570}) {
    const std::size_t before = Guard::bytes(block, bin);
    Guard::seal_again(block, bin, size);
    EXPECT_EQ(size, Guard::bytes(block, bin));
    EXPECT_EQ(Fault::kNone, Guard::diagnose(thread_, block, bin));
    for (std::size_t i = before; i < size; ++i) ASSERT_EQ(0, block[i]);
    for (std::size_t i = 0; i < 560; ++i) ASSERT_EQ(7, block[i]);
    std::memset(block, 7, size);
  }
  FreeMuch(block, bin);
  for (std::size_t i = 0; i < 1016; ++i) ASSERT_EQ(0, block[i]) << i;
}

// A block that grows where it lies is another thread's to write to all the while.
TEST_F(Sealed, WhatIsWrittenToABlockThatChangesItsSizeStays) {
  for (const hz::Bin bin : {hz::scan_bin(112), hz::scan_bin(320)}) {
    Guard::prepare(span_.address(), bin, false);
    const std::size_t most = hz::bin_size(bin) - Guard::kSealBytes, least = most - 12;
    unsigned char* const block = Block(bin, 1, least);
    std::atomic<bool> done{false};
    std::thread resizes([&] {
      for (std::size_t size = least; !done; size = size == most ? least : size + 1)
        Guard::seal_again(block, bin, size);
    });
    volatile unsigned char& last = block[least - 1];
    unsigned lost = 0;
    for (unsigned i = 0; i < 200'000; ++i) {
      last = static_cast<unsigned char>(i);
      for (int pause = 0; pause < 20; ++pause) lost += last != static_cast<unsigned char>(i) ? 1 : 0;
    }
    done = true;
    resizes.join();
    EXPECT_EQ(0u, lost);
    EXPECT_EQ(Fault::kNone, Look(bin));
  }
}

// Its size may be asked for meanwhile, and the end of the process looks at all: no byte of it is theirs to
// read (ThreadSanitizer).
TEST_F(Sealed, ABlockIsLookedAtWhileItsThreadWrites) {
  for (const hz::Bin bin : {hz::scan_bin(64), hz::scan_bin(112), hz::scan_bin(320)}) {
    Guard::prepare(span_.address(), bin, false);
    const std::size_t size = hz::bin_size(bin) - Guard::kSealBytes - 4;
    unsigned char* const block = Block(bin, 1, size);
    std::atomic<bool> done{false};
    std::thread writes([&] {
      for (unsigned i = 0; !done; ++i) std::memset(block, static_cast<int>(i), size);
    });
    unsigned wrong = 0;
    for (unsigned i = 0; i < 5'000; ++i) {
      wrong += Guard::diagnose(thread_, block, bin) != Fault::kNone || Look(bin) != Fault::kNone ? 1 : 0;
      if (i % 100 == 0) std::this_thread::yield();
    }
    done = true;
    writes.join();
    EXPECT_EQ(0u, wrong);
  }
}

TEST_F(Sealed, NoSlotIsHandedOutTwiceOrFreedByTwo) {
  const hz::Bin bin = hz::scan_bin(64);
  Guard::prepare(span_.address(), bin, false);
  unsigned char* const block = Block(bin, 3, 40);
  EXPECT_FALSE(Guard::on_alloc(block, bin, 40));
  EXPECT_EQ(Fault::kDoubleFree, Guard::fault_of_free(block, bin));
  EXPECT_TRUE(Guard::may_free(thread_, block, bin));
  EXPECT_FALSE(Guard::may_free(thread_, block, bin));  // the other one's
  EXPECT_EQ(Fault::kNotAllocated, Guard::diagnose(thread_, At(bin, 9), bin));
  EXPECT_EQ(Fault::kInterior, Guard::diagnose(thread_, block + 16, bin));
}

TEST_F(Sealed, ARunIsFencedToTheEndOfItsPage) {
  const std::size_t page = hz::os::page_bytes();
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 4000, 4033, 4095, 4096, 5000, hz::kGranule - 1}) {
    Guard::seal_run(Span(), size, size % 3 != 0);
    EXPECT_EQ(size, Guard::run_bytes(Span()));
    EXPECT_EQ(size % 3 != 0, Guard::has_fence_below(Span()));
    EXPECT_TRUE(Guard::is_run_sealed(Span()));
    for (std::size_t at = size; at % page != 0; ++at) {
      Span()[at] ^= 1;
      EXPECT_FALSE(Guard::is_run_sealed(Span())) << at << " of " << size;
      Span()[at] ^= 1;
    }
  }
}

// By a few bytes: what it gets is looked at, and at least a fence of the usual length; the rest when it ends.
TEST_F(Sealed, ARunThatBecomesALittleLarger) {
  const std::size_t page = hz::os::page_bytes(), fence = 64;
  for (const std::size_t size : {std::size_t{100}, page - 70, page - 9, page + 1}) {
    const std::size_t end = hz::align_up(size, page);
    for (const std::size_t more : {std::size_t{1}, std::size_t{8}, std::size_t{200}, end - size}) {
      if (size + more > end) continue;
      Guard::seal_run(Span(), size, false);
      EXPECT_TRUE(Guard::is_run_sealed_up_to(Span(), size + more));
      for (std::size_t at = size; at < end; ++at) {
        Span()[at] ^= 1;
        EXPECT_EQ(at >= size + std::max(more, fence), Guard::is_run_sealed_up_to(Span(), size + more))
            << at << " of " << size << " and " << more;
        EXPECT_FALSE(Guard::is_run_sealed(Span()));
        Span()[at] ^= 1;
      }
      Guard::grow_run(Span(), size + more);
      EXPECT_TRUE(Guard::is_run_sealed(Span()));
      EXPECT_EQ(static_cast<std::ptrdiff_t>(more), std::count(Span() + size, Span() + size + more, 0));
    }
  }
}

// Of what it had and of its fence nothing stays but the new fence: it goes back as memory that is zero but
// for the block.
TEST_F(Sealed, ARunThatBecomesSmaller) {
  const std::size_t page = hz::os::page_bytes();
  Guard::seal_run(Span(), 3 * page + 100, true);
  std::fill_n(Span(), 3 * page + 100, static_cast<unsigned char>(7));
  Guard::seal_run_again(Span(), page + 30);
  EXPECT_EQ(page + 30, Guard::run_bytes(Span()));
  EXPECT_TRUE(Guard::has_fence_below(Span()));
  EXPECT_TRUE(Guard::is_run_sealed(Span()));
  EXPECT_EQ(static_cast<std::ptrdiff_t>(page + 30), std::count(Span(), Span() + page + 30, 7));
  EXPECT_EQ(static_cast<std::ptrdiff_t>(2 * page), std::count(Span() + 2 * page, Span() + 4 * page, 0));
}

}  // namespace
}  // namespace hz_test
