// SPDX-License-Identifier: Apache-2.0
//
// Random calls of all of the interface against an oracle, with those features that the arguments name
// (pairs.py chooses them, and sets what comes from the environment): by preload, and by the direct API, where
// system calls fail, too.
//
//   pairs SEED MILLISECONDS FEATURE...
//
// A thread makes blocks, checks, resizes, hands over and frees them. Ends with 0, or says what was wrong and
// aborts. The oracle's memory is its own; only `refused` and `failing` may be told that there is no memory.
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "hakozuna/hakozuna.h"
#include "model/block.hpp"
#include "stress/scale.hpp"
#include "support/heap_api.hpp"
#include "support/sanitizers.hpp"
#ifdef HZ_TEST_FAILING
#include "fault/failing_calls.hpp"
#endif

#ifndef HZ_TEST_DIRECT
// The library that is preloaded has them.
#pragma weak hz_malloc
#pragma weak hz_realloc
#pragma weak hz_expand
#pragma weak hz_free
#pragma weak hz_free_sized
#pragma weak hz_free_aligned_sized
#pragma weak hz_owns
#pragma weak hz_defrag_hint
#pragma weak hz_check
#pragma weak hz_trim
#pragma weak hz_stats
#pragma weak hz_ctl
#pragma weak hz_line
#pragma weak hz_heap_new
#pragma weak hz_heap_malloc
#pragma weak hz_heap_calloc
#pragma weak hz_heap_aligned_alloc
#pragma weak hz_heap_realloc
#pragma weak hz_heap_delete
#pragma weak hz_heap_destroy
#pragma weak hz_heap_walk
#pragma weak hz_walk
#pragma weak hz_write_heap_profile
#endif

namespace hz_test {
namespace {

namespace features {
bool threads, forks, handlers, heaps, knobs, trims, sized, huge, aligned, operators, refused, failing,
    profiles;
}  // namespace features

struct Feature {
  const char* name;
  bool* is;
};
constexpr Feature kFeatures[] = {
    {"threads", &features::threads},     {"forks", &features::forks},     {"handlers", &features::handlers},
    {"heaps", &features::heaps},         {"knobs", &features::knobs},     {"trims", &features::trims},
    {"sized", &features::sized},         {"huge", &features::huge},       {"aligned", &features::aligned},
    {"operators", &features::operators}, {"refused", &features::refused}, {"failing", &features::failing},
    {"profiles", &features::profiles},
};

constexpr unsigned kWorkers = 4, kBlocks = 400, kSteps = 1500, kMail = 16;
constexpr std::size_t kMost = std::size_t{12} << 20;  // bytes that one worker keeps
constexpr unsigned kChildSeconds = 60;                // then it hangs

std::chrono::steady_clock::time_point end_of_test;
std::atomic<std::uint64_t> next_id{1};

[[noreturn]] void Fail(const char* what, const Block& block) {
  char text[256];
  const int length =
      std::snprintf(text, sizeof text, "pairs: %s: block %p size %zu usable %zu alignment %zu id %llu\n",
                    what, static_cast<void*>(block.at), block.size, block.usable, block.alignment,
                    static_cast<unsigned long long>(block.id));
  if (write(2, text, static_cast<std::size_t>(length)) < 0) _exit(3);
  std::abort();
}
void Expect(bool holds, const char* what, const Block& block = {}) {
  if (!holds) Fail(what, block);
}

void BlockSignal(bool blocked) {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGUSR1);
  pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &ours, nullptr);
}

// On their way from one worker to any. A child of a fork finds the lock free, for whoever forks holds it.
struct Mail {
  std::mutex mutex;
  std::array<Block, kMail> blocks;
} mail;

class Worker {
 public:
  void Begin(unsigned number) { random_.seed(Seed() * 1000 + number); }

  // What a thread does before another one takes its place; its blocks stay.
  void Run() {
    for (unsigned i = 0; i < kSteps && std::chrono::steady_clock::now() < end_of_test; ++i) Step();
  }
  void FreeEverything() {
    for (Block& block : blocks_) Free(block);
    if (heap_ != nullptr) EndHeap();
  }

