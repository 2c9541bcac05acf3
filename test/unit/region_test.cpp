// SPDX-License-Identifier: Apache-2.0
//
// Four MiB of the heap of one lock: runs of granules, slots of a span, and what an address in it leads to.
#include "heap/one_lock/region.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

#include "os/os.hpp"

namespace hz_test {
namespace {

using hz::Bin;
using hz::Fault;
using hz::kGranule;
using hz::one_lock::kGranules;
using hz::one_lock::Link;
using hz::one_lock::Region;
using hz::one_lock::Span;

class RegionTest : public ::testing::Test {
 protected:
  RegionTest() : memory_(hz::os::map(kBytes, kBytes)), region_(*::new (memory_) Region) {}
  ~RegionTest() override { hz::os::unmap(memory_, kBytes); }

  Span& Begin(unsigned granule, std::size_t size) {
    const Bin bin = hz::scan_bin(size);
    Span& span = region_.begin(granule, bin, true);
    region_.used |= Region::mask(granule, Region::granules_of(span));
    return span;
  }
  void* Take(Span& span) {
    bool zeroed = false;
    return region_.take(span, zeroed);
  }
  Fault FaultAt(const void* at) { return region_.find(hz::address(at)).why; }
  static void* Plus(void* at, std::ptrdiff_t bytes) { return static_cast<char*>(at) + bytes; }

  static constexpr std::size_t kBytes = hz::one_lock::kRegion;
  void* memory_;
  Region& region_;
};

// Bit by bit.
unsigned FirstRun(std::uint64_t set, unsigned count, unsigned multiple) {
  for (unsigned first = 0; first + count <= kGranules; first += multiple) {
    if ((set & Region::mask(first, count)) == Region::mask(first, count)) return first;
  }
  return 0;
}

TEST_F(RegionTest, FindsTheFirstRunOfAnyLength) {
  std::mt19937_64 random(1);
  unsigned found = 0;
  for (int i = 0; i < 20000; ++i) {
    std::uint64_t set = random() | (i % 3 != 0 ? random() : 0) | (i % 2 != 0 ? random() : 0);
    set &= ~std::uint64_t{1};  // the notes are never free
    for (unsigned count = 1; count < kGranules; ++count) {
      const unsigned multiple = 1U << random() % 6;
      const unsigned first = Region::find_run(set, count, multiple);
      ASSERT_EQ(FirstRun(set, count, multiple), first)
          << std::hex << set << std::dec << " " << count << " " << multiple;
      found += first != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(found, 20000u);
  EXPECT_EQ(1u, Region::find_run(~std::uint64_t{1}, kGranules - 1, 1));
}

TEST_F(RegionTest, PrefersGranulesThatHavePages) {
  EXPECT_EQ(1u, region_.find_free(1, 1));
  region_.dirty = Region::mask(7, 2) | Region::mask(20, 5);
  EXPECT_EQ(7u, region_.find_free(1, 1));
  EXPECT_EQ(7u, region_.find_free(2, 1));
  EXPECT_EQ(20u, region_.find_free(3, 1));
  EXPECT_EQ(1u, region_.find_free(6, 1)) << "clean ones, if it has to be";
  EXPECT_EQ(0u, region_.find_free(kGranules, 1));
  EXPECT_EQ(8u, region_.find_free(1, 8));
  EXPECT_EQ(32u, region_.find_free(1, 32));
  EXPECT_EQ(0u, region_.find_free(40, 32));
}

TEST_F(RegionTest, EverySlotOnceAndTheLowestFirst) {
  for (std::size_t size : {16, 48, 112, 1000, 5000, 20000, 65536}) {
    Span& span = Begin(3, size);
    std::set<void*> taken;
    void* last = nullptr;
    for (unsigned i = 0; i < span.slots; ++i) {
      void* slot = Take(span);
      EXPECT_GT(slot, last);
      EXPECT_TRUE(taken.insert(last = slot).second);
      EXPECT_EQ(Fault::kNone, FaultAt(slot));
    }
    EXPECT_LE(hz::address(last) + span.slot_bytes, hz::address(region_.at(4, 0)));
    for (void* slot : taken) {
      region_.put(span, region_.find(hz::address(slot)).slot);
      EXPECT_EQ(Fault::kDoubleFree, FaultAt(slot));
    }
    EXPECT_EQ(0u, span.used);
    EXPECT_EQ(*taken.begin(), Take(span));
    region_.put(span, 0);
  }
}

TEST_F(RegionTest, KnowsWhichSlotsNobodyHasWritten) {
  Span& span = Begin(1, 1000);
  bool zeroed = false;
  region_.take(span, zeroed);
  EXPECT_TRUE(zeroed);
  region_.put(span, 0);
  region_.take(span, zeroed);
  EXPECT_FALSE(zeroed);
  region_.take(span, zeroed);
  EXPECT_TRUE(zeroed);
}

TEST_F(RegionTest, SaysWhatIsWrong) {
  Span& span = Begin(2, 3000);
  void* slot = Take(span);
  EXPECT_EQ(Fault::kNone, FaultAt(slot));
  for (std::ptrdiff_t inside : {1, 16, 3000}) EXPECT_EQ(Fault::kInterior, FaultAt(Plus(slot, inside)));
  EXPECT_EQ(Fault::kNotAllocated, FaultAt(Plus(slot, span.slot_bytes))) << "never handed out";
  EXPECT_EQ(Fault::kNotAllocated, FaultAt(&region_)) << "the notes";
  EXPECT_EQ(Fault::kNotAllocated, FaultAt(region_.at(9, 0))) << "no span ever began there";
  region_.put(span, 0);
  region_.used &= ~Region::mask(2, 1);
  EXPECT_EQ(Fault::kDoubleFree, FaultAt(slot)) << "also when its span has ended";
}

TEST_F(RegionTest, TracesTheInsideOfARun) {
  Span& small = Begin(5, 100);  // once a span of its own, then the inside of another
  region_.put(small, region_.find(hz::address(Take(small))).slot);
  region_.used &= ~Region::mask(5, 1);
  void* slot = Take(Begin(3, 320 * 1024));
  EXPECT_EQ(Fault::kNone, FaultAt(slot));
  for (unsigned granule = 3; granule < 8; ++granule)
    EXPECT_EQ(Fault::kInterior, FaultAt(region_.at(granule, 112))) << granule;
  EXPECT_EQ(Fault::kNotAllocated, FaultAt(region_.at(8, 0)));
}

TEST(LinkTest, AHeadAdoptsAllOfAnotherList) {
  Link list, other, a, b, c;
  list.adopt(other);
  EXPECT_TRUE(list.alone());
  c.insert(other);
  b.insert(other);
  list.adopt(other);
  EXPECT_TRUE(other.alone());
  a.insert(other);
  other.adopt(list);
  EXPECT_TRUE(list.alone());
  for (const Link* wanted : {&a, &b, &c}) {
    ASSERT_EQ(wanted, other.next);
    other.next->remove();
  }
  EXPECT_TRUE(other.alone());
}

TEST(LinkTest, IsInAtMostOneList) {
  Link list;
  Link a;
  Link b;
  EXPECT_TRUE(list.alone());
  a.insert(list);
  b.insert(list);
  EXPECT_EQ(&b, list.next);
  EXPECT_EQ(&a, list.previous);
  b.remove();
  b.remove();
  EXPECT_EQ(&a, list.next);
  EXPECT_TRUE(b.alone());
  a.remove();
  EXPECT_TRUE(list.alone());
}

}  // namespace
}  // namespace hz_test
