// SPDX-License-Identifier: Apache-2.0
//
// Words with one writer.
#include "base/plain_word.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace hz_test {
namespace {

TEST(OwnerWord, AddsAndSets) {
  hz::OwnerWord<std::int32_t> word;
  EXPECT_EQ(0, word.peek());
  EXPECT_EQ(5, word.add(5));
  EXPECT_EQ(-2, word.add(-7));
  EXPECT_EQ(-2, word.peek());
  word.set(40);
  EXPECT_EQ(41, word.add(1));
}

TEST(OwnerWord, UnsignedWrapsAround) {
  hz::OwnerWord<std::size_t> word;
  word.add(100);
  word.add(-std::size_t{60});
  EXPECT_EQ(40u, word.peek());
}

TEST(OwnerWord, ReadersSeeItGrow) {
  hz::OwnerWord<std::uint64_t> word;
  std::atomic<bool> done{false};
  bool fell = false;
  std::thread reader([&] {
    for (std::uint64_t before = 0; !done.load();) {
      const std::uint64_t now = word.peek();
      fell = fell || now < before;
      before = now;
    }
  });
  for (int i = 0; i < 200000; ++i) word.add(1);
  done = true;
  reader.join();
  EXPECT_FALSE(fell);
  EXPECT_EQ(200000u, word.peek());
}

TEST(OnceWord, ShowsWhatWasBeforeUntilItIsSet) {
  hz::OnceWord<std::uintptr_t> word{17};
  EXPECT_EQ(17u, word.get());
  word.set(18);
  EXPECT_EQ(18u, word.get());
}

}  // namespace
}  // namespace hz_test
