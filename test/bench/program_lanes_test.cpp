// SPDX-License-Identifier: Apache-2.0
//
// The loops that stand for programs (cfrac, espresso) and for mimalloc's stress test against their
// definitions, with an allocator that keeps books.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "books.hpp"
#include "classic/covers.hpp"
#include "classic/mstress.hpp"
#include "classic/numbers.hpp"
#include "lane/random.hpp"
#include "run_of.hpp"

namespace hz::bench {
namespace {

class ProgramLanesTest : public testing::Test {
 protected:
  void SetUp() override { Books::open(); }

  static void expect_all_freed(const Tally& tally) {
    EXPECT_TRUE(Books::live.empty());
    EXPECT_EQ(Books::unknown, 0U);
    EXPECT_EQ(tally.allocated, Books::allocations);
  }
};

TEST_F(ProgramLanesTest, NumbersLiveShortlyOrInATable) {
  NumbersShape shape(run_of("cfrac_like", Mode::kFair, 10'000));
  shape.saved = 100;
  std::vector<void*> numbers(shape.places());
  const Tally tally = compute_with_numbers<Books>(shape, make_random<Mode::kFair>(1, 0), numbers.data());
  expect_all_freed(tally);
  EXPECT_EQ(tally.allocated, 64U + 10'000U + 10'000U / 50);
  EXPECT_EQ(tally.released, tally.allocated);
  EXPECT_EQ(Books::most_live, 64U + 1 + 100) << "a result is made before a number is dropped";
  EXPECT_EQ(Books::smallest, 16U);
  EXPECT_EQ(Books::largest, 64U);
  // Of 64 that are drawn from, one survives 1,000 draws with the probability e^-15.6.
  std::vector<std::size_t> died(Books::allocations + 1);
  for (std::size_t at = 0; at < Books::calls.size(); ++at)
    if (Books::calls[at] < 0) died[static_cast<std::size_t>(-Books::calls[at])] = at;
  std::size_t short_lived = 0;
  for (std::size_t at = 0; at < Books::calls.size(); ++at)
    if (Books::calls[at] > 0) short_lived += died[static_cast<std::size_t>(Books::calls[at])] < at + 1'000;
  EXPECT_GT(short_lived, Books::allocations * 95 / 100);
}

TEST_F(ProgramLanesTest, CoversAreBuiltCopiedThinnedOutAndDropped) {
  CoversShape shape(run_of("espresso_like", Mode::kFair, 30));
  shape.min_cubes = shape.max_cubes = 100;
  Covers<Books> covers(shape, make_random<Mode::kFair>(1, 0));
  const Tally tally = covers.run();
  EXPECT_TRUE(Books::live.empty());
  EXPECT_EQ(Books::unknown, 0U);
  // Two arrays, 100 cubes and a copy of each, and copies of about half.
  EXPECT_NEAR(static_cast<double>(tally.allocated) / 30, 2 + 200 + 50, 5);
  EXPECT_EQ(tally.allocated, tally.released);
  // 16, 32, 64, 128 places; the second cover needs 64 at least.
  EXPECT_GE(tally.resized, 30U * (3 + 1));
  EXPECT_LE(Books::largest, 256U);
  EXPECT_GE(Books::smallest, 16U);
  EXPECT_LE(Books::most_live, 2U + 100 + 70);
}

TEST_F(ProgramLanesTest, MstressKeepsSomeAndPassesSomeThroughTheTable) {
  MstressShape shape(run_of("mstress_like", Mode::kFair, 5));
  shape.table = 50;
  constexpr unsigned kThreads = 3;
  std::vector<void*> places(kThreads * shape.places());
  const auto table = std::make_unique<Mstress<Books>::Place[]>(shape.table);
  std::vector<Mstress<Books>> stress;
  for (unsigned i = 0; i < kThreads; ++i)
    stress.emplace_back(shape, make_random<Mode::kFair>(1, i), places.data() + i * shape.places(),
                        table.get());
  std::vector<std::thread> threads;
  for (Mstress<Books>& one : stress) threads.emplace_back([&one] { one.run(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(Books::live.size(), shape.table) << "all but what lies in the table";
  EXPECT_GT(Books::live.size(), shape.table / 2);
  for (unsigned i = 0; i < kThreads; ++i) stress[i].finish(i, kThreads);
  Tally tally;
  for (const Mstress<Books>& one : stress) tally += one.tally();
  expect_all_freed(tally);
  EXPECT_EQ(tally.allocated, std::uint64_t{kThreads} * 5 * shape.blocks);
  EXPECT_EQ(tally.released, tally.allocated);
  EXPECT_GT(Books::foreign, shape.table) << "even if threads ran one after the other";
  EXPECT_GT(tally.sent, tally.allocated / 10);
  EXPECT_EQ(Books::untouched, 0U);
  EXPECT_EQ(Books::smallest, 8U);
  EXPECT_EQ(Books::largest, 64'000U);
  const auto large =
      std::count_if(Books::sizes.begin(), Books::sizes.end(), [](std::size_t n) { return n > 6400; });
  EXPECT_NEAR(static_cast<double>(large), static_cast<double>(tally.allocated) / 1000, 40);
}

}  // namespace
}  // namespace hz::bench
