// SPDX-License-Identifier: Apache-2.0
//
// The operating system as we see it, where it is of POSIX: what os_test.cpp cannot ask of every system.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "os/os.hpp"
#include "support/capture.hpp"
#include "support/fork.hpp"
#include "support/sanitizers.hpp"
#include "unit/again.hpp"
#include "unit/region.hpp"

extern char** environ;

namespace hz_test {
namespace {

namespace os = hz::os;
constexpr int kErrno = 12345;

TEST(OsPosixMemory, PlacesThatAreTakenCannotBeHad) {
  if (kEmulated) GTEST_SKIP() << "an emulator takes no advice";
  Region region(2 * hz::kGranule);
  errno = kErrno;
  EXPECT_FALSE(os::may_have(region.bytes()));
  EXPECT_FALSE(os::may_have(reinterpret_cast<void*>(std::uintptr_t{1} << 62)));
  os::unmap(region.bytes() + hz::kGranule, hz::kGranule);
  EXPECT_EQ(!kThreadSanitizer, os::may_have(region.bytes() + hz::kGranule)) << "it wants its places free";
  EXPECT_FALSE(os::is_mapped(region.bytes() + hz::kGranule, hz::kGranule)) << "only asked";
  EXPECT_EQ(kErrno, errno);
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

TEST(OsPosixMemory, HugePagesAreAskedForOrForbiddenOrLeftToTheSystem) {
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

// Else khugepaged would bring back what was purged of a huge page.
TEST(OsPosixMemory, AHugePageOfWhichAPartWasPurgedStaysInPieces) {
  if (kEmulated) GTEST_SKIP() << "an emulator takes no advice";
  if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) GTEST_SKIP() << "this kernel has none";
  constexpr std::size_t kHuge = 2 * hz::kMiB;
  os::prefer_huge_pages(os::HugePages::kAlways);
  auto* const at = static_cast<std::byte*>(os::reserve(6 * kHuge, kHuge));
  ASSERT_NE(nullptr, at);
  ASSERT_TRUE(os::commit(at, 6 * kHuge));
  const auto pieces = [&] {
    std::string found;
    for (unsigned i = 0; i < 6; ++i)
      found += MappingFlags(at + i * kHuge).find(" nh ") != std::string::npos ? 'x' : '-';
    return found;
  };
  const auto purged = [&](std::size_t from, std::size_t to) {
    EXPECT_TRUE(os::purge(at + from, to - from));
    return pieces();
  };
  EXPECT_EQ("------", pieces());
  EXPECT_EQ("------", purged(kHuge, 3 * kHuge)) << "whole ones";
  EXPECT_EQ("-x----", purged(kHuge + hz::kGranule, 2 * kHuge - hz::kGranule)) << "inside of one";
  EXPECT_EQ("-x-x--", purged(3 * kHuge, 3 * kHuge + hz::kGranule)) << "its begin";
  EXPECT_EQ("-x-xx-", purged(5 * kHuge - hz::kGranule, 5 * kHuge)) << "its end";
  EXPECT_EQ("xx-xx-", purged(kHuge - hz::kGranule, kHuge));
  EXPECT_EQ("xx-xxx", purged(5 * kHuge, 5 * kHuge + hz::kGranule));
  EXPECT_EQ("xx--xx", purged(2 * kHuge, 4 * kHuge)) << "whole once more";
  EXPECT_EQ("x---xx", purged(kHuge - hz::kGranule, 4 * kHuge + hz::kGranule))
      << "both ends, and what is between";
  os::prefer_huge_pages(os::HugePages::kNever);
  EXPECT_EQ("x---xx", purged(kHuge + hz::kGranule, 2 * kHuge)) << "where there are no huge pages";
  os::prefer_huge_pages(os::HugePages::kAsTheSystemSays);
  os::unmap(at, 6 * kHuge);
}

TEST(OsPosixMachine, KnowsItsMemory) {
  EXPECT_EQ(
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
      os::memory_bytes());
}

TEST(OsPosixMachine, KnowsTheLimitOfAddressSpace) {
  if (kEmulated) GTEST_SKIP() << "an emulator keeps no limit";
  rlimit before = {};
  ASSERT_EQ(0, getrlimit(RLIMIT_AS, &before));
  EXPECT_EQ(before.rlim_cur == RLIM_INFINITY ? SIZE_MAX : before.rlim_cur, os::address_space_limit());
  const rlimit limited = {rlim_t{1} << 46, before.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_AS, &limited));
  EXPECT_EQ(std::size_t{1} << 46, os::address_space_limit());
  setrlimit(RLIMIT_AS, &before);
}

TEST(OsPosixEnvironment, AValueMayBeEmpty) {
  setenv("HZ_UNIT_TEST", "", 1);
  EXPECT_STREQ("", os::Environment().value_of("HZ_UNIT_TEST"));
}

TEST(OsPosixProcess, TheFirstThreadHasTheNumberOfTheProcess) {
  EXPECT_EQ(static_cast<std::uint64_t>(getpid()), os::thread_id());
}

TEST(OsPosixProcess, NobodyListeningIsNoError) {
  const int saved = dup(2);
  close(2);
  errno = kErrno;
  os::write_error("lost", 4);
  EXPECT_EQ(kErrno, errno);
  dup2(saved, 2);
  close(saved);
}

// The reader of a pipe that is full, when a signal comes.
int late_reader = -1;
void ReadLate(int /*signal*/) {
  static char bytes[65536];
  const int saved = errno;
  while (read(late_reader, bytes, sizeof bytes) > 0) continue;
  errno = saved;
}

TEST(OsPosixProcess, AMessageThatASignalInterruptsIsWritten) {
  if (kThreadSanitizer) GTEST_SKIP() << "it runs no handler while a call waits that it does not know";
  int ends[2];
  ASSERT_EQ(0, pipe2(ends, O_CLOEXEC | O_NONBLOCK));
  late_reader = ends[0];
  const std::string page(4096, '.');
  while (write(ends[1], page.data(), page.size()) > 0) continue;
  ASSERT_EQ(0, fcntl(ends[1], F_SETFL, 0));  // from now on who writes waits
  struct sigaction late = {};
  struct sigaction before = {};
  late.sa_handler = &ReadLate;  // and the call that it interrupts is not begun again
  ASSERT_EQ(0, sigaction(SIGALRM, &late, &before));
  const int saved = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  const itimerval soon = {.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 50000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  errno = kErrno;
  os::write_error("late\n", 5);
  EXPECT_EQ(kErrno, errno);
  dup2(saved, STDERR_FILENO);
  close(saved);
  sigaction(SIGALRM, &before, nullptr);
  char text[16] = {};
  EXPECT_EQ(5, read(ends[0], text, sizeof text));
  EXPECT_STREQ("late\n", text);
  close(ends[0]);
  close(ends[1]);
}

// A program may close its stderr before the last line is written.
TEST(OsPosixProcess, KeepsTheErrorStreamOutOfTheWay) {
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

TEST(OsPosixEnvironment, TellsEveryVariableAgainAfterRewind) {
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
TEST(OsPosixEnvironment, IsFoundBeforeTheLibraryHasIt) {
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

TEST(OsPosixHooks, NoMoreKeysIsNoCrash) {
  std::vector<unsigned> keys;
  unsigned key = 0;
  while (keys.size() < 5000 && os::create_exit_hook([](void*) {}, &key)) keys.push_back(key);
  EXPECT_LT(keys.size(), 5000u);
  for (unsigned k : keys) pthread_key_delete(k);
}

std::atomic<int> prepared{0}, resumed{0}, reborn{0};

TEST(OsPosixHooks, ForkIsTold) {
  os::set_fork_hooks([] { ++prepared; }, [] { ++resumed; }, [] { ++reborn; });
  EXPECT_EQ(101, InAFork([] { return prepared * 100 + resumed * 10 + reborn; }));
  EXPECT_EQ(1, prepared.load());
  EXPECT_EQ(1, resumed.load());
  EXPECT_EQ(0, reborn.load());
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
