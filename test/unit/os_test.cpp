// SPDX-License-Identifier: Apache-2.0
//
// The operating system as we see it.
#include "os/os.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/capture.hpp"
#include "support/pattern.hpp"
#include "unit/again.hpp"
#include "unit/region.hpp"

extern char** environ;

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
  os::unmap(hole + hz::kGranule, 2 * hz::kGranule);
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

TEST(OsMemory, PlacesThatAreTakenCannotBeHad) {
  if (kEmulated) GTEST_SKIP() << "an emulator takes no advice";
  Region region(2 * hz::kGranule);
  errno = kErrno;
  EXPECT_FALSE(os::may_have(region.bytes()));
  EXPECT_FALSE(os::may_have(reinterpret_cast<void*>(std::uintptr_t{1} << 62)));
  os::unmap(region.bytes() + hz::kGranule, hz::kGranule);
  EXPECT_TRUE(os::may_have(region.bytes() + hz::kGranule));
  EXPECT_FALSE(os::is_mapped(region.bytes() + hz::kGranule, hz::kGranule)) << "only asked";
  EXPECT_EQ(kErrno, errno);
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

// The flags that the kernel shows for the mapping at an address, between blanks; empty if it shows none.
std::string MappingFlags(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2) {
      here = begin <= hz::address(at) && hz::address(at) < end;
    } else if (here && line.rfind("VmFlags:", 0) == 0) {
      return line.substr(8) + " ";
    }
  }
  return "";
}

TEST(OsMemory, HugePagesAreAskedForOrForbiddenOrLeftToTheSystem) {
  if (kEmulated) GTEST_SKIP() << "an emulator takes no advice";
  if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) GTEST_SKIP() << "this kernel has none";
  const std::pair<os::HugePages, const char*> cases[] = {{os::HugePages::kNever, " nh "},
                                                         {os::HugePages::kAlways, " hg "},
                                                         {os::HugePages::kAsTheSystemSays, ""}};
  for (const auto& [choice, flag] : cases) {
    os::prefer_huge_pages(choice);
    auto* at = static_cast<std::byte*>(os::reserve(4 * hz::kMiB, hz::kGranule));
    ASSERT_NE(nullptr, at);
    ASSERT_TRUE(os::commit(at, 2 * hz::kMiB));
    ASSERT_TRUE(os::remap_fresh(at + hz::kGranule, hz::kGranule));
    for (const std::byte* one : {at, at + hz::kGranule, at + 3 * hz::kMiB}) {
      const std::string flags = MappingFlags(one);
      EXPECT_EQ(*flag != 0,
                flags.find(" nh ") != std::string::npos || flags.find(" hg ") != std::string::npos)
          << flags;
      EXPECT_NE(std::string::npos, flags.find(flag)) << flags;
    }
    EXPECT_EQ(MappingFlags(at), MappingFlags(at + hz::kGranule));
    os::unmap(at, 4 * hz::kMiB);
  }
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

TEST(OsMachine, KnowsItsMemory) {
  EXPECT_EQ(
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
      os::memory_bytes());
}

TEST(OsMachine, KnowsTheLimitOfAddressSpace) {
  if (kEmulated) GTEST_SKIP() << "an emulator keeps no limit";
  rlimit before = {};
  ASSERT_EQ(0, getrlimit(RLIMIT_AS, &before));
  EXPECT_EQ(before.rlim_cur == RLIM_INFINITY ? SIZE_MAX : before.rlim_cur, os::address_space_limit());
  const rlimit limited = {rlim_t{1} << 46, before.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_AS, &limited));
  EXPECT_EQ(std::size_t{1} << 46, os::address_space_limit());
  setrlimit(RLIMIT_AS, &before);
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
  EXPECT_EQ(static_cast<std::uint64_t>(getpid()), os::thread_id());
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

TEST(OsProcess, NobodyListeningIsNoError) {
  const int saved = dup(2);
  close(2);
  errno = kErrno;
  os::write_error("lost", 4);
  EXPECT_EQ(kErrno, errno);
  dup2(saved, 2);
  close(saved);
}

// A program may close its stderr before the last line is written.
TEST(OsProcess, KeepsTheErrorStreamOutOfTheWay) {
  Capture capture;
  errno = kErrno;
  os::keep_error_stream();
  EXPECT_EQ(kErrno, errno);
  const int low = dup(1);
  EXPECT_LT(low, 100) << "programs count on low numbers";
  close(low);
  const int saved = dup(2);
  close(2);
  os::write_error("late\n", 5);
  dup2(saved, 2);
  close(saved);
  EXPECT_EQ("late\n", capture.Text());
}

