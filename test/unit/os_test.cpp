// SPDX-License-Identifier: Apache-2.0
//
// The operating system as we see it.
#include "os/os.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "support/capture.hpp"
#include "support/ended.hpp"
#include "support/pattern.hpp"
#include "support/sanitizers.hpp"
#include "support/variable.hpp"
#include "unit/again.hpp"
#include "unit/region.hpp"

namespace hz_test {
namespace {

namespace os = hz::os;
constexpr int kErrno = 12345;
void* const kUnaligned = reinterpret_cast<void*>(4097);

TEST(OsMemory, ReservedThenCommitted) {
  errno = kErrno;
  void* at = os::reserve(4 * hz::kMiB, hz::kMiB);
  ASSERT_NE(nullptr, at);
  EXPECT_TRUE(IsAligned(at, hz::kMiB));
  ASSERT_TRUE(os::commit(at, hz::kMiB));
  EXPECT_TRUE(IsZero(at, hz::kMiB));
  FillPattern(at, hz::kMiB, 1);
  EXPECT_TRUE(HasPattern(at, hz::kMiB, 1));
  os::unmap(at, 4 * hz::kMiB);
  EXPECT_EQ(kErrno, errno);
}

TEST(OsMemory, ReservedMeansUntouchable) {
  void* at = os::reserve(hz::kGranule, hz::kGranule);
  EXPECT_DEATH(*static_cast<volatile char*>(at) = 1, "");
  os::unmap(at, hz::kGranule);
}

TEST(OsMemory, MappedAtEveryAlignment) {
  for (std::size_t alignment = hz::kGranule; alignment <= hz::kGiB; alignment *= 4) {
    void* at = os::map(3 * hz::kGranule, alignment);
    ASSERT_NE(nullptr, at) << alignment;
    EXPECT_TRUE(IsAligned(at, alignment)) << alignment;
    EXPECT_TRUE(IsZero(at, 3 * hz::kGranule));
    std::memset(at, 1, 3 * hz::kGranule);
    os::unmap(at, 3 * hz::kGranule);
  }
}

TEST(OsMemory, RefusalsReturnNothingAndKeepErrno) {
  errno = kErrno;
  EXPECT_EQ(nullptr, os::map(std::size_t{1} << 60, hz::kGranule));
  EXPECT_EQ(nullptr, os::reserve(SIZE_MAX - hz::kGranule + 1, hz::kGranule));
  EXPECT_FALSE(os::commit(kUnaligned, hz::kPage));
  EXPECT_FALSE(os::purge(kUnaligned, hz::kPage));
  EXPECT_FALSE(os::remap_fresh(kUnaligned, hz::kPage));
  EXPECT_FALSE(os::move_pages(kUnaligned, kUnaligned, hz::kPage));
  EXPECT_FALSE(os::unmap(kUnaligned, hz::kPage));
  EXPECT_EQ(os::Placed::kRefused, os::extend(kUnaligned, SIZE_MAX - 2 * hz::kGranule));
  EXPECT_TRUE(os::forbid_huge_pages(kUnaligned, hz::kPage));
  EXPECT_EQ(kErrno, errno);
}

TEST(OsMemory, ExtendsExactlyThereOrNot) {
  char* const hole = static_cast<char*>(os::map(4 * hz::kGranule, hz::kGranule));
  os::unmap(hole, 4 * hz::kGranule);
  ASSERT_EQ(os::Placed::kHere, os::extend(hole, hz::kGranule));
  ASSERT_EQ(os::Placed::kHere, os::extend(hole + 3 * hz::kGranule, hz::kGranule));
  hole[0] = 'x';
  hole[3 * hz::kGranule] = 'y';
  errno = kErrno;
  EXPECT_EQ(os::Placed::kTaken, os::extend(hole, hz::kGranule));
  EXPECT_EQ(os::Placed::kTaken, os::extend(hole + 2 * hz::kGranule, 2 * hz::kGranule))
      << "half of it is taken";
  EXPECT_EQ(os::Placed::kHere, os::extend(hole + hz::kGranule, hz::kGranule));
  EXPECT_EQ(kErrno, errno);
  EXPECT_TRUE(IsZero(hole + hz::kGranule, hz::kGranule));
  hole[hz::kGranule] = 'z';
  EXPECT_EQ('x', hole[0]);
  EXPECT_EQ('y', hole[3 * hz::kGranule]);
  os::unmap(hole, 2 * hz::kGranule);
  os::unmap(hole + 3 * hz::kGranule, hz::kGranule);
}

TEST(OsMemory, PurgedAndRemappedPagesReadAsZero) {
  Region region(4 * hz::kGranule);
  FillPattern(region.bytes(), region.size(), 1);
  errno = kErrno;
  EXPECT_TRUE(os::purge(region.bytes() + hz::kGranule, hz::kGranule));
  EXPECT_TRUE(os::remap_fresh(region.bytes() + 2 * hz::kGranule, hz::kGranule));
  EXPECT_EQ(kErrno, errno);
  EXPECT_TRUE(IsZero(region.bytes() + hz::kGranule, 2 * hz::kGranule));
  EXPECT_TRUE(HasPattern(region.bytes(), hz::kGranule, 1));
  FillPattern(region.bytes(), region.size(), 2);
  EXPECT_TRUE(HasPattern(region.bytes(), region.size(), 2));
}

TEST(OsMemory, OthersMayReadATableThatIsPurged) {
  Region region(hz::kGranule);
  std::atomic<bool> done{false};
  std::atomic<unsigned> rounds{0};
  auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(region.bytes() + hz::kPage);
  std::thread reader([&] {
    for (; !done.load(); ++rounds) EXPECT_LE(word->load(), 1u);
  });
  for (int round = 0; round < 2000 || rounds.load() == 0; ++round) {
    word->store(1);
    ASSERT_TRUE(os::purge(region.bytes(), region.size(), os::Use::kTables));
  }
  done = true;
  reader.join();
  EXPECT_TRUE(IsZero(region.bytes(), region.size()));
}

TEST(OsMemory, HolesAreSeen) {
  if (kEmulated) GTEST_SKIP() << "an emulator takes no advice";
  Region region(3 * hz::kGranule);
  errno = kErrno;
  EXPECT_TRUE(os::is_mapped(region.bytes(), region.size()));
  os::unmap(region.bytes() + hz::kGranule, hz::kGranule);
  EXPECT_FALSE(os::is_mapped(region.bytes(), region.size()));
  EXPECT_TRUE(os::is_mapped(region.bytes() + 2 * hz::kGranule, hz::kGranule));
  EXPECT_EQ(os::Placed::kHere, os::extend(region.bytes() + hz::kGranule, hz::kGranule));
  EXPECT_EQ(kErrno, errno);
}

TEST(OsMemory, PagesMoveWithTheirContents) {
  Region from(2 * hz::kGranule);
  Region to(2 * hz::kGranule);
  FillPattern(from.bytes(), from.size(), 1);
  if (!os::move_pages(from.bytes(), to.bytes(), from.size())) {  // an old kernel, or one that emulates
    EXPECT_TRUE(HasPattern(from.bytes(), from.size(), 1));
    EXPECT_TRUE(IsZero(to.bytes(), to.size()));
    return;
  }
  EXPECT_TRUE(HasPattern(to.bytes(), to.size(), 1));
  EXPECT_TRUE(IsZero(from.bytes(), from.size()));
  FillPattern(from.bytes(), from.size(), 2);
  EXPECT_TRUE(HasPattern(to.bytes(), to.size(), 1));
}

TEST(OsMachine, ProcessesDrawDifferentWords) {
  if (std::getenv("HZ_UNIT_PRINT_WORD") != nullptr) {
    std::printf("word=%llx\n", static_cast<unsigned long long>(os::random_word()));
    return;
  }
  std::string words[3];
  for (std::string& word : words) {
    const ChildResult result = RunThisTestAgain({{"HZ_UNIT_PRINT_WORD", "1"}});
    const std::size_t at = result.out.find("word=");
    ASSERT_NE(std::string::npos, at) << result.out << result.err;
    word = result.out.substr(at, result.out.find('\n', at) - at);
  }
  EXPECT_NE(words[0], words[1]);
  EXPECT_NE(words[0], words[2]);
  EXPECT_NE(words[1], words[2]);
}

TEST(OsMachine, ClockRuns) {
  const std::uint64_t fine_before = os::microseconds();
  const std::uint64_t before = os::milliseconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const std::uint64_t passed = os::milliseconds() - before;
  const std::uint64_t fine = os::microseconds() - fine_before;
  EXPECT_GE(fine + 10'000, passed * 1000);
  EXPECT_LE(fine, (passed + 1000) * 1000);
  EXPECT_GE(passed, 40u);
  EXPECT_LT(passed, 60000u);
}

TEST(OsProcess, ThreadsHaveNumbers) {
  EXPECT_NE(0u, os::thread_id());
  std::uint64_t other = 0;
  std::thread([&] { other = os::thread_id(); }).join();
  EXPECT_NE(0u, other);
  EXPECT_NE(os::thread_id(), other);
}

TEST(OsProcess, WritesToStderr) {
  Capture capture;
  errno = kErrno;
  os::write_error("one line\nand more", 9);
  EXPECT_EQ(kErrno, errno);
  EXPECT_EQ("one line\n", capture.Text());
}

TEST(OsProcess, AbortAborts) { EXPECT_EXIT(os::abort_process(), EndedByAbort, ""); }

TEST(OsEnvironment, FindsValues) {
  SetVariable("HZ_UNIT_TEST", "value");
  SetVariable("HZ_UNIT_TEST_LONGER", "other");
  const std::string long_value(kLongestVariable, 'y');
  SetVariable("HZ_UNIT_LONG", long_value.c_str());
  errno = kErrno;
  os::Environment environment;
  EXPECT_STREQ("value", environment.value_of("HZ_UNIT_TEST"));
  EXPECT_STREQ("other", environment.value_of("HZ_UNIT_TEST_LONGER"));
  EXPECT_EQ(nullptr, environment.value_of("HZ_UNIT"));
  EXPECT_EQ(nullptr, environment.value_of("HZ_UNIT_TEST="));
  EXPECT_STREQ(long_value.c_str(), environment.value_of("HZ_UNIT_LONG"));
  EXPECT_EQ(kErrno, errno);
  SetVariable("HZ_UNIT_LONG", nullptr);
}

std::atomic<int> exits{0};
unsigned exit_key = 0;

void CountExit(void* state) {
  if (++exits == 1) os::arm_exit_hook(exit_key, state);
}

TEST(OsHooks, ThreadExitIsToldAndMayBeToldAgain) {
  ASSERT_TRUE(os::create_exit_hook(&CountExit, &exit_key));
  int state = 0;
  std::thread([&] { os::arm_exit_hook(exit_key, &state); }).join();
  EXPECT_EQ(2, exits.load());
  std::thread([] {}).join();
  EXPECT_EQ(2, exits.load()) << "a thread that did not arm";
}

TEST(OsWaiting, ReturnsAtOnceWhenTheWordHasChanged) {
  const std::uint32_t word = 5;
  errno = kErrno;
  os::wait_on(&word, 4);
  EXPECT_EQ(kErrno, errno);
}

TEST(OsWaiting, SleepsUntilWoken) {
  std::atomic<std::uint32_t> word{0};
  const auto* raw = reinterpret_cast<const std::uint32_t*>(&word);
  std::thread sleeper([&] {
    while (word.load() == 0) os::wait_on(raw, 0);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  word = 1;
  os::wake_one(raw);
  sleeper.join();
  EXPECT_EQ(1u, word.load());
}

}  // namespace
}  // namespace hz_test