 private:
  void Step() {
    Block& block = blocks_[Below(random_, kBlocks)];
    const std::size_t dice = Below(random_, 1000);
    if (dice < 3 && features::forks) return Fork();
    if (dice < 6 && features::trims) return void(hz_trim(Below(random_, 2) << 20));
    if (dice < 12 && features::knobs) return Turn();
    if (dice < 14 && features::profiles) return void(hz_write_heap_profile("/dev/null"));
    if (dice < 16 && features::heaps) return Look();
    if (dice < 60 && features::heaps) return InHeap();
    if (dice < 120 && features::threads) return Exchange(block);
    if (block.at == nullptr) return Make(block);
    Check(block);
    if (dice < 400) return;
    if (dice < 500) return Resize(block);
    if (dice < 530) return Move(block);
    Free(block);
  }

  std::size_t AnySize() {
    const std::size_t dice = Below(random_, 1000);
    if (dice < 900) return LogSize(random_, 10);
    if (dice < 990) return LogSize(random_, 16);
    return LogSize(random_, features::huge ? 23 : 18);
  }

  void Make(Block& out) {
    if (bytes_ > kMost) return;
    Block block;
    block.size = AnySize();
    const std::size_t dice = Below(random_, 100);
    if (dice < 20) {
      block.at = static_cast<unsigned char*>(api::Calloc(1, block.size));
      if (block.at != nullptr) Expect(IsZero(block.at, block.size), "calloc gives zeroes", block);
    } else if (dice < 35 && features::aligned) {
      block.alignment = std::size_t{16} << Below(random_, Below(random_, 8) == 0 ? 18 : 9);
      block.at = static_cast<unsigned char*>(api::AlignedAlloc(block.alignment, block.size));
    } else if (dice < 60 && features::operators) {
      block.at = static_cast<unsigned char*>(::operator new(block.size, std::nothrow));
    } else if (dice < 70) {
      block.at = static_cast<unsigned char*>(hz_malloc(block.size));
    } else {
      block.at = static_cast<unsigned char*>(api::Malloc(block.size));
    }
    if (Accept(block)) out = block;
  }

  // A block as it came from the heap.
  bool Accept(Block& block) {
    Expect(block.at != nullptr || features::refused || features::failing, "there is memory", block);
    if (block.at == nullptr) return false;
    block.id = next_id.fetch_add(1, std::memory_order_relaxed);
    block.usable = api::UsableSize(block.at);
    Expect(IsAligned(block.at, std::max<std::size_t>(block.alignment, 16)), "alignment", block);
    Expect(block.usable >= block.size, "usable size covers the size", block);
    Write(block);
    bytes_ += block.usable;
    return true;
  }

  static void Check(const Block& block) {
    Expect(Holds(block), "content", block);
    Expect(api::UsableSize(block.at) == block.usable, "usable size is constant", block);
    Expect(hz_owns(block.at) == 1, "owned", block);
  }

  void Resize(Block& block) {
    const Block old = block;
    const std::size_t size =
        Below(random_, 3) == 0 ? AnySize() : old.size / 2 + Below(random_, old.size + 64) + 1;
    const bool in_place = Below(random_, 8) == 0;
    void* const to = in_place ? hz_expand(block.at, size) : api::Realloc(block.at, size);
    if (to == nullptr) {
      Expect(in_place || features::refused || features::failing, "there is memory to resize", block);
      return Check(block);
    }
    Expect(!in_place || to == old.at, "expanded in place", block);
    bytes_ -= old.usable;
    block.at = static_cast<unsigned char*>(to);
    block.size = size;
    block.alignment = 0;
    block.resized = true;
    Block kept = old;
    kept.at = block.at;
    Expect(HoldsUpTo(kept, std::min(old.size, size)), "what was held is kept", block);
    Accept(block);
  }

  void Free(Block& block) {
    if (block.at == nullptr) return;
    Check(block);
    bytes_ -= block.usable;
    const std::size_t dice = Below(random_, 4);
    if (features::sized && !block.resized && dice < 2) {
      block.alignment != 0 ? hz_free_aligned_sized(block.at, block.alignment, block.size)
                           : hz_free_sized(block.at, block.size);
    } else if (dice == 2) {
      hz_free(block.at);
    } else {
      api::Free(block.at);
    }
    block = {};
  }

  // To where the heap would have it.
  void Move(Block& block) {
    if (block.at == nullptr || hz_defrag_hint(block.at) == 0) return;
    Block moved = block;
    moved.at = static_cast<unsigned char*>(
        api::AlignedAlloc(std::max<std::size_t>(block.alignment, 16), block.size));
    if (moved.at == nullptr)
      return Expect(features::refused || features::failing, "there is memory to move", block);
    std::memcpy(moved.at, block.at, block.size);
    Expect(HoldsUpTo(moved, block.size), "what was held is moved", moved);
    Free(block);
    moved.resized = false;
    if (Accept(moved)) block = moved;
  }

