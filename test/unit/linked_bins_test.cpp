// SPDX-License-Identifier: Apache-2.0
//
// Linked bins: what their header says beyond the contract of a front.
#include "box/front/linked_bins.hpp"

#include <gtest/gtest.h>

#include <random>

#include "unit/slots.hpp"

namespace hz_test {
namespace {

using hz::LinkedBins;

int Length(const LinkedBins::PerThread& t, hz::Bin bin) {
  int n = 0;
  for (const hz::FreeSlot* slot = t.heads[bin].peek(); slot != nullptr; slot = slot->next) ++n;
  return n;
}

TEST(LinkedBins, LastInFirstOut) {
  Slots slots(3);
  LinkedBins::PerThread t;
  LinkedBins::set_capacity(t, 1, 3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(LinkedBins::admit(t, 1, nullptr));
    LinkedBins::put(t, 1, slots[i]);
  }
  for (int i = 3; i-- > 0;) EXPECT_EQ(slots[i], LinkedBins::pop(t, 1));
  EXPECT_EQ(nullptr, LinkedBins::pop(t, 1));
}

// length(list of bin) == capacity[bin] - room[bin], whatever happens.
TEST(LinkedBins, TheInvariantHolds) {
  constexpr hz::Bin kBin = 7;
  Slots slots(200);
  std::vector<void*> outside;
  for (std::size_t i = 0; i < slots.count(); ++i) outside.push_back(slots[i]);
  LinkedBins::PerThread t;
  std::mt19937 random(1);
  for (int step = 0; step < 20000; ++step) {
    const unsigned n = random() % 20;
    switch (random() % 5) {
      case 0: LinkedBins::set_capacity(t, kBin, 5 * n); break;
      case 1:
        if (void* slot = LinkedBins::pop(t, kBin)) outside.push_back(slot);
        break;
      case 2:
        if (outside.empty()) break;
        if (!LinkedBins::admit(t, kBin, nullptr)) {
          LinkedBins::turn_away(t, kBin);
        } else {
          LinkedBins::put(t, kBin, outside.back());
          outside.pop_back();
        }
        break;
      case 3: {
        hz::Chain chain = {};
        for (unsigned i = 0; i < n && !outside.empty(); ++i) {
          chain.push(static_cast<hz::FreeSlot*>(outside.back()));
          outside.pop_back();
        }
        if (chain.count != 0) LinkedBins::fill(t, kBin, chain);
        break;
      }
      default:
        for (void* slot : Listed(LinkedBins::drain(t, kBin, n))) outside.push_back(slot);
    }
    ASSERT_EQ(t.capacity[kBin].peek() - t.room[kBin].peek(), Length(t, kBin)) << step;
    ASSERT_EQ(slots.count(), outside.size() + LinkedBins::count(t, kBin)) << step;
  }
}

}  // namespace
}  // namespace hz_test
