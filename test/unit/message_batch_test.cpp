// SPDX-License-Identifier: Apache-2.0
//
// Messages between threads: what their header file says beyond the contract of an exchange, and the growing
// table and the magazines that they are made of.
#include "box/exchange/message_batch.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>

#include "unit/slots.hpp"

namespace hz_test {
namespace {

struct MessageLine {
  static constexpr unsigned kOwners = 1U << 22;
  static constexpr unsigned kBatchEntries = 300;
  static constexpr std::size_t kBatchBytes = hz::kMiB;
  static constexpr unsigned kBinSlots = 128;
};
using Batch = hz::MessageBatch<MessageLine>;
using Parcel = hz::Parcel<hz::SlotArray>;

// So many slots of a class, from the `first`, as messages to the owner.
void Send(Batch::Global& g, unsigned sender, unsigned owner, hz::Bin bin, Slots& slots, std::size_t first,
          std::size_t count) {
  const auto t = std::make_unique<Batch::PerThread>();
  for (std::size_t i = first; i < first + count; ++i) Batch::defer(*t, owner, bin, slots[i]);
  Batch::Drain outbox(g, *t, sender, true);
  for (Parcel parcel; outbox.next(parcel);) {
    outbox.send(parcel);
    ASSERT_EQ(0u, parcel.slots.count);
  }
}

std::vector<void*> Collect(Batch::Global& g, unsigned owner, hz::Bin bin, unsigned want) {
  BufferOf<hz::SlotArray> buffer;
  hz::SlotArray bundle = buffer.empty();
  Batch::collect(g, owner, bin, want, bundle);
  return Listed(bundle);
}

TEST(MessageBatch, AdmitsItsEntriesAndItsBytes) {
  Slots slots(MessageLine::kBatchEntries);
  for (std::size_t size : {std::size_t{16}, 64 * hz::kKiB}) {
    const auto t = std::make_unique<Batch::PerThread>();
    const hz::Bin bin = hz::scan_bin(size);
    std::size_t n = 0;
    for (; Batch::admit(*t, 7, bin); ++n) Batch::defer(*t, 7, bin, slots[n]);
    EXPECT_EQ(size == 16 ? MessageLine::kBatchEntries : MessageLine::kBatchBytes / size, n);
  }
}

TEST(MessageBatch, ADrainMakesOneParcelOfEachOwnerAndClass) {
  const auto g = std::make_unique<Batch::Global>();
  Slots slots(MessageLine::kBatchEntries);
  Batch::PerThread t;
  // Owners that share rows of the drain's table, too.
  const unsigned owners[] = {0, 1, 256, 512, 4'000'000};
  for (std::size_t i = 0; i < slots.count(); ++i) Batch::defer(t, owners[i % 5], 1 + i / 5 % 3, slots[i]);
  std::set<std::pair<unsigned, hz::Bin>> seen;
  std::size_t swept = 0;
  Parcel parcel;
  for (Batch::Drain outbox(*g, t, 0, false); outbox.next(parcel); swept += parcel.slots.count) {
    EXPECT_TRUE(seen.insert({parcel.owner, parcel.bin}).second) << "a group leaves in one piece";
    EXPECT_EQ(20u, parcel.slots.count);
  }
  EXPECT_EQ(15u, seen.size());
  EXPECT_EQ(slots.count(), swept);
}

TEST(MessageBatch, WhatWasFreedForOthersServesItsThreadFirst) {
  const auto g = std::make_unique<Batch::Global>();
  Slots slots(60);
  Batch::PerThread t;
  for (std::size_t i = 0; i < slots.count(); ++i) Batch::defer(t, 1 + i % 4, 1 + i % 3, slots[i]);
  std::set<void*> seen;
  for (unsigned got : {7u, 7u, 6u, 0u}) {
    BufferOf<hz::SlotArray> buffer;
    hz::SlotArray back = buffer.empty();
    Batch::recall(t, 2, 7, back);
    ASSERT_EQ(got, back.count);
    for (void* slot : Listed(back)) {
      EXPECT_EQ(1u, slots.IndexOf(slot) % 3) << "of this class alone";
      EXPECT_TRUE(seen.insert(slot).second);
    }
  }
  EXPECT_EQ(20 * (hz::bin_size(1) + hz::bin_size(3)), Batch::outbox_bytes(t));
  Parcel parcel;
  for (Batch::Drain outbox(*g, t, 0, true); outbox.next(parcel);) {
    for (void* slot : Listed(parcel.slots)) {
      EXPECT_NE(2u, parcel.bin);
      EXPECT_TRUE(seen.insert(slot).second);
    }
  }
  EXPECT_EQ(slots.count(), seen.size());
  hz::SlotArray none;
  Batch::recall(t, 1, 7, none);
  EXPECT_EQ(0u, none.count);
}

TEST(MessageBatch, AMissAdoptsTheInboxWhole) {
  const auto g = std::make_unique<Batch::Global>();
  Slots slots(30);
  for (unsigned i = 0; i < 3; ++i) Send(*g, 0, 5, 1 + i, slots, i * 10, 10);
  Batch::Inbox& inbox = *g->inboxes.find(5);
  EXPECT_FALSE(inbox.fresh.empty());
  EXPECT_EQ(4u, Collect(*g, 5, 2, 4).size());
  EXPECT_TRUE(inbox.fresh.empty()) << "all classes with one exchange";
  EXPECT_EQ(10u, Collect(*g, 5, 1, 40).size());
  EXPECT_EQ(6u, Collect(*g, 5, 2, 40).size());
  EXPECT_EQ(10u, Collect(*g, 5, 3, 40).size());
}

// Each processor's store may keep one granule.
constexpr std::size_t kKept = 16 * hz::kGranule;
constexpr int kRounds = 10'000;
static_assert(kRounds * sizeof(Batch::Magazine) > 4 * kKept, "a leak has to show");

TEST(MessageBatch, AParcelThatIsNotSentLeavesItsMagazineToTheNextOne) {
  const auto g = std::make_unique<Batch::Global>();
  Slots slots(20);
  const std::size_t before = Batch::Empty::bytes();
  for (int round = 0; round < kRounds; ++round) {
    const auto t = std::make_unique<Batch::PerThread>();
    for (unsigned i = 0; i < 20; ++i) Batch::defer(*t, 9, 1 + i, slots[i]);
    Batch::Drain outbox(*g, *t, 3, true);
    std::set<void**> places;
    for (Parcel parcel; outbox.next(parcel);) places.insert(parcel.slots.slots);
    ASSERT_EQ(1u, places.size());
  }
  EXPECT_LE(Batch::Empty::bytes(), before + kKept) << "and gives it back in the end";
}

TEST(MessageBatch, MessagesArePackedIntoMagazinesThatWereReceived) {
  const auto g = std::make_unique<Batch::Global>();
  Slots slots(10);
  const std::size_t before = Batch::Empty::bytes();
  for (int round = 0; round < kRounds; ++round) {
    Send(*g, 1, 1, 1, slots, 0, 10);
    ASSERT_EQ(10u, Collect(*g, 1, 1, 40).size());
  }
  EXPECT_LE(Batch::Empty::bytes(), before + kKept);
}

TEST(MessageBatch, OwnersWithoutLimit) {
  const auto g = std::make_unique<Batch::Global>();
  constexpr unsigned kMany = 5'000;
  Slots slots(kMany);
  for (unsigned owner = 0; owner < kMany; ++owner) {
    EXPECT_EQ(0u, Collect(*g, owner, 4, 9).size());
    Send(*g, 0, owner, 4, slots, owner, 1);
  }
  for (unsigned owner = 0; owner < kMany; ++owner) {
    ASSERT_EQ((std::vector<void*>{slots[owner]}), Collect(*g, owner, 4, 9)) << owner;
  }
}

TEST(GrowingTable, RowsStayWhereTheyAre) {
  static hz::os::GrowingTable<std::atomic<unsigned>, 100'000> table;
  EXPECT_EQ(nullptr, table.find(64));
  EXPECT_EQ(nullptr, table.find(99'999));
  std::set<const void*> rows;
  for (unsigned row = 0; row < 100'000; ++row) {
    std::atomic<unsigned>* at = table.reach(row);
    ASSERT_NE(nullptr, at);
    ASSERT_EQ(0u, at->exchange(row));
    ASSERT_TRUE(rows.insert(at).second);
  }
  for (unsigned row = 0; row < 100'000; ++row) ASSERT_EQ(row, table.find(row)->load());
  EXPECT_GE(table.chunk_bytes(), (100'000 - 64) * sizeof(unsigned));
}

TEST(GrowingTable, ThreadsThatGrowItAtOnceAgree) {
  for (int round = 0; round < 20; ++round) {
    hz::os::GrowingTable<std::atomic<unsigned>, 1'000> table;
    const auto run = [&] {
      for (unsigned row = 0; row < 1'000; ++row) table.reach(row)->fetch_add(1);
    };
    std::thread other(run);
    run();
    other.join();
    for (unsigned row = 0; row < 1'000; ++row) ASSERT_EQ(2u, table.find(row)->load());
  }
}

}  // namespace
}  // namespace hz_test
