// SPDX-License-Identifier: Apache-2.0
//
// What the harness reads about its own process, and its memory outside of the measured allocator.
#include <gtest/gtest.h>

#include "../support/sanitizers.hpp"
#include "support/mapping.hpp"
#include "support/process.hpp"

namespace hz::bench {
namespace {

constexpr std::size_t kBytes = 8 * 1024 * 1024;

TEST(Mapping, ResidentFollowsWhatIsTouched) {
  Mapping mapping(kBytes, false);
  EXPECT_EQ(mapping.resident_kib(), 0U);
  mapping.data()[kBytes / 2] = std::byte{1};
  const std::size_t page_kib = Mapping::page_size() / 1024;
  EXPECT_EQ(mapping.resident_kib(), page_kib);
}

TEST(Mapping, TouchedFromTheStart) { EXPECT_EQ(Mapping(kBytes, true).resident_kib(), kBytes / 1024); }

TEST(Process, RssSeesAMappingComeAndGo) {
  const std::uint64_t before = rss_kib();
  ASSERT_GT(before, 0U);
  Mapping mapping(kBytes, true);
  const std::uint64_t during = rss_kib();
  mapping.release();
  const std::uint64_t after = rss_kib();
  EXPECT_GE(during, before + kBytes / 1024);
  EXPECT_LE(after, during - kBytes / 1024);
  EXPECT_GE(peak_rss_kib() + 1024, during);  // the peak is kept in counters that may lag by some pages
}

TEST(Process, CommittedFollowsWhatIsPromised) {
  const Committed before = Committed::now();
  if (before.kib == 0) GTEST_SKIP() << "this system counts none for a process";
  const Mapping mapping(kBytes, true);  // Wine counts what is touched
  EXPECT_GE(Committed::now().kib, before.kib + kBytes / 1024);
  EXPECT_GE(Committed::now().peak_kib, Committed::now().kib);
}

TEST(Process, UsageCountsFaultsBetweenTwoReadings) {
  if (hz_test::kEmulated) GTEST_SKIP() << "Wine counts no faults";
  const Usage before = Usage::now();
  Mapping mapping(kBytes, true);
  const auto pages = static_cast<long>(kBytes / Mapping::page_size());
  EXPECT_GE(Usage::now().since(before).minor_faults, pages);
}

TEST(Process, SleepTakesItsTime) {
  const std::uint64_t start = now_ns();
  sleep_ms(20);
  EXPECT_GE(now_ns() - start, 20'000'000U);
}

}  // namespace
}  // namespace hz::bench
