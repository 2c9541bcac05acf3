// SPDX-License-Identifier: Apache-2.0
//
// The redis_synthetic lanes against their definitions, with an allocator that keeps books: what each command
// allocates and frees, how they are mixed, and what stands in a value.
#include "classic/redis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "books.hpp"
#include "lane/random.hpp"
#include "run_of.hpp"

namespace hz::bench {
namespace {

class RedisTest : public testing::Test {
 protected:
  void SetUp() override { Books::open(); }

  static Tally run(const RedisShape& shape) {
    std::vector<RedisText> keys(shape.keys);
    const Tally tally = RedisStore<Books>(shape, make_random<Mode::kFair>(1, 0), keys.data()).run();
    EXPECT_TRUE(Books::live.empty());
    EXPECT_EQ(Books::unknown, 0U);
    EXPECT_EQ(tally.allocated, Books::allocations);
    EXPECT_EQ(tally.released, Books::releases);
    EXPECT_GE(Books::smallest, 16U);
    EXPECT_LE(Books::largest, 256U);
    return tally;
  }

  static RedisShape shape_of(std::string_view lane, std::uint64_t commands) {
    RedisShape shape(run_of(lane, Mode::kFair, commands));
    EXPECT_EQ(shape.keys, 10'000U);
    EXPECT_EQ(shape.list, 10'000U);
    shape.keys = 100;
    shape.list = 50;
    return shape;
  }
};

TEST_F(RedisTest, SetReplacesAValue) {
  const Tally tally = run(shape_of("redis_synthetic_set", 1'000));
  EXPECT_EQ(tally.allocated, 100U + 1'000);
  EXPECT_EQ(Books::most_live, 101U);
}

TEST_F(RedisTest, AValueIsANumberAndFilling) {
  std::uint64_t wrong = 0;
  Books::inspect = [&](const unsigned char* bytes, std::size_t size) {
    const unsigned char* end = bytes + size;
    const unsigned char* filling =
        std::find_if(bytes, end, [](unsigned char c) { return c < '0' || c > '9'; });
    wrong += filling == bytes || std::count(filling, end, 'x') != end - filling;
  };
  run(shape_of("redis_synthetic_set", 1'000));
  EXPECT_EQ(wrong, 0U);
  Books::releases = Books::allocations = 0;
  run(shape_of("redis_synthetic_get", 1'000));  // a reply is a copy
  EXPECT_EQ(wrong, 0U);
}

TEST_F(RedisTest, GetAllocatesAReplyAndFreesIt) {
  const Tally tally = run(shape_of("redis_synthetic_get", 1'000));
  EXPECT_EQ(tally.allocated, 100U + 1'000);
  for (std::size_t i = 100; i < 2'100; i += 2) ASSERT_EQ(Books::calls[i], -Books::calls[i + 1]);
  // Replies have the sizes of values.
  const auto values = Books::sizes.begin() + 100;
  EXPECT_TRUE(std::all_of(values, Books::sizes.end(), [values](std::size_t size) {
    return std::count(Books::sizes.begin(), values, size) != 0;
  }));
}

TEST_F(RedisTest, LpushPrependsAndDeletesALongList) {
  const Tally tally = run(shape_of("redis_synthetic_lpush", 120));
  EXPECT_EQ(tally.allocated, 100U + 2 * 120) << "a value and a node each";
  EXPECT_EQ(Books::most_live, 100U + 2 * 50);
  EXPECT_EQ(std::count(Books::sizes.begin() + 100, Books::sizes.end(), sizeof(RedisNode)) >= 120, true);
  // The list is deleted before the 51st push, last value first.
  EXPECT_EQ(Books::calls[200], -199);
  EXPECT_EQ(Books::calls[201], -200);
  EXPECT_EQ(Books::calls[202], -197);
  EXPECT_EQ(Books::calls[299], -102);
  EXPECT_EQ(Books::calls[300], 201);
}

TEST_F(RedisTest, LpopTakesTheFirstValueAndFillsAnEmptyListByHalf) {
  const Tally tally = run(shape_of("redis_synthetic_lpop", 26));
  EXPECT_EQ(tally.allocated, 100U + 2 * 2 * 25 + 26) << "filled twice, 26 replies";
  EXPECT_EQ(Books::calls[150], 151);  // the reply to the first command
  EXPECT_EQ(Books::calls[151], -151);
  EXPECT_EQ(Books::calls[152], -149);  // the value that was pushed last, and its node
  EXPECT_EQ(Books::calls[153], -150);
  EXPECT_EQ(Books::sizes[150], Books::sizes[148]);
}

TEST_F(RedisTest, RandomMixesTheCommandsByTheirShares) {
  RedisShape shape = shape_of("redis_synthetic_random", 100'000);
  shape.list = 20'000;  // never full, and empty but once
  run(shape);
  // Each command by the calls it makes, from behind the keys that are set first to what is freed at the end.
  int set = 0, get = 0, lpush = -10'000, lpop = 0;
  const std::vector<std::int64_t>& calls = Books::calls;
  for (std::size_t i = 100; calls[i] > 0;) {
    const bool reply = calls[i + 1] == -calls[i];
    const bool pop = reply && calls[i + 2] < 0;
    (pop ? lpop : reply ? get : calls[i + 1] < 0 ? set : lpush) += 1;
    i += pop ? 4 : 2;
  }
  EXPECT_EQ(set + get + lpush + lpop, 100'000);
  EXPECT_NEAR(set, 70'000, 750);
  EXPECT_NEAR(get, 20'000, 650);
  EXPECT_NEAR(lpush, 5'000, 350);
  EXPECT_NEAR(lpop, 5'000, 350);
}

}  // namespace
}  // namespace hz::bench
