// SPDX-License-Identifier: Apache-2.0
//
// A scan for free pages of spans, step by step: it comes to an end wherever the heap ends, and goes on behind
// what the system does not purge.
#include "heap/spans/discard.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "contract/heap/line.hpp"

namespace hz_test {
namespace {

// An arena that shows so many of its granules, if any are said.
struct MeasuredArena : hz::Arena {
  static inline std::size_t measured = 0;

  static hz::Rows rows_from(Global& g, std::size_t row, std::size_t most) {
    if (measured == 0) return hz::Arena::rows_from(g, row, most);
    const std::size_t first = hz::Arena::rows_from(g, 0, 1).begin, end = first + measured;
    hz::Rows rows;
    if (row >= end) return rows;
    rows.begin = std::max(row, first);
    rows.end = std::min(end, rows.begin + most);
    return rows;
  }
};

template <class Base>
struct Measured : Base {
  using Source = MeasuredArena;
};

template <class Base>
class DiscardContract : public ::testing::Test {};
TYPED_TEST_SUITE(DiscardContract, ThisLine);

TYPED_TEST(DiscardContract, AScanEndsAlsoWhereTheHeapIsAMultipleOfTheStep) {
  using Line = Measured<TypeParam>;
  using D = hz::Discard<Line>;
  if (!D::possible()) GTEST_SKIP() << "the line discards no pages";
  constexpr std::size_t kStep = 64;
  hz::Heap<Line>::free(hz::Heap<Line>::malloc(20 * hz::kMiB));  // opens the heap: rows so far can be read
  typename hz::Threads<Line>::Entered here;
  for (const std::size_t granules : {std::size_t{1}, kStep - 1, kStep, kStep + 1, 3 * kStep}) {
    MeasuredArena::measured = granules;
    std::size_t steps = 1;
    for (std::size_t at = 0; steps < 10; ++steps) {
      at = D::some(here.thread(), at, kStep, D::Which::kAll).next;
      if (at == 0) break;
    }
    MeasuredArena::measured = 0;
    EXPECT_LE(steps, granules / kStep + 1) << granules;
  }
}

TYPED_TEST(DiscardContract, RefusalsCountOnlyInARow) {
  using D = hz::Discard<TypeParam>;
  typename D::Refusals refusals;
  const auto note = [&](std::size_t bytes, bool refused) {
    typename D::Found found;
    found.bytes = bytes;
    found.refused = refused;
    refusals.note(found);
  };
  for (int i = 0; i < 2; ++i) note(0, true);
  EXPECT_FALSE(refusals.are_many());
  note(4096, true);
  for (int i = 0; i < 2; ++i) note(0, true);
  EXPECT_FALSE(refusals.are_many());
  note(0, false);
  note(0, true);
  EXPECT_TRUE(refusals.are_many());
}

}  // namespace
}  // namespace hz_test
