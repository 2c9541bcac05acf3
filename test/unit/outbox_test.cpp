// SPDX-License-Identifier: Apache-2.0
//
// The two outboxes of hz3: what their headers say beyond the contract of an exchange.
#include <gtest/gtest.h>

#include <memory>

#include "box/exchange/dense_bank.hpp"
#include "box/exchange/sparse_ring.hpp"
#include "unit/slots.hpp"

namespace hz_test {
namespace {

struct SmallLine {
  static constexpr unsigned kOwners = 4;
  static constexpr unsigned kOutboxEntries = 200;
  static constexpr std::size_t kOutboxBytes = 256 * hz::kKiB;
  static constexpr unsigned kParcelSlots = 8;
  static constexpr std::size_t kParcelBytes = 64 * hz::kKiB;
};
struct WideLine : SmallLine {
  static constexpr unsigned kOwners = 256;
  static constexpr std::size_t kOutboxBytes = hz::kGiB;
};
using Ring = hz::SparseRing<SmallLine>;
using WideRing = hz::SparseRing<WideLine>;
using Bank = hz::DenseBank<SmallLine>;

TEST(SparseRing, AdmitsExactlyItsEntries) {
  Slots slots(SmallLine::kOutboxEntries);
  Ring::PerThread t;
  for (std::size_t i = 0; i < slots.count(); ++i) {
    ASSERT_TRUE(Ring::admit(t, i % 4, 1 + i % 9));
    Ring::defer(t, i % 4, 1 + i % 9, slots[i]);
  }
  for (hz::Bin bin = 1; bin < hz::kBins; ++bin)
    EXPECT_FALSE(Ring::admit(t, 0, bin)) << "room is for all together";
}

TEST(SparseRing, LargeSlotsFillItSooner) {
  Slots slots(SmallLine::kOutboxEntries);
  Ring::PerThread t;
  const hz::Bin bin = hz::scan_bin(64 * hz::kKiB);
  std::size_t n = 0;
  for (; Ring::admit(t, 0, bin); ++n) Ring::defer(t, 0, bin, slots[n]);
  EXPECT_EQ(SmallLine::kOutboxBytes / (64 * hz::kKiB), n);
}

TEST(SparseRing, SweepsAllOfItWhateverIsAsked) {
  Slots slots(SmallLine::kParcelSlots);
  Ring::PerThread t;
  for (std::size_t i = 0; i < slots.count(); ++i) Ring::defer(t, 1, 2, slots[i]);
  Ring::Drain drain(t, false);
  hz::Parcel<hz::Chain> parcel;
  ASSERT_TRUE(drain.next(parcel));
  EXPECT_EQ(slots.count(), parcel.slots.count) << "entries that meet their parcel join it";
  EXPECT_FALSE(drain.next(parcel));
  EXPECT_EQ(0u, Ring::outbox_bytes(t));
}

// Whoever collects takes whole parcels.
TEST(SparseRing, ParcelsAreBounded) {
  Slots slots(100);
  for (hz::Bin bin : {hz::Bin{1}, hz::scan_bin(16 * hz::kKiB), hz::kLastBin}) {
    WideRing::PerThread t;
    for (std::size_t i = 0; i < slots.count(); ++i) {
      ASSERT_TRUE(WideRing::admit(t, 1, bin));
      WideRing::defer(t, 1, bin, slots[i]);
    }
    hz::Parcel<hz::Chain> parcel;
    std::size_t swept = 0;
    for (WideRing::Drain drain(t, true); drain.next(parcel); swept += parcel.slots.count) {
      EXPECT_LE(parcel.slots.count, SmallLine::kParcelSlots);
      EXPECT_LT((parcel.slots.count - 1) * hz::bin_size(bin), SmallLine::kParcelBytes);
    }
    EXPECT_EQ(slots.count(), swept);
  }
}

TEST(SparseRing, EntriesHoldAnyUserAddressOwnerAndClass) {
  hz::FreeSlot slot{};
  for (unsigned owner : {0u, 1u, 255u}) {
    for (hz::Bin bin = 1; bin < hz::kBins; ++bin) {
      WideRing::PerThread t;
      WideRing::defer(t, owner, bin, &slot);
      WideRing::Drain drain(t, true);
      hz::Parcel<hz::Chain> parcel;
      ASSERT_TRUE(drain.next(parcel));
      EXPECT_EQ(owner, parcel.owner);
      EXPECT_EQ(bin, parcel.bin);
      EXPECT_EQ(&slot, parcel.slots.first);
    }
  }
}

TEST(DenseBank, AParcelIsFullByCountOrByBytes) {
  Slots slots(64);
  const auto room = [&](hz::Bin bin) {
    const auto t = std::make_unique<Bank::PerThread>();
    unsigned n = 0;
    for (; n < 64 && Bank::admit(*t, 2, bin); ++n) Bank::defer(*t, 2, bin, slots[n]);
    return n;
  };
  EXPECT_EQ(SmallLine::kParcelSlots, room(1));
  EXPECT_EQ(4u, room(hz::scan_bin(16 * hz::kKiB)));
  EXPECT_EQ(1u, room(hz::scan_bin(64 * hz::kKiB)));
  EXPECT_EQ(1u, room(hz::kLastBin));
}

// Only the parcel that refused leaves; the others wait until they are full as well.
TEST(DenseBank, APartialSweepTakesOnlyTheFullParcel) {
  Slots slots(30);
  Bank::PerThread t;
  std::size_t next = 0;
  for (unsigned owner = 0; owner < 3; ++owner) Bank::defer(t, owner, 5, slots[next++]);
  Bank::defer(t, 1, 6, slots[next++]);
  while (Bank::admit(t, 1, 5)) Bank::defer(t, 1, 5, slots[next++]);
  hz::Parcel<hz::Chain> parcel;
  {
    Bank::Drain drain(t, false);
    ASSERT_TRUE(drain.next(parcel));
    EXPECT_EQ(1u, parcel.owner);
    EXPECT_EQ(5u, parcel.bin);
    EXPECT_EQ(SmallLine::kParcelSlots, parcel.slots.count);
    EXPECT_FALSE(drain.next(parcel));
  }
  EXPECT_EQ(2 * hz::bin_size(5) + hz::bin_size(6), Bank::outbox_bytes(t));
  EXPECT_FALSE(Bank::Drain(t, false).next(parcel)) << "it was swept, so nothing is full";
  unsigned left = 0;
  for (Bank::Drain drain(t, true); drain.next(parcel);) left += parcel.slots.count;
  EXPECT_EQ(3u, left);
  EXPECT_EQ(0u, Bank::outbox_bytes(t));
}

TEST(DenseBank, APartialSweepWithoutARefusalTakesNothing) {
  Slots slots(1);
  Bank::PerThread t;
  ASSERT_TRUE(Bank::admit(t, 0, 1));
  Bank::defer(t, 0, 1, slots[0]);
  hz::Parcel<hz::Chain> parcel;
  EXPECT_FALSE(Bank::Drain(t, false).next(parcel));
  EXPECT_EQ(hz::bin_size(1), Bank::outbox_bytes(t));
}

}  // namespace
}  // namespace hz_test
