// SPDX-License-Identifier: Apache-2.0
//
// What the system charges a process for, writes into its core, and refuses it: the heap takes addresses as it
// uses them, so a small process is a small one by every count, and a limit holds whenever it is set.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "life/scene.hpp"
#include "returns/tasks.hpp"
#include "stress/blocks.hpp"
#include "support/line.hpp"
#include "support/rss.hpp"

namespace hz_test {
namespace {

constexpr std::size_t kPageBytes = 4096;

// Sums over the mappings that a system which never overcommits charges for: private and writable. Those that
// hold pages of the process's own are written into its core. Reads without allocating.
struct Charge {
  std::size_t bytes = 0, dumped = 0;
};
Charge Charged() {
  static char text[1 << 20];
  std::size_t length = 0;
  const int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  for (ssize_t got = 0; (got = read(fd, text + length, sizeof text - 1 - length)) > 0;)
    length += static_cast<std::size_t>(got);
  close(fd);
  text[length] = 0;
  Charge charge;
  bool counts = false;
  std::size_t size = 0;
  for (char* line = text; line != nullptr && *line != 0;
       line = std::strchr(line, '\n'), line += line != nullptr) {
    std::size_t begin = 0, end = 0, kib = 0;
    char access[5] = {};
    if (std::sscanf(line, "%zx-%zx %4s", &begin, &end, access) == 3) {
      counts = access[1] == 'w' && access[3] == 'p';
      size = end - begin;
      charge.bytes += counts ? size : 0;
    } else if (counts && std::sscanf(line, "Anonymous: %zu kB", &kib) == 1 && kib != 0) {
      charge.dumped += size;
    }
  }
  return charge;
}

// What a small program needs of a heap: every kind of block, two threads, nothing left.
void* SmallThread(void*) {
  for (std::size_t size = 1; size < 300000; size *= 3) api::Free(api::Malloc(size));
  return nullptr;
}
const Scene charge("Charge", [] {
  const Charge at_first = Charged();
  SmallThread(nullptr);
  const Charge small = Charged();
  std::printf("%zu %zu %zu %zu\n", at_first.bytes, at_first.dumped, small.bytes, small.dumped);
});

struct Numbers {
  std::size_t first = 0, first_dumped = 0, small = 0, small_dumped = 0;
};
Numbers NumbersOf(const ChildResult& result) {
  Numbers n;
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_EQ(4, std::sscanf(result.out.c_str(), "%zu %zu %zu %zu", &n.first, &n.first_dumped, &n.small,
                           &n.small_dumped))
      << result.out;
  return n;
}

TEST(Accounting, ASmallProcessIsChargedLittle) {
  const Numbers served = NumbersOf(RunScene("Charge"));
  const Numbers plain = NumbersOf(RunScene("Charge", {{"LD_PRELOAD", ""}, {"HZ_TEST_LINE", "libc"}}));
  // musl's heap maps next to nothing for so little, and hz7's first region alone is 4 MiB.
  const std::size_t more = 4 * kMiB + (kGlibc ? 0 : 64 * 1024);
  EXPECT_LE(served.first, plain.first + more);
  EXPECT_LE(served.first_dumped, plain.first_dumped + more);
  EXPECT_LE(served.small, plain.small + 6 * kMiB) << "with blocks of 300 KB";
  EXPECT_LE(served.small_dumped, plain.small_dumped + 6 * kMiB);
  std::printf("charged: %zu KiB (libc %zu), then %zu (%zu); in mappings that a core holds: %zu (%zu)\n",
              served.first / 1024, plain.first / 1024, served.small / 1024, plain.small / 1024,
              served.first_dumped / 1024, plain.first_dumped / 1024);
}

// The system's own sum of what it has promised to all processes, which is what vm.overcommit_memory=2 keeps
// below a limit. Others come and go meanwhile: one pair of looks of many that agrees is enough.
const Scene committed("Committed", [] {
  SmallThread(nullptr);
  char text[4096];
  ReadText("/proc/meminfo", text);
  std::size_t kib = 0;
  const char* const line = std::strstr(text, "Committed_AS:");
  if (line != nullptr) std::sscanf(line, "Committed_AS: %zu kB", &kib);
  std::printf("%zu\n", kib);
});
TEST(Accounting, TheSystemPromisesLittleMore) {
  std::ptrdiff_t least = PTRDIFF_MAX;
  for (int i = 0; i < 20 && least > 6 * 1024; ++i) {
    const std::ptrdiff_t plain =
        std::atol(RunScene("Committed", {{"LD_PRELOAD", ""}, {"HZ_TEST_LINE", "libc"}}).out.c_str());
    const std::ptrdiff_t served = std::atol(RunScene("Committed").out.c_str());
    ASSERT_TRUE(plain > 0 && served > 0);
    least = std::min(least, served - plain);
  }
  EXPECT_LE(least, 6 * 1024) << "KiB";
}

// The core itself, where the kernel writes it as a file of the working directory and nobody forbids it.
const Scene core("Core", [] {
  SmallThread(nullptr);
  std::abort();
});
int StatusOfSceneWithCore(const char* folder) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit most = {};
    getrlimit(RLIMIT_CORE, &most);
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_CORE, &most);
    setenv("HZ_TEST_SCENE", "Core", 1);
    if (chdir(folder) == 0) execl("/proc/self/exe", "life_scenes", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
TEST(Accounting, ACoreHoldsWhatIsUsed) {
  std::string pattern;
  std::getline(std::ifstream("/proc/sys/kernel/core_pattern"), pattern);
  if (pattern.empty() || pattern.find_first_of("|/%") != std::string::npos)
    GTEST_SKIP() << "cores go to " << pattern;
  char folder[] = "/tmp/hz-core-XXXXXX";
  ASSERT_NE(nullptr, mkdtemp(folder));
  const int status = StatusOfSceneWithCore(folder);
  std::size_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) bytes += file.file_size();
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  if (bytes == 0) GTEST_SKIP() << "no core may be written";
  EXPECT_LE(bytes, 10 * kMiB);
  std::printf("core: %zu KiB\n", bytes / 1024);
}

// --- limits that are set when the heap is there

void* NoWork(void*) { return nullptr; }
void RequireTheRestOfTheProcessWorks() {
  void* mapping = mmap(nullptr, 8 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Require(mapping != MAP_FAILED, "others may still map");
  munmap(mapping, 8 * kMiB);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kMiB);
  pthread_t thread;
  Require(pthread_create(&thread, &attributes, &NoWork, nullptr) == 0, "a thread may still start");
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Blocks of one size until there are none; all of them go again.
std::size_t FillUp(std::size_t size, std::size_t limit) {
  struct Link {
    Link* next;
  };
  Link* all = nullptr;
  std::size_t bytes = 0;
  errno = 0;
  while (auto* block = static_cast<Link*>(api::Malloc(size))) {
    std::memset(static_cast<void*>(block), 1, size < kPageBytes ? size : kPageBytes);
    block->next = all;
    all = block;
    bytes += size;
    Require(bytes <= limit, "the limit is felt");
  }
  Require(errno == ENOMEM, "what cannot be had is ENOMEM");
  while (all != nullptr) {
    Link* next = all->next;
    api::Free(all);
    all = next;
  }
  return bytes;
}

void LiveUnder(int resource) {
  const Watchdog watchdog;
  constexpr std::size_t kLimit = 256 * kMiB;
  SmallThread(nullptr);
  rlimit limit = {};
  getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit);
  limit.rlim_cur = kLimit;
  Require(setrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &limit) == 0, "a limit can be set");
  errno = 0;
  Require(api::Malloc(std::size_t{2} << 30) == nullptr && errno == ENOMEM, "2 GiB are too much");
  Require(api::Calloc(1, std::size_t{2} << 30) == nullptr, "zeroed as well");
  Require(api::AlignedAlloc(std::size_t{1} << 31, std::size_t{1} << 30) == nullptr, "and aligned");
  // Before the heap has used up what there is: addresses stay with it.
  RequireTheRestOfTheProcessWorks();
  std::size_t least = kLimit;
  for (const std::size_t size :
       {std::size_t{100}, std::size_t{5000}, std::size_t{100000}, 8 * kMiB, std::size_t{5000}}) {
    const std::size_t bytes = FillUp(size, kLimit);
    least = bytes < least ? bytes : least;
  }
  // What lies between fences takes more addresses.
  Require(OnLibc() || least > kLimit / (HasSeals() ? 4 : 2),
          "what was freed can be had again, in every size");
  std::printf("at least %zu MiB of %zu\n", least / kMiB, kLimit / kMiB);
}
const Scene late_address_space("LateAddressSpace", [] { LiveUnder(RLIMIT_AS); });
const Scene late_data("LateData", [] { LiveUnder(RLIMIT_DATA); });
TEST(Accounting, AddressSpaceMayBeLimitedLate) { ExpectScene("LateAddressSpace", 0); }
TEST(Accounting, DataMayBeLimitedLate) { ExpectScene("LateData", 0); }

// Everything that is mapped from now on is there at once: so it must not be more than is used.
const Scene locked("Locked", [] {
  const Watchdog watchdog;
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    std::printf("not allowed\n");
    return;
  }
  const std::size_t before = RssBytes();
  SmallThread(nullptr);
  void* block = api::Malloc(10 * kMiB);
  Require(block != nullptr, "memory can be had");
  Require(RssBytes() <= before + 32 * kMiB, "no more than what is used is locked");
  api::Free(block);
});
TEST(Accounting, AllMayBeLocked) { ExpectScene("Locked", 0); }

}  // namespace
}  // namespace hz_test
