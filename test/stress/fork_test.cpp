// SPDX-License-Identifier: Apache-2.0
//
// A process whose threads are busy in the heap forks again and again; the child must find the heap whole: it
// allocates, frees blocks of siblings that it does not have, starts threads of its own, and ends.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "returns/tasks.hpp"
#include "stress/blocks.hpp"
#include "stress/limited.hpp"
#include "stress/threads.hpp"
#include "support/gnu_malloc.hpp"

namespace hz_test {
namespace {

constexpr unsigned kSiblings = 8;
constexpr unsigned kPinned = 100;
constexpr unsigned kPassed = 50;  // at a time
// Every child looks at the heap, allocates and starts threads; one in so many does ten times as much of it.
constexpr unsigned kThorough = 10;

// No word of gtest's: in the child nobody reads it.
bool Churn(std::uint64_t seed, unsigned count, unsigned bits) {
  constexpr std::size_t kLive = 64;
  Random random(seed);
  Block live[kLive];
  bool sound = true;
  for (unsigned i = 0; i < count; ++i) {
    Block& block = live[Below(random, kLive)];
    sound = sound && Intact(block);
    api::Free(block.at);
    block.size = LogSize(random, bits);
    block.seed = seed + i;
    block.at = api::Malloc(block.size);
    if (block.at == nullptr) return false;
    FillPattern(block.at, block.size, block.seed);
  }
  for (const Block& block : live) {
    sound = sound && Intact(block);
    api::Free(block.at);
  }
  return sound;
}

class Storm {
 public:
  Storm() : ready_(kSiblings + 1) {
    for (unsigned i = 0; i < kSiblings; ++i) {
      siblings_.push_back(std::make_unique<Thread>([this, i] { Sibling(i); }));
    }
    ready_.Wait();
    if (kAddressSanitizer || kEmulated) AwaitPurger();
  }
  ~Storm() {
    stop_ = true;
    siblings_.clear();
    for (const Block& block : worth_) CheckAndFree(block);
    for (auto& blocks : pinned_) {
      for (const Block& block : blocks) CheckAndFree(block);
    }
    for (const Block& block : passed_.TakeAll()) CheckAndFree(block);
  }

  // Forks; returns the child's status.
  int Fork(unsigned number) {
    const pid_t pid = fork();
    if (pid == 0) _exit(Child(number));
    int status = -1;
    EXPECT_EQ(pid, waitpid(pid, &status, 0));
    return status;
  }

 private:
  void Sibling(unsigned i) {
    // Whoever forks goes first, or one fork would wait for eight time slices. Who is held up is in the
    // heap all the same.
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
    Random random(Seed() + i);
    for (Block& block : pinned_[i]) block = MakeBlock(LogSize(random, 12));
    ready_.Wait();
    while (!stop_) {
      EXPECT_TRUE(Churn(random(), 200, 11));
      for (unsigned n = 0; n < kPassed; ++n) passed_.Put(MakeBlock(LogSize(random, 10)));
      Block block;
      for (unsigned n = 0; n < kPassed && passed_.Take(random, block); ++n) CheckAndFree(block);
    }
  }

  // A thread that begins uses the sanitizer's own allocator (see passed_), or QEMU's lock for that, which a
  // fork does not release. So the purger, too, begins before
  // the first fork, and stays: the heap holds more than a purger is worth. A line without one is not waited
  // for.
  void AwaitPurger() {
    constexpr std::size_t kRun = std::size_t{64} << 10, kRuns = 80;
    constexpr int kPatience = 2000;  // milliseconds
    while (worth_.size() < kRuns) worth_.push_back(MakeBlock(kRun));
    for (int i = 0; i < kPatience && Purger() == 0; ++i) usleep(1000);
  }

  static constexpr int kNice = 15;
  static constexpr int kSound = 0, kDamaged = 1, kNoThread = 2;

  // What the siblings pinned is nobody else's; what they were passing on is not touched.
  int Child(unsigned number) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(100);
    const bool thorough = number % kThorough == 0;
    const unsigned step = thorough ? 2 : 20;
    for (unsigned i = 0; i < kSiblings; ++i) {
      for (unsigned n = number / kThorough % step; n < kPinned; n += step) {
        if (!Intact(pinned_[i][n])) return kDamaged;
        api::Free(pinned_[i][n].at);
      }
    }
    if (!Churn(number, thorough ? 150 : 15, thorough ? 16 : 13)) return kDamaged;
    if (number % 64 == 0) api::Trim();
    if (number % 64 == 1 && !GrandchildIsSound(number)) return kDamaged;
    if (kThreadSanitizer) return kSound;  // it does not allow threads here
    return ChildThreads(number);
  }

