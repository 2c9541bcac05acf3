// SPDX-License-Identifier: Apache-2.0
//
// Where empty magazines come from and go to.
#include "os/magazines.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

namespace hz_test {
namespace {

struct NoLine {};
using Store = hz::os::MagazineStore<29>;
using Stores = hz::os::Magazines<NoLine, 29>;

void GiveBack(Store::Magazine* magazine) {
  magazine->follow_with(nullptr);
  Store::give(magazine);
}

TEST(MagazineStore, KeepsOneGranuleThatNobodyUses) {
  static Store store;
  std::vector<Store::Magazine*> taken;
  while (store.bytes() < 4 * hz::kGranule) {
    taken.push_back(store.take());
    ASSERT_NE(nullptr, taken.back());
  }
  EXPECT_EQ(taken.size(), std::set<Store::Magazine*>(taken.begin(), taken.end()).size())
      << "the same one twice";
  for (auto* magazine : taken) GiveBack(magazine);
  EXPECT_EQ(hz::kGranule, store.bytes());
  GiveBack(store.take());
  EXPECT_EQ(hz::kGranule, store.bytes()) << "the one that it keeps serves again";
  store.shrink();
  EXPECT_EQ(0u, store.bytes());
  store.shrink();
  EXPECT_EQ(0u, store.bytes());
}

TEST(MagazineStore, EachGoesToTheStoreThatItCameFrom) {
  static Store stores[2];
  Store::Magazine* first = stores[0].take();
  Store::Magazine* second = stores[1].take();
  first->follow_with(second);
  second->follow_with(nullptr);
  Store::give(first);
  for (Store& store : stores) {
    store.shrink();
    EXPECT_EQ(0u, store.bytes());
  }
}

TEST(MagazineStore, KeepsAFewOfAnyStoreForTheNextOnes) {
  static Store stores[2];
  std::set<Store::Magazine*> given;
  Store::Magazine* list = nullptr;
  for (unsigned i = 0; i < Store::kKept + 3; ++i) {
    Store::Magazine* const magazine = stores[0].take();
    given.insert(magazine);
    magazine->follow_with(list);
    list = magazine;
  }
  unsigned left = 0;
  list = stores[1].keep(list);
  for (auto* magazine = list; magazine != nullptr; magazine = magazine->following()) ++left;
  EXPECT_EQ(3u, left);
  Store::give(list);
  for (unsigned i = 0; i < Store::kKept; ++i) {
    Store::Magazine* const magazine = stores[1].take();
    ASSERT_EQ(1u, given.erase(magazine)) << "one of those, and once";
    ASSERT_EQ(0u, stores[1].bytes());
    magazine->follow_with(nullptr);
    ASSERT_EQ(nullptr, stores[1].keep(magazine));
    ASSERT_EQ(magazine, stores[1].take());
    GiveBack(magazine);
  }
  stores[0].shrink();
  EXPECT_EQ(0u, stores[0].bytes());
}

TEST(MagazineStore, InAnyOrderOfReturning) {
  static Store store;
  std::mt19937 random(3);
  std::vector<Store::Magazine*> taken;
  std::set<Store::Magazine*> out;
  for (int step = 0; step < 200000; ++step) {
    const bool grows = step / 5000 % 2 == 0;
    if (taken.empty() || random() % 8 < (grows ? 5 : 3)) {
      taken.push_back(store.take());
      ASSERT_TRUE(out.insert(taken.back()).second) << "the same one twice";
      taken.back()->count = 1;
    } else {
      std::swap(taken[random() % taken.size()], taken.back());
      ASSERT_EQ(nullptr, taken.back()->none);
      out.erase(taken.back());
      GiveBack(taken.back());
      taken.pop_back();
    }
  }
  for (auto* magazine : taken) GiveBack(magazine);
  store.shrink();
  EXPECT_EQ(0u, store.bytes());
}

TEST(MagazineStore, ThreadsPassThemOn) {
  std::vector<std::thread> threads;
  static std::atomic<Stores::Magazine*> places[64];
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 50000; ++i) {
        Stores::Magazine* mine = Stores::take();
        mine->count = seed;
        if (auto* others = places[random() % 64].exchange(mine, std::memory_order_acq_rel)) GiveBack(others);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& place : places) {
    if (auto* last = place.load()) GiveBack(last);
  }
  Stores::shrink();
  EXPECT_EQ(0u, Stores::bytes());
}

}  // namespace
}  // namespace hz_test
