// SPDX-License-Identifier: Apache-2.0
//
// Programs that restrict themselves after their start: every path of the heap under a filter that kills the
// process for any system call which doc/life.md does not list for it, and under filters that refuse one call.
// The lists are read from that page, so page and code cannot drift apart.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <fcntl.h>
#include <sched.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "life/scene.hpp"
#include "stress/blocks.hpp"
#include "support/rss.hpp"
#include "support/seccomp.hpp"

namespace hz_test {
namespace {

constexpr std::size_t kPageBytes = 4096;

// --- what a program does with its memory; in a scene

void Touch(void* block, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(block);
  for (std::size_t at = 0; at < size; at += kPageBytes)
    bytes[at] = static_cast<unsigned char>(at / kPageBytes + 1);
}
bool Touched(const void* block, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (std::size_t at = 0; at < size; at += kPageBytes)
    if (bytes[at] != static_cast<unsigned char>(at / kPageBytes + 1)) return false;
  return true;
}
void* Made(void* block) {
  Require(block != nullptr, "there is memory");
  return block;
}

void GrowAndFree(std::size_t size, std::size_t bytes) {
  std::vector<void*> blocks;
  for (std::size_t total = 0; total < bytes; total += size) {
    blocks.push_back(Made(api::Malloc(size)));
    Touch(blocks.back(), size);
  }
  for (void* block : blocks) {
    Require(Touched(block, size), "contents stay");
    api::Free(block);
  }
}

// Something behind the block each time, so that it has to move.
void MoveHugeBlocks(std::size_t most) {
  std::size_t size = 3 * kMiB;
  void* block = Made(api::Malloc(size));
  Touch(block, size);
  while (size < most) {
    void* behind = Made(api::Malloc(2 * kMiB));
    const std::size_t next = size + size / 2;
    block = Made(api::Realloc(block, next));
    Require(Touched(block, size), "realloc keeps contents");
    Touch(block, next);
    size = next;
    api::Free(behind);
  }
  block = Made(api::Realloc(block, kMiB));
  Require(Touched(block, kMiB), "a smaller block keeps contents");
  api::Free(block);
}

void ClearAndAlign() {
  for (const std::size_t size : {100u, 5000u, 200'000u, 6'000'000u}) {
    for (int round = 0; round < 2; ++round) {
      auto* block = static_cast<unsigned char*>(Made(api::Calloc(1, size)));
      for (std::size_t at = 0; at < size; ++at) Require(block[at] == 0, "calloc clears what was used before");
      Touch(block, size);
      api::Free(block);
    }
  }
  for (const std::size_t alignment : {64u, 4096u, 65'536u, 4u << 20}) {
    void* block = Made(api::AlignedAlloc(alignment, 300'000));
    Require(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "aligned");
    Touch(block, 300'000);
    api::Free(block);
  }
}

// More sizes than a cache has room for: bins ask for more in vain, all the time, and the cache's budget
// adapts.
void TurnOver(unsigned seed, std::size_t rounds) {
  Random random(seed);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < 4000; ++i) {
      const std::size_t size = LogSize(random, 15);
      blocks.push_back(Made(api::Malloc(size)));
      *static_cast<unsigned char*>(blocks.back()) = 1;
    }
    for (void* block : blocks) api::Free(block);
  }
}

// Threads that were there before the filter, and are born for the heap, contend and end under it.
class Crew {
 public:
  static constexpr int kMost = 3;

  // Where there can be no threads, fewer.
  void Start() {
    for (pthread_t& thread : threads_)
      if (pthread_create(&thread, nullptr, &Run, this) == 0) ++count_;
    while (started_.load() != count_) usleep(1000);  // with all that the C library does for a thread
  }
  void Work(int blocks) {
    blocks_ = blocks;
    go_.store(true);
  }
  void Join() {
    for (int i = 0; i < count_; ++i) pthread_join(threads_[i], nullptr);
    for (std::atomic<void*>& place : places_) api::Free(place.exchange(nullptr));
  }
  int count() const { return count_; }

 private:
  static void* Run(void* crew) {
    static_cast<Crew*>(crew)->Run();
    return nullptr;
  }
  // Most blocks are freed by whom did not make them.
  void Run() {
    const timespec moment = {0, 1'000'000};
    started_.fetch_add(1);
    while (!go_.load()) nanosleep(&moment, nullptr);
    Random random(static_cast<unsigned>(number_.fetch_add(1)));
    for (int i = 0; i < blocks_; ++i) {
      const std::size_t size = LogSize(random, i % 500 == 0 ? 18 : 11);
      auto* block = static_cast<unsigned char*>(Made(api::Malloc(size)));
      *block = 1;
      api::Free(places_[Below(random, kPlaces)].exchange(block));
    }
    TurnOver(7, static_cast<std::size_t>(blocks_) / 10'000);
  }

  static constexpr unsigned kPlaces = 512;
  pthread_t threads_[kMost] = {};
  int count_ = 0, blocks_ = 0;
  std::atomic<int> started_{0};
  std::atomic<bool> go_{false};
  std::atomic<int> number_{1};
  std::atomic<void*> places_[kPlaces] = {};
};

void WorkAlone(std::size_t bytes) {
  for (const std::size_t size : {100u, 5000u, 100'000u, 3'000'000u}) GrowAndFree(size, bytes);
  MoveHugeBlocks(bytes);
  ClearAndAlign();
  TurnOver(5, bytes / (3 * kMiB));
  api::Trim();
  GrowAndFree(1000, bytes / 4);
}

constexpr std::size_t kMuch = 68 * kMiB, kLittle = 6 * kMiB;

// --- filters; in a scene

std::string Told(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

void KillForAllBut(const std::vector<std::string>& names) {
  SyscallFilter filter(SECCOMP_RET_KILL_PROCESS);
  for (const std::string& name : names) filter.Decide(CallNumber(name), SECCOMP_RET_ALLOW);
  Require(filter.Install(), "a filter");
}

// How many threads there are, without a call that opens anything.
class Tasks {
 public:
  Tasks() : folder_(open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    Require(folder_ >= 0, "a folder");
  }
  int Count() const {
    int count = 0;
    lseek(folder_, 0, SEEK_SET);
    alignas(8) char entries[4096];
    for (long got = 0; (got = syscall(SYS_getdents64, folder_, entries, sizeof entries)) > 0;) {
      for (long at = 0; at < got; at += *reinterpret_cast<unsigned short*>(entries + at + 16)) ++count;
    }
    return count - 2;  // "." and ".."
  }
  // Within ten seconds.
  bool Become(int wanted) const {
    const timespec moment = {0, 10'000'000};
    for (int i = 0; i < 1000; ++i) {
      if (Count() == wanted) return true;
      nanosleep(&moment, nullptr);
    }
    return false;
  }

 private:
  int folder_;
};

const Scene restricted("Restricted", [] {
  const bool purger = Told("HZ_TEST_PURGER") != "";
  const bool before = Told("HZ_TEST_PURGER") == "before";
  const Tasks tasks;
  Crew crew;
  std::vector<void*> held;
  crew.Start();
  Require(crew.count() == Crew::kMost, "threads");
  const int with_purger = 1 + Crew::kMost + 1;
  if (before) {
    // Another thread that allocates, and a heap that is worth it.
    pthread_t other;
    Require(pthread_create(
                &other, nullptr,
                [](void*) -> void* {
                  TurnOver(3, 1);
                  usleep(300'000);
                  return nullptr;
                },
                nullptr) == 0,
            "a thread");
    usleep(50'000);
    for (int i = 0; i < 32; ++i) {
      held.push_back(Made(api::Malloc(kMiB)));
      Touch(held.back(), kMiB);
    }
    pthread_join(other, nullptr);
    Require(tasks.Become(with_purger), "a purger, before the filter");
  }
  KillForAllBut(Words(Told("HZ_TEST_CALLS")));
  crew.Work(100'000);
  WorkAlone(kMuch);
  if (purger && !before) {
    // While the crew may still be at work, or just as it ended: it is started by whoever allocates next.
    for (int i = 0; i < 8; ++i) held.push_back(Made(api::Malloc(kMiB)));
  }
  for (void* block : held) api::Free(block);
  crew.Join();
  api::Trim();
});

const Scene bites("Bites", [] {
  KillForAllBut(Words(Told("HZ_TEST_CALLS")));
  WorkAlone(kLittle);
  syscall(CallNumber(Told("HZ_TEST_FORBIDDEN")), 0, 0, 0, 0, 0, 0);
});

// Long enough for control's thread to look around, and to write what is new.
const Scene controlled("Controlled", [] {
  KillForAllBut(Words(Told("HZ_TEST_CALLS")));
  WorkAlone(kLittle);
  const timespec time = {1, 300'000'000};
  nanosleep(&time, nullptr);
});

void BecomeScene(const char* name) {
  setenv("HZ_TEST_SCENE", name, 1);
  char* const arguments[] = {const_cast<char*>("/proc/self/exe"), nullptr};
  execv(arguments[0], arguments);
}
const Scene nothing("Nothing", [] {});
const Scene starts("Starts", [] {
  KillForAllBut(Words(Told("HZ_TEST_CALLS")));
  BecomeScene("Nothing");
});

const Scene refused("Refused", [] {
  SyscallFilter filter(SECCOMP_RET_ALLOW);
  const auto error = static_cast<unsigned>(std::stoi(Told("HZ_TEST_ERRNO")));
  filter.Decide(CallNumber(Told("HZ_TEST_REFUSED")), SECCOMP_RET_ERRNO | error);
  Require(filter.Install(), "a filter");
  BecomeScene("WorksAllTheSame");
});
const Scene works("WorksAllTheSame", [] {
  errno = 0;
  const long answer = syscall(CallNumber(Told("HZ_TEST_REFUSED")), 0, 0, 0, 0, 0, 0);
  Require(answer == -1 && errno == std::stoi(Told("HZ_TEST_ERRNO")), "the call is refused");
  Crew crew;
  crew.Start();
  crew.Work(10'000);
  WorkAlone(kLittle);
  crew.Join();
});

// As OpenSSH's sandbox for what has not logged in yet (sandbox-seccomp-filter.c), the stricter one that looks
// at madvise.
const Scene openssh("OpenSsh", [] {
  SyscallFilter filter(SECCOMP_RET_KILL_PROCESS);
  for (const char* name : {"open", "openat", "fstat", "newfstatat"})
    if (CallNumber(name) >= 0) filter.Decide(CallNumber(name), SECCOMP_RET_ERRNO | EACCES);
  for (const char* name :
       {"brk",      "clock_gettime", "clock_nanosleep", "close",  "exit",      "exit_group",
        "futex",    "geteuid",       "getpgid",         "getpid", "getuid",    "getrandom",
        "mremap",   "gettimeofday",  "munmap",          "gettid", "nanosleep", "poll",
        "pselect6", "read",          "rt_sigprocmask",  "select", "shutdown",  "time",
        "write"})
    if (CallNumber(name) >= 0) filter.Decide(CallNumber(name), SECCOMP_RET_ALLOW);
  constexpr unsigned kBeyond = ~static_cast<unsigned>(PROT_READ | PROT_WRITE);
  filter.DecideWhere(SYS_mmap, 2, kBeyond, 0, SECCOMP_RET_ALLOW);
  filter.DecideWhere(SYS_mprotect, 2, kBeyond, 0, SECCOMP_RET_ALLOW);
  for (const int advice :
       {MADV_NORMAL, MADV_FREE, MADV_DONTNEED, MADV_DONTFORK, MADV_DONTDUMP, MADV_WIPEONFORK})
    filter.DecideWhere(SYS_madvise, 2, ~0U, static_cast<unsigned>(advice), SECCOMP_RET_ALLOW);
  filter.Decide(SYS_madvise, SECCOMP_RET_ERRNO | EINVAL);
  Require(filter.Install(), "a filter");
  WorkAlone(kMuch);
});

// --- the page

struct Path {
  std::string name, calls;
};

// What musl calls in place of a call on the page, or behind it, as the page says.
std::string OnMusl(const std::string& calls) {
  std::string more;
  for (const std::string& name : Words(calls)) {
    if (name == "openat") more += CallNumber("open") < 0 ? "fcntl " : "open fcntl ";
    if (name == "tgkill") more += "tkill ";
  }
  return more;
}

// The rows of the table: the words in backquotes that are calls. What follows "unless" and "with" is for
// others.
std::vector<Path> Page() {
  std::vector<Path> paths;
  std::ifstream page(HZ_TEST_PAGE_OF_CALLS);
  bool here = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("## ", 0) == 0) here = line == "## System calls";
    if (!here || line.rfind("| ", 0) != 0 || line.rfind("| path", 0) == 0) continue;
    const std::size_t end = line.find(" | ", 2);
    Path path = {line.substr(2, end - 2), ""};
    for (std::size_t at = line.find('`', end); at != std::string::npos;) {
      const std::size_t close = line.find('`', at + 1);
      const std::string word = line.substr(at + 1, close - at - 1);
      if (word.rfind("HZ_", 0) != 0) path.calls += word + " ";
      at = line.find('`', close + 1);
    }
    if (!kGlibc) path.calls += OnMusl(path.calls);
    paths.push_back(path);
  }
  return paths;
}
std::string CallsOf(const std::string& beginning) {
  for (const Path& path : Page())
    if (path.name.rfind(beginning, 0) == 0) return path.calls;
  ADD_FAILURE() << "no row on the page: " << beginning;
  return "";
}
std::string ForMemory() { return CallsOf("growth") + CallsOf("free") + CallsOf("a thread's birth"); }
std::string ForThePurger() { return CallsOf("the purger's start") + CallsOf("the purger, and"); }

// What the scenes call, and the C library for them: to wait, to end threads and the process, to count
// threads.
constexpr const char* kOwn =
    " write exit exit_group nanosleep clock_nanosleep rt_sigprocmask rt_sigreturn getdents64 lseek ";
// The loader, the C library when it is initialised, and GoogleTest, which asks where it is.
constexpr const char* kLoader =
    " execve brk arch_prctl set_tid_address set_robust_list rseq mprotect mmap munmap openat read pread64 "
    "close "
    "newfstatat fstat access prlimit64 getrandom futex readlinkat getcwd ";
// musl's loader and stdio.
constexpr const char* kMuslLoader = " open fcntl readlink writev ioctl ";

void ExpectServed(const ChildResult& result) {
  EXPECT_NE(SIGSYS, result.signal) << "killed for a call that is not on the page";
  EXPECT_EQ(0, result.exit_code) << "signal " << result.signal << "\n" << result.out << result.err;
  EXPECT_EQ("", result.err);
}
ChildResult Restricted(std::string calls, std::vector<Setting> settings) {
  settings.emplace_back("HZ_TEST_CALLS", std::move(calls));
  return RunScene("Restricted", settings);
}

TEST(Restrictions, ThePageHasEveryPathAndOnlyKnownCalls) {
  EXPECT_EQ(12U, Page().size());
  for (const Path& path : Page()) {
    EXPECT_FALSE(Words(path.calls).empty()) << path.name;
    for (const std::string& name : Words(path.calls))
      EXPECT_GE(CallNumber(name), 0) << path.name << ": " << name;
  }
  const std::vector<std::string> promised = {"mmap",   "munmap", "mprotect",    "madvise",
                                             "mremap", "futex",  "sched_yield", "getcpu"};
  for (const std::string& name : Words(ForMemory()))
    EXPECT_EQ(1, std::count(promised.begin(), promised.end(), name))
        << name << ": nothing but memory, after the start";
}

TEST(Restrictions, TheFilterBites) {
  for (const char* name : {"getuid", "sysinfo", "membarrier", "clock_gettime"}) {
    const std::vector<Setting> settings = {
        {"HZ_TEST_CALLS", ForMemory() + kOwn}, {"HZ_TEST_FORBIDDEN", name}, {"HZ_BACKGROUND", "0"}};
    EXPECT_EQ(SIGSYS, RunScene("Bites", settings).signal) << name;
  }
  const std::vector<Setting> settings = {
      {"HZ_TEST_CALLS", ForMemory() + kOwn}, {"HZ_TEST_FORBIDDEN", "lseek"}, {"HZ_BACKGROUND", "0"}};
  EXPECT_EQ(0, RunScene("Bites", settings).signal) << "what is allowed does not";
}

TEST(Restrictions, TheStart) {
  const std::string calls = kLoader + CallsOf("start") + kOwn + (kGlibc ? "" : kMuslLoader);
  ExpectServed(RunScene("Starts", {{"HZ_TEST_CALLS", calls}}));
  std::string without;
  for (const std::string& name : Words(calls))
    if (name != "membarrier" && (name != "fcntl" || !kGlibc) && name != "rt_sigaction") without += name + " ";
  ExpectServed(RunScene("Starts", {{"HZ_TEST_CALLS", without}, {"HZ_BACKGROUND", "0"}}));
}

TEST(Restrictions, WithoutBackground) {
  ExpectServed(Restricted(ForMemory() + kOwn, {{"HZ_BACKGROUND", "0"}}));
  ExpectServed(Restricted(ForMemory() + kOwn, {{"HZ_BACKGROUND", "0"}, {"HZ_THREAD_CACHE", "4K"}}));
}

// Where the kernel has names; a kernel that has none was asked at the start.
TEST(Restrictions, NamedMappings) {
  ExpectServed(RunScene("Bites", {{"HZ_TEST_CALLS", ForMemory() + "prctl " + kOwn},
                                  {"HZ_TEST_FORBIDDEN", "lseek"},
                                  {"HZ_BACKGROUND", "0"},
                                  {"HZ_NAME_MAPPINGS", "1"}}));
}

TEST(Restrictions, APurgerThatRunsAlready) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  ExpectServed(Restricted(ForMemory() + ForThePurger() + kOwn, {{"HZ_TEST_PURGER", "before"}}));
}

TEST(Restrictions, APurgerThatStartsUnderTheFilter) {
  if (IsTiny()) GTEST_SKIP() << "it has no purger";
  ExpectServed(Restricted(ForMemory() + ForThePurger() + kOwn, {{"HZ_TEST_PURGER", "later"}}));
  // Without the rows of the purger it is killed: so one did start.
  EXPECT_EQ(SIGSYS, Restricted(ForMemory() + kOwn, {{"HZ_TEST_PURGER", "later"}}).signal);
}

// Its thread was started before the filter.
TEST(Restrictions, Control) {
  const std::string folder = ::testing::TempDir();
  const std::vector<Setting> settings = {{"HZ_CONTROL", "1"}, {"HZ_STATS_DIR", folder}};
  const auto with = [&](std::string calls) {
    std::vector<Setting> all = settings;
    all.emplace_back("HZ_TEST_CALLS", std::move(calls));
    return RunScene("Controlled", all);
  };
  ExpectServed(with(ForMemory() + ForThePurger() + CallsOf("control") + kOwn));
  EXPECT_EQ(SIGSYS, with(ForMemory() + ForThePurger() + kOwn).signal) << "it does ask for more";
}
TEST(Restrictions, ControlThatIsRefused) {
  for (const char* name : {"close_range", "socket"}) {
    const ChildResult result =
        RunScene("Refused",
                 {{"HZ_TEST_REFUSED", name}, {"HZ_TEST_ERRNO", std::to_string(EPERM)}, {"HZ_CONTROL", "1"}});
    EXPECT_EQ(0, result.exit_code) << name;
    EXPECT_EQ("hz: warning: HZ_CONTROL=1: the system refuses what thread hz-control needs, error " +
                  std::to_string(EPERM) + "\n",
              result.err)
        << name;
  }
}

TEST(Restrictions, SandboxOfOpenSsh) { ExpectServed(RunScene("OpenSsh", {{"HZ_BACKGROUND", "0"}})); }

TEST(Restrictions, OneCallRefused) {
  for (const char* name :
       {"membarrier", "clone", "clone3", "madvise", "mremap", "getcpu", "sched_yield", "sysinfo",
        "sched_getaffinity", "sched_setaffinity", "sched_setscheduler", "prlimit64", "prctl",
        "rt_sigprocmask", "faccessat", "getpid", "gettid", "fcntl"}) {
    if (CallNumber(name) < 0) continue;
    // The C library and we tell "not at all" from "not you" in some.
    const bool tells =
        std::string(name) == "clone3" || std::string(name) == "membarrier" || std::string(name) == "mremap";
    for (const int error : {EPERM, ENOSYS}) {
      if (error == ENOSYS && !tells) continue;
      SCOPED_TRACE(std::string(name) + ": " + std::to_string(error));
      ExpectServed(
          RunScene("Refused", {{"HZ_TEST_REFUSED", name}, {"HZ_TEST_ERRNO", std::to_string(error)}}));
    }
  }
}

}  // namespace
}  // namespace hz_test