  bool GrandchildIsSound(unsigned number) {
    const pid_t pid = fork();
    if (pid == 0) _exit(Churn(number, 100, 16) ? kSound : kDamaged);
    int status = -1;
    return waitpid(pid, &status, 0) == pid && status == 0;
  }

  int ChildThreads(unsigned number) {
    struct Work {
      std::uint64_t seed;
      unsigned count;
      bool sound;
    };
    const unsigned count = number % kThorough == 0 ? 150 : 15;
    Work work[2] = {{number, count, false}, {number + 1, count, false}};
    pthread_t threads[2];
    const auto run = [](void* data) -> void* {
      auto* own = static_cast<Work*>(data);
      own->sound = Churn(own->seed, own->count, 13);
      return nullptr;
    };
    for (int i = 0; i < 2; ++i) {
      if (pthread_create(&threads[i], nullptr, run, &work[i]) != 0) return kNoThread;
    }
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    return work[0].sound && work[1].sound ? kSound : kDamaged;
  }

  Barrier ready_;
  std::atomic<bool> stop_{false};
  Block pinned_[kSiblings][kPinned];
  // Of its full length from the start: a sanitizer has an allocator of its own, and a child whose parent
  // forked while somebody held its lock waits for ever.
  Exchange passed_{std::size_t{kSiblings} * kPassed};
  std::vector<Block> worth_;
  std::vector<std::unique_ptr<Thread>> siblings_;
};

TEST(ForkStorm, ChildrenFindTheHeapWhole) {
  const Watchdog watchdog(Long() ? 3000 : 240);
  const unsigned forks = Long() ? 10000 : Rounds(kHeapIsOurs ? 500 : 2000, 100);
  {
    Storm storm;
    for (unsigned number = 0; number < forks; ++number) {
      const int status = storm.Fork(number);
      ASSERT_EQ(0, status) << "child " << number
                           << (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? " hung" : "");
      ASSERT_TRUE(Churn(number, 20, 12));
    }
  }
  ExpectNothingLost();
}

// Handlers of others around a fork may allocate, whether they run before the heap's own or after.
std::atomic<int> handled{0};
bool handlers_allocate = false;

// A huge block always goes past the thread's cache.
void Handler() {
  if (!handlers_allocate) return;
  void* huge = api::Malloc(std::size_t{8} << 20);
  const bool sound = huge != nullptr && Churn(1, 300, 16);
  api::Free(huge);
  if (sound) ++handled;
}

const bool registered_early = pthread_atfork(&Handler, &Handler, &Handler) == 0;

TEST(ForkHandlers, MayAllocate) {
  const Watchdog watchdog(60);
  ASSERT_TRUE(registered_early);
  ASSERT_TRUE(Churn(1, 10, 10));
  ASSERT_EQ(0, pthread_atfork(&Handler, &Handler, &Handler));
  handlers_allocate = true;
  const pid_t pid = fork();
  if (pid == 0) _exit(handled == 4 ? 0 : 1);
  handlers_allocate = false;
  int status = -1;
  EXPECT_EQ(pid, waitpid(pid, &status, 0));
  EXPECT_EQ(0, status);
  EXPECT_EQ(4, handled);
}

#ifdef HZ_TEST_DIRECT
// Registered before the heap's hooks, so that it runs while the heap's are at work.
std::size_t grown_by_handler = 0;
void* from_handler = nullptr;
void GrowInHandler() {
  if (grown_by_handler != 0) from_handler = api::Malloc(grown_by_handler);
}
__attribute__((constructor(101))) void RegisterEarly() { pthread_atfork(&GrowInHandler, nullptr, nullptr); }

// A fork handler cannot take caches back itself, but what it owes is not forgotten.
TEST(ForkHandlers, PassTheSoftLimitAndLeaveTheRecallToLaterCalls) {
  if (PurgesPromptly()) GTEST_SKIP() << "nothing much is cached";
  if (kThreadSanitizer) GTEST_SKIP() << "there is no barrier that takes a cache back";
  InProcessWith({{"HZ_LIMIT_SOFT", "24M"}, {"HZ_RETAIN", "1000"}, {"HZ_THREAD_CACHE", "64M"}}, [] {
    std::atomic<bool> caches{false}, stop{false};
    const Thread idle([&] {
      std::vector<void*> blocks(5000, nullptr);
      for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = api::Malloc(64 + i % 60 * 64);
      for (void* block : blocks) api::Free(block);
      caches = true;
      while (!stop) usleep(1000);
    });
    while (!caches) usleep(1000);
    grown_by_handler = 32 * kMiB;
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    grown_by_handler = 0;
    EXPECT_EQ(pid, waitpid(pid, nullptr, 0));
    EXPECT_NE(nullptr, from_handler);
    const std::uint64_t cached = HeapStats().bytes_cached;
    EXPECT_GT(cached, kMiB);
    api::Free(api::Malloc(320));  // a span has it, and the heap does not grow
    EXPECT_LT(HeapStats().bytes_cached, cached / 2);
    api::Free(from_handler);
    stop = true;
  });
}
#endif

#ifndef HZ_TEST_DIRECT
// Three threads that may wait for each other in a circle: one forks, and the C library locks its list of
// streams for that; one has that list and waits for a stream; one has the stream, reads a line, and waits for
// the heap. Every line of ours hangs in a second without lock_streams(). After glibc's bug 19431.
TEST(ForkStreams, AreReadWhileAllOfThemAreFlushed) {
  if (!kGlibc) GTEST_SKIP() << "this C library keeps its list to itself";
  if (kEmulated)
    GTEST_SKIP() << "QEMU forks while threads have locks of its own: one child in ten waits for one";
  const Watchdog watchdog(120);
  constexpr unsigned kReaders = 8, kForkers = 4;
  constexpr useconds_t kPause = 500;  // locks of the C library are not fair
  std::FILE* file = std::tmpfile();
  ASSERT_NE(nullptr, file);
  const std::string line = std::string(std::size_t{300} << 10, 'x') + '\n';  // what no thread caches
  ASSERT_EQ(1u, fwrite(line.data(), line.size(), 1, file));
  ASSERT_EQ(0, std::fflush(file));
  const std::string name = "/proc/self/fd/" + std::to_string(fileno(file));
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Thread>> others;
  for (unsigned i = 0; i < kReaders; ++i) {
    others.push_back(std::make_unique<Thread>([&] {
      std::FILE* stream = std::fopen(name.c_str(), "r");
      ASSERT_NE(nullptr, stream);
      while (!stop) {
        std::rewind(stream);
        char* read = nullptr;
        std::size_t length = 0;
        EXPECT_EQ(static_cast<ssize_t>(line.size()), getline(&read, &length, stream));
        std::free(read);
        usleep(kPause);
      }
      EXPECT_EQ(0, std::fclose(stream));
    }));
  }
  others.push_back(std::make_unique<Thread>([&] {
    for (; !stop; usleep(kPause)) EXPECT_EQ(0, std::fflush(nullptr));
  }));
  Together(kForkers, [](unsigned) {
    for (unsigned number = 0, forks = Rounds(40, 20); number < forks; ++number) {
      const pid_t pid = fork();
      if (pid == 0) _exit(std::fflush(nullptr) == 0 && Churn(number, 20, 18) ? 0 : 1);
      int status = -1;
      EXPECT_EQ(pid, waitpid(pid, &status, 0));
      EXPECT_EQ(0, status);
    }
  });
  stop = true;
  others.clear();
  std::fclose(file);
}

std::atomic<unsigned> forked{0};
void ForkInHandler(int) {
  const int kept = errno;
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  int status = -1;
  if (waitpid(pid, &status, 0) == pid && status == 0) ++forked;
  errno = kept;
}

// A signal handler forks that interrupted a thread in the heap, while others fork: who waits for that
// thread's lock has the list of streams, for which the handler waits.
TEST(ForkStreams, AreLeftToHandlersThatInterruptedTheHeap) {
  if (OnLibc()) GTEST_SKIP() << "it promises that to processes of one thread";
  if (!kGlibc || kEmulated) GTEST_SKIP() << "as above";
  const Watchdog watchdog(120);
  std::atomic<bool> stop{false};
  std::signal(SIGUSR1, &ForkInHandler);
  std::vector<std::unique_ptr<Thread>> others;
  for (unsigned i = 0; i < 2; ++i) {
    others.push_back(std::make_unique<Thread>([&] {
      while (!stop) std::free(std::malloc(std::size_t{5} << 20));  // huge: always behind a lock
    }));
  }
  for (unsigned i = 0; i < 2; ++i) {
    others.push_back(std::make_unique<Thread>([&] {
      for (; !stop; usleep(500)) {
        const pid_t pid = fork();
        if (pid == 0) _exit(Churn(i, 20, 18) ? 0 : 1);
        int status = -1;
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_EQ(0, status);
      }
    }));
  }
  for (unsigned i = 0, signals = Rounds(60, 30); i < signals; ++i) {
    pthread_kill(others[i % 2]->Handle(), SIGUSR1);
    usleep(20'000);
  }
  stop = true;
  others.clear();
  EXPECT_GT(forked, 0u);
}
#endif

}  // namespace
}  // namespace hz_test
