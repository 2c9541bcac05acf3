// SPDX-License-Identifier: Apache-2.0
//
// What is freed waits, comes back in no order, and none of it is lost; and a span that is carved whole is
// handed out in no order, each slot once.
#include "box/front/quarantine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "line/secure.hpp"
#include "unit/region.hpp"

namespace hz_test {
namespace {

using Front = hz::Quarantine<hz::Secure>;

class Quarantine : public ::testing::Test {
 protected:
  Quarantine() {
    Front::join(t_, *store_);
    Front::set_capacity(t_, kBin, kCapacity);
  }
  ~Quarantine() override {
    Emptied();
    Front::leave(t_);
  }

  static constexpr hz::Bin kBin = 4;
  static constexpr unsigned kCapacity = 16;

  bool Put(void* slot) {
    if (!Front::admit(t_, kBin, slot)) return Front::turn_away(t_, kBin), false;
    Front::put(t_, kBin, slot);
    Front::check(t_, kBin);
    return true;
  }

  std::set<void*> Emptied() {
    std::set<void*> all;
    for (hz::SlotArray some; (some = Front::drain(t_, kBin, 7)).count != 0;) {
      EXPECT_LE(some.count, 7U);
      all.insert(some.slots, some.slots + some.count);
      Front::drained(t_, kBin, some.count);
    }
    return all;
  }
  std::set<void*> Taken() {
    void* some[64];
    const unsigned count = Front::take_waiting(t_, kBin, some, 64);
    return std::set<void*>(some, some + count);
  }

  const std::unique_ptr<Front::Store> store_ = std::make_unique<Front::Store>();
  Front::PerThread t_;
  unsigned char slots_[1024][64];
};

TEST_F(Quarantine, NothingComesBackBeforeItsPlaceIsTaken) {
  ASSERT_TRUE(Put(slots_[0]));
  EXPECT_EQ(nullptr, Front::pop(t_, kBin));
  EXPECT_EQ(0U, Front::count(t_, kBin));
}

TEST_F(Quarantine, ComesBackOnceAndInNoOrder) {
  std::vector<void*> came;
  for (auto& slot : slots_) {
    ASSERT_TRUE(Put(slot));
    if (void* leaving = Front::pop(t_, kBin)) came.push_back(leaving);
  }
  EXPECT_GE(came.size(), std::size(slots_) - Front::places(kBin));
  unsigned in_order = 0;
  for (std::size_t i = 1; i < came.size(); ++i) in_order += came[i] > came[i - 1] ? 1 : 0;
  EXPECT_LT(in_order, came.size() * 3 / 4);
  EXPECT_GT(in_order, came.size() / 4);
  std::sort(came.begin(), came.end());
  EXPECT_EQ(came.end(), std::adjacent_find(came.begin(), came.end()));
}

TEST_F(Quarantine, GivesUpAllThatWaits) {
  std::set<void*> put;
  for (unsigned i = 0; i < Front::places(kBin) + kCapacity; ++i)
    if (Put(slots_[i])) put.insert(slots_[i]);
  EXPECT_EQ(put.size(), Front::count(t_, kBin) + Front::waiting(t_, kBin));
  EXPECT_TRUE(std::all_of(put.begin(), put.end(), [this](void* at) { return Front::holds(t_, kBin, at); }));
  EXPECT_FALSE(Front::holds(t_, kBin, slots_[1023]));
  EXPECT_EQ(put, Emptied());
  EXPECT_EQ(0U, Front::waiting(t_, kBin));
  EXPECT_EQ(nullptr, Front::pop(t_, kBin));
}

// The larger the class, the fewer wait.
TEST_F(Quarantine, HasPlacesBySize) {
  EXPECT_EQ(32U, Front::places(hz::scan_bin(16)));
  EXPECT_EQ(32U, Front::places(hz::scan_bin(512)));
  EXPECT_EQ(8U, Front::places(hz::scan_bin(513)));
  EXPECT_EQ(8U, Front::places(hz::scan_bin(4096)));
  EXPECT_EQ(4U, Front::places(hz::scan_bin(32768)));
}

// As heap/process/revoke.hpp does it, with a free of the owner's at each of its steps.
TEST_F(Quarantine, LeavesWithItsBin) {
  std::set<void*> put = {slots_[0]};
  ASSERT_TRUE(Put(slots_[0]));
  for (const bool counted : {false, true}) {
    bool admitted = counted && Front::admit(t_, kBin, slots_[9]);  // and its place is to be looked for
    void** const list = Front::detach(t_, kBin);
    const unsigned listed = list == nullptr ? 0 : Front::listed(t_, kBin, list).count;
    EXPECT_EQ(!counted, Front::accounts_for(t_, kBin, listed));
    EXPECT_EQ(put, counted ? put : Taken());
    if (!counted) {
      put.clear();
      admitted = Front::admit(t_, kBin, slots_[9]);
    }
    ASSERT_TRUE(admitted);
    Front::put(t_, kBin, slots_[9]);  // where nobody is
    EXPECT_TRUE(Front::accounts_for(t_, kBin, listed));
    EXPECT_EQ(put.size() + 1, Front::count(t_, kBin) + Front::waiting(t_, kBin));
    Front::reconcile(t_);
    Front::check(t_, kBin);
    put.insert(slots_[9]);
    EXPECT_EQ(put, Emptied());
    put = {slots_[4]};
    ASSERT_TRUE(Put(slots_[4]));
  }
}

TEST(ShuffledPool, HandsOutEachSlotOnceAndInNoOrder) {
  using Pool = hz::Secure::Pool;
  const Region span(4 * hz::kGranule), table(4 * Pool::kTableBytesPerGranule);
  const auto pool = std::make_unique<Pool::Global>();
  Pool::open(*pool, span.address(), table.address(), 4);
  for (const std::size_t size : {16UL, 80UL, 1000UL, 9000UL}) {
    const hz::Bin bin = hz::scan_bin(size);
    const unsigned slots = hz::bin_slots(bin);
    std::vector<void*> all(slots + 1);
    hz::Taken taken = Pool::adopt(*pool, span.address() + hz::kGranule, bin, 0, true, 3, all.data());
    EXPECT_FALSE(taken.fresh);
    EXPECT_EQ(0U, taken.first_page);
    EXPECT_EQ(0u, taken.pages) << "the caller has bound them";
    unsigned count = taken.slots;
    while ((taken = Pool::take(*pool, bin, 0, all.data() + count, 50, true)).slots != 0) count += taken.slots;
    ASSERT_EQ(slots, count);
    all.resize(count);
    unsigned in_order = 0;
    for (unsigned i = 1; i < count; ++i) in_order += all[i] > all[i - 1] ? 1 : 0;
    if (slots > 50) {
      EXPECT_LT(in_order, count * 2 / 3);
      EXPECT_GT(in_order, count / 3);
    }
    std::vector<void*> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted.end(), std::adjacent_find(sorted.begin(), sorted.end()));
    hz::Given given;
    for (unsigned i = 0; i < count; i += given.kept)
      given = Pool::give(*pool, bin, all.data() + i, std::min(64U, count - i));
    EXPECT_EQ(span.address() + hz::kGranule, given.emptied);
  }
}

}  // namespace
}  // namespace hz_test