  void Exchange(Block& block) {
    const std::lock_guard<std::mutex> hold(mail.mutex);
    Block& other = mail.blocks[Below(random_, kMail)];
    bytes_ += other.usable;
    bytes_ -= block.usable;
    std::swap(block, other);
    if (block.at != nullptr) Check(block);
  }

  // Of a heap of its own: blocks that are freed one by one, or end with it, or become everybody's.
  void InHeap() {
    if (heap_ == nullptr) heap_ = hz_heap_new();
    if (heap_ == nullptr) return Expect(features::refused || features::failing, "there is a heap");
    if (Below(random_, 40) == 0) return EndHeap();
    Block& block = of_heap_[Below(random_, of_heap_.size())];
    if (block.at != nullptr) {
      Check(block);
      bytes_ -= block.usable;
      hz_free(block.at);
      block = {};
      return;
    }
    Block made;
    made.size = AnySize();
    made.at = static_cast<unsigned char*>(Below(random_, 2) == 0 ? hz_heap_malloc(heap_, made.size)
                                                                 : hz_heap_calloc(heap_, 1, made.size));
    if (Accept(made)) block = made;
  }
  void EndHeap() {
    if (Below(random_, 2) == 0) {
      for (Block& block : of_heap_) bytes_ -= block.usable;
      hz_heap_destroy(heap_);
    } else {  // its blocks live on
      hz_heap_delete(heap_);
      for (Block& block : of_heap_) {
        if (block.at == nullptr) continue;
        Check(block);
        bytes_ -= block.usable;
        hz_free(block.at);
      }
    }
    heap_ = nullptr;
    of_heap_ = {};
  }

  // What a walk visits. Other threads' blocks come and go meanwhile, and those of the heap are this one's
  // alone.
  struct Seen {
    const std::array<Block, kBlocks>& blocks;
    std::size_t found = 0, all = 0;
  };
  void Look() {
    Seen seen = {blocks_};
    const auto note = [](void* at, std::size_t bytes, void* to) {
      auto& now = *static_cast<Seen*>(to);
      ++now.all;
      for (const Block& block : now.blocks) {
        if (block.at != at) continue;
        Expect(bytes >= block.size, "a walk tells no fewer bytes than there are", block);
        ++now.found;
      }
      return 0;
    };
    const auto live = [](const Block& block) { return block.at != nullptr; };
    const auto in_blocks = static_cast<std::size_t>(std::count_if(blocks_.begin(), blocks_.end(), live));
    const auto in_heap = static_cast<std::size_t>(std::count_if(of_heap_.begin(), of_heap_.end(), live));
    if (hz_walk(note, &seen) != 0) return;  // the line has none
    Expect(seen.found == in_blocks, "a walk visits each block once");
    seen.all = 0;
    if (heap_ == nullptr) return;
    Expect(hz_heap_walk(heap_, note, &seen) == 0 && seen.all == in_heap,
           "a walk visits the blocks of a heap");
  }

  // Knobs that are live. What a line has not it refuses with a line, which is none of a fault.
  void Turn() {
    struct Setting {
      const char *key, *value;
    };
    static constexpr Setting kSettings[] = {
        {"profile_heap", "1K"}, {"profile_heap", "0"},   {"guard_sample", "5"}, {"guard_sample", "0"},
        {"thread_cache", "1K"}, {"thread_cache", "1M"},  {"retain", "100"},     {"retain", "1000"},
        {"retain_floor", "0"},  {"retain_floor", "64M"}, {"limit_soft", "4M"},  {"limit_soft", "0"},
        {"purge", nullptr},     {"trim", nullptr},
    };
    const Setting& one = kSettings[Below(random_, std::size(kSettings))];
    char answer[64];
    hz_ctl(one.key, one.value == nullptr ? "" : one.value, answer, sizeof answer);
  }

  // The child has what its thread had: it checks, works and frees all of it, by a thread of its own. Not
  // under AddressSanitizer, whose allocator is locked in a child where another thread was in it: it allocates
  // for each thread that starts.
  void Fork() {
    const std::lock_guard<std::mutex> hold(mail.mutex);
    BlockSignal(true);  // a fork in a handler that interrupted a fork hangs in the C library
    const pid_t child = fork();
    if (child != 0) BlockSignal(false);
    Expect(child >= 0 || features::failing, "a fork");
    if (child < 0) return;
    if (child != 0) return Await(child);
    std::signal(SIGALRM, SIG_DFL);
    std::signal(SIGUSR1, SIG_IGN);
    alarm(kChildSeconds);
    features::forks = features::threads = features::handlers = false;
    end_of_test = std::chrono::steady_clock::now() + std::chrono::seconds(kChildSeconds);
    for (unsigned i = 0; i < 100; ++i) Step();
    pthread_t thread;
    const auto work = [](void* worker) -> void* {
      return static_cast<Worker*>(worker)->FreeEverything(), nullptr;
    };
    if (!kAddressSanitizer && pthread_create(&thread, nullptr, work, this) == 0) {
      pthread_join(thread, nullptr);
    } else {
      FreeEverything();
    }
    _exit(0);
  }

