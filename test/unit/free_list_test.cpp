// SPDX-License-Identifier: Apache-2.0
//
// Chains and the list that threads share.
#include "base/free_list.hpp"

#include <gtest/gtest.h>

#include "unit/passing.hpp"

namespace hz_test {
namespace {

TEST(Chain, PushesInFront) {
  Slots slots(3);
  hz::Chain chain = {};
  EXPECT_EQ(0u, chain.count);
  EXPECT_EQ(nullptr, chain.first);
  chain.push(slots[0]);
  EXPECT_EQ(slots[0], chain.first);
  EXPECT_EQ(slots[0], chain.last);
  chain.push(slots[1]);
  chain.push(slots[2]);
  EXPECT_EQ(3u, chain.count);
  EXPECT_EQ(slots[0], chain.last);
  EXPECT_EQ((std::vector<void*>{slots[2], slots[1], slots[0]}), Listed(chain));
}

// By the size of the slots: small ones hold a link each, larger ones know the end and the length of their
// batch.
class SharedList : public ::testing::TestWithParam<std::size_t> {
 protected:
  static std::size_t Bytes() { return GetParam(); }
  static bool Roomy() { return Bytes() >= hz::kBatchBytes; }
  void Push(const hz::Chain& chain) { list_.push(chain, Bytes()); }
  hz::Chain Take(unsigned want) { return list_.take(want, Bytes()); }

  hz::SharedList list_;
};

INSTANTIATE_TEST_SUITE_P(Bytes, SharedList, ::testing::Values(16, 32, 48, 64),
                         ::testing::PrintToStringParamName());

TEST_P(SharedList, EmptyGivesNothing) {
  EXPECT_TRUE(list_.empty());
  EXPECT_EQ(0u, Take(10).count);
  EXPECT_TRUE(list_.empty());
}

TEST_P(SharedList, TakesNoBatchMoreThanItNeeds) {
  Slots slots(12, Bytes());
  for (std::size_t first : {0, 3, 6, 9}) Push(slots.ChainOf(first, 3));
  std::vector<bool> seen(slots.count(), false);
  std::vector<unsigned> counts;
  while (!list_.empty()) {
    const hz::Chain chain = Take(4);
    counts.push_back(chain.count);
    for (void* slot : Listed(chain)) {
      EXPECT_FALSE(seen[slots.IndexOf(slot)]);
      seen[slots.IndexOf(slot)] = true;
    }
  }
  EXPECT_EQ(std::vector<bool>(slots.count(), true), seen);
  EXPECT_EQ(Roomy() ? (std::vector<unsigned>{6, 6}) : (std::vector<unsigned>{4, 4, 4}), counts);
}

TEST_P(SharedList, TakesAllWhenMoreIsWanted) {
  Slots slots(9, Bytes());
  Push(slots.ChainOf(0, 5));
  Push(slots.ChainOf(5, 3));
  Push(slots.ChainOf(8, 1));
  const hz::Chain chain = Take(~0u);
  EXPECT_EQ(9u, chain.count);
  EXPECT_EQ(slots[0], chain.last);
  EXPECT_TRUE(list_.empty());
}

TEST_P(SharedList, LeavesTheMarksAlone) {
  Slots slots(6, Bytes());
  for (std::size_t i = 0; i < slots.count(); ++i) slots[i]->mark = 1000 + i;
  Push(slots.ChainOf(0, 3));
  Push(slots.ChainOf(3, 3));
  Take(1);
  for (std::size_t i = 0; i < slots.count(); ++i) EXPECT_EQ(1000 + i, slots[i]->mark);
}

TEST_P(SharedList, ThreadsLoseNothingAndGetNothingTwice) {
  ExpectPassedExactlyOnce(
      Bytes(), [&](const hz::Chain& chain) { Push(chain); },
      [&](unsigned want) { return Listed(Take(want)); });
  EXPECT_TRUE(list_.empty());
}

}  // namespace
}  // namespace hz_test
