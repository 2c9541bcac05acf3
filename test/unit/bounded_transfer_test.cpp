// SPDX-License-Identifier: Apache-2.0
//
// The transfer cache with a bound: what its header says beyond the contract of an exchange.
#include "box/exchange/bounded_transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "support/on_processors.hpp"
#include "unit/slots.hpp"

namespace hz_test {
namespace {

struct BoundedLine {
  static constexpr unsigned kOwners = 16;
  static constexpr unsigned kBatchEntries = 300;
  static constexpr std::size_t kBatchBytes = hz::kMiB;
  static constexpr unsigned kBinSlots = 64;  // magazines of 32
  static constexpr std::size_t kShelfBytes = 16 * hz::kKiB;
};
using Transfer = hz::BoundedTransfer<BoundedLine>;
using Parcel = hz::Parcel<hz::SlotArray>;

constexpr hz::Bin kBin = hz::scan_bin(64);
constexpr std::size_t kMost = BoundedLine::kShelfBytes / 64;

class BoundedTransfer : public ::testing::Test {
 protected:
  BoundedTransfer() { here_.go_to(0); }

  // How many of so many slots found room.
  std::size_t Sent(Slots& slots, std::size_t first, std::size_t count) {
    const auto sender = std::make_unique<Transfer::PerThread>();
    for (std::size_t i = first; i < first + count; ++i) Transfer::defer(*sender, i % 3, kBin, slots[i]);
    Transfer::Drain outbox(*global_, *sender, 0, true);
    std::size_t left = 0;
    for (Parcel parcel; outbox.next(parcel); left += parcel.slots.count) outbox.send(parcel);
    return count - left;
  }
  std::size_t Taken(unsigned want) {
    BufferOf<hz::SlotArray> buffer;
    hz::SlotArray bundle = buffer.empty();
    Transfer::take(*global_, 0, kBin, want, bundle);
    return bundle.count;
  }

  const OnProcessors here_;
  std::unique_ptr<Transfer::Global> global_ = std::make_unique<Transfer::Global>();
};

TEST_F(BoundedTransfer, HasRoomForItsBytesAndNoMore) {
  Slots slots(20 * 300);
  std::size_t sent = 0;
  for (std::size_t first = 0; first < slots.count(); first += 300) sent += Sent(slots, first, 300);
  EXPECT_LE(sent, kMost);
  EXPECT_GE(sent, kMost / 2);
  EXPECT_EQ(0u, Sent(slots, 0, 96)) << "whole magazines";
  std::size_t taken = 0;
  while (const std::size_t some = Taken(32)) taken += some;
  EXPECT_EQ(sent, taken);
}

// One slot is more than a shelf may have; it has one.
TEST_F(BoundedTransfer, LargeSlotsAreBoundedByBytesToo) {
  Slots slots(300);
  for (const std::size_t size : {4 * hz::kKiB, 10 * hz::kKiB, hz::kMiB}) {
    const auto g = std::make_unique<Transfer::Global>();
    BufferOf<hz::SlotArray> buffer;
    auto bundle = slots.BundleOf<hz::SlotArray>(buffer, 0, 20);
    Transfer::give(*g, 0, hz::scan_bin(size), bundle);
    EXPECT_EQ(20 - std::max<std::size_t>(1, BoundedLine::kShelfBytes / hz::bin_size(hz::scan_bin(size))),
              bundle.count)
        << size;
  }
}

TEST_F(BoundedTransfer, WhatIsTakenMakesRoom) {
  Slots slots(20 * 300);
  for (std::size_t first = 0; first < slots.count(); first += 300) Sent(slots, first, 300);
  const std::size_t taken = Taken(32) + Taken(32);
  EXPECT_NE(0u, taken);
  EXPECT_NE(0u, Sent(slots, 0, 96));
}

TEST_F(BoundedTransfer, AWholeMagazineThatHasNoRoomIsStillTheCallers) {
  Slots slots(20 * 300);
  for (std::size_t first = 0; first < slots.count(); first += 300) Sent(slots, first, 300);
  Transfer::Magazine* full = Transfer::take_empty();
  while (full->count < Transfer::Magazine::kSlots) full->slots[full->count++] = slots[0];
  EXPECT_FALSE(Transfer::give(*global_, kBin, full));
  EXPECT_EQ(Transfer::Magazine::kSlots, full->count);
  Transfer::give_empty(full);
}

}  // namespace
}  // namespace hz_test