 public:
  static void Await(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
      if (errno != EINTR) return Expect(false, "a child is there to be waited for");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) Expect(false, "a child hangs");
    char what[64];
    std::snprintf(what, sizeof what, "a child ends well, not with status %#x", static_cast<unsigned>(status));
    Expect(status == 0, what);
  }

 private:
  Random random_;
  std::array<Block, kBlocks> blocks_;
  std::array<Block, 40> of_heap_;
  hz_heap_t* heap_ = nullptr;
  std::size_t bytes_ = 0;
};

std::array<Worker, kWorkers> workers;

// A signal that comes at any time, and whose handler forks: the child allocates, as a child may.
void ForkInHandler(int) {
  const int kept = errno;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(kChildSeconds);
    // Built for a sanitizer, the heap checks that its lists are as long as they are said to be, which the one
    // that the signal interrupted need not be.
    for (std::size_t size = 16; size < 100000 && !kUnderTool; size *= 3) {
      void* const at = api::Malloc(size);
      if (at != nullptr) std::memset(at, 1, size);
      api::Free(at);
    }
    // AddressSanitizer allocates before calls that do not return, as _exit() does not: its allocator may be
    // locked here.
    syscall(SYS_exit_group, 0);
  }
  if (child > 0) Worker::Await(child);
  errno = kept;
}

// A thread after the other, each for a part of the worker's life.
void* Serve(void* argument) {
  auto* const worker = static_cast<Worker*>(argument);
  do {
    if (!features::threads) {
      worker->Run();
      continue;
    }
    pthread_t thread;
    const auto work = [](void* of) -> void* { return static_cast<Worker*>(of)->Run(), nullptr; };
    if (pthread_create(&thread, nullptr, work, worker) == 0) pthread_join(thread, nullptr);
  } while (std::chrono::steady_clock::now() < end_of_test);
  return nullptr;
}

bool Take(const char* word) {
  for (const Feature& feature : kFeatures) {
    if (std::strcmp(feature.name, word) == 0) return *feature.is = true;
  }
  return false;
}

}  // namespace
}  // namespace hz_test

int main(int count, char** words) {
  using namespace hz_test;
  if (count < 3) return 2;
  setenv("HZ_TEST_SEED", words[1], 1);
  for (int i = 3; i < count; ++i) {
    if (!Take(words[i])) return std::fprintf(stderr, "pairs: there is no feature %s\n", words[i]), 2;
  }
  const Watchdog watchdog(120);
  end_of_test = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atoi(words[2]));
#ifdef HZ_TEST_FAILING
  if (features::failing)
    failing::Sometimes(5, failing::kMemory | failing::kBarrier | failing::kThread | failing::kFile);
#endif
  const unsigned running = features::threads ? kWorkers : 1;
  pthread_t threads[kWorkers];
  for (unsigned i = 0; i < kWorkers; ++i) workers[i].Begin(i);
  for (unsigned i = 0; i < running; ++i) pthread_create(&threads[i], nullptr, &Serve, &workers[i]);
  if (features::handlers) {
    struct sigaction action = {};
    action.sa_handler = &ForkInHandler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    BlockSignal(true);  // it comes to a worker
    while (std::chrono::steady_clock::now() < end_of_test) {
      usleep(3000);
      kill(getpid(), SIGUSR1);
    }
    std::signal(SIGUSR1, SIG_IGN);
  }
  for (unsigned i = 0; i < running; ++i) pthread_join(threads[i], nullptr);
#ifdef HZ_TEST_FAILING
  failing::None();
#endif
  for (Worker& worker : workers) worker.FreeEverything();
  for (Block& block : mail.blocks) hz_free(block.at);
#ifdef HZ_TEST_DIRECT
  hz_stats_t stats = {};
  hz_stats(&stats, sizeof stats);
  Expect(stats.bytes_live == 0, "every block was freed");
#endif
  return 0;
}