TEST(OsProcess, AbortAborts) { EXPECT_EXIT(os::abort_process(), ::testing::KilledBySignal(SIGABRT), ""); }

TEST(OsEnvironment, FindsValues) {
  setenv("HZ_UNIT_TEST", "value", 1);
  setenv("HZ_UNIT_TEST_LONGER", "other", 1);
  const std::string long_value(100'000, 'y');
  setenv("HZ_UNIT_LONG", long_value.c_str(), 1);
  errno = kErrno;
  os::Environment environment;
  EXPECT_STREQ("value", environment.value_of("HZ_UNIT_TEST"));
  EXPECT_STREQ("other", environment.value_of("HZ_UNIT_TEST_LONGER"));
  EXPECT_EQ(nullptr, environment.value_of("HZ_UNIT"));
  EXPECT_EQ(nullptr, environment.value_of("HZ_UNIT_TEST="));
  EXPECT_STREQ(long_value.c_str(), environment.value_of("HZ_UNIT_LONG"));
  setenv("HZ_UNIT_TEST", "", 1);
  EXPECT_STREQ("", environment.value_of("HZ_UNIT_TEST"));
  EXPECT_EQ(kErrno, errno);
  unsetenv("HZ_UNIT_LONG");
}

TEST(OsEnvironment, TellsEveryVariableAgainAfterRewind) {
  os::Environment environment;
  for (int round = 0; round < 2; ++round) {
    environment.rewind();
    char** expected = environ;
    while (const char* entry = environment.next()) EXPECT_STREQ(*expected++, entry);
    EXPECT_EQ(nullptr, *expected);
    EXPECT_EQ(nullptr, environment.next());
  }
}

// The loader allocates before the C library has an environment.
TEST(OsEnvironment, IsFoundBeforeTheLibraryHasIt) {
  const std::string long_value(100'000, 'x');  // longer than what is read at first
  if (std::getenv("HZ_UNIT_EARLY") == nullptr) {
    const ChildResult result = RunThisTestAgain(
        {{"HZ_UNIT_LONG", long_value}, {"HZ_UNIT_EARLY", "found"}, {"HZ_UNIT_LAST", "last"}});
    EXPECT_EQ(0, result.exit_code) << result.out << result.err;
    return;
  }
  char** const saved = environ;
  environ = nullptr;
  {
    errno = kErrno;
    os::Environment environment;
    environ = saved;
    EXPECT_EQ(kErrno, errno);
    EXPECT_STREQ("found", environment.value_of("HZ_UNIT_EARLY"));
    EXPECT_STREQ("last", environment.value_of("HZ_UNIT_LAST"));
    EXPECT_STREQ(long_value.c_str(), environment.value_of("HZ_UNIT_LONG"));
    EXPECT_EQ(nullptr, environment.value_of("HZ_UNIT_MISSING"));
    EXPECT_EQ(nullptr, environment.value_of("HZ_UNIT"));
    std::size_t count = 0, given = 0;
    environment.rewind();
    while (environment.next() != nullptr) ++count;
    while (environ[given] != nullptr) ++given;
    EXPECT_EQ(given, count);
  }
  EXPECT_EQ(kErrno, errno);
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
  pthread_key_delete(exit_key);
}

TEST(OsHooks, NoMoreKeysIsNoCrash) {
  std::vector<unsigned> keys;
  unsigned key = 0;
  while (keys.size() < 5000 && os::create_exit_hook(&CountExit, &key)) keys.push_back(key);
  EXPECT_LT(keys.size(), 5000u);
  for (unsigned k : keys) pthread_key_delete(k);
}

std::atomic<int> prepared{0}, resumed{0}, reborn{0};

TEST(OsHooks, ForkIsTold) {
  os::set_fork_hooks([] { ++prepared; }, [] { ++resumed; }, [] { ++reborn; });
  const pid_t child = fork();
  if (child == 0) _exit(prepared * 100 + resumed * 10 + reborn);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(101, WEXITSTATUS(status));
  EXPECT_EQ(1, prepared.load());
  EXPECT_EQ(1, resumed.load());
  EXPECT_EQ(0, reborn.load());
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

// Their callers hold locks.
TEST(OsCalls, AreNoPointsOfCancellation) {
  std::atomic<bool> came_through{false};
  std::thread([&] {
    pthread_cancel(pthread_self());
    os::container("");
    os::write_error("", 0);
    os::write_error("\n", 1);
    came_through = true;
    pthread_testcancel();
    came_through = false;
  }).join();
  EXPECT_TRUE(came_through);
}

}  // namespace
}  // namespace hz_test
