// SPDX-License-Identifier: Apache-2.0
//
// A short life of a process that uses all that a heap has: blocks of all kinds, huge ones that move, threads
// that begin and end, frees of other threads' blocks, heaps of its own, forks, purges, trims, knobs, files.
// With an oracle (fault/walk.hpp): what it is given is sound, what it is not is NULL and ENOMEM, and what it
// has stays as it was. Called while calls to the system fail; uses no memory but its own.
#pragma once

#include <sys/wait.h>
#include <time.h>

#include <csignal>

#include "fault/failing_calls.hpp"
#include "fault/walk.hpp"

namespace hz_test {

class Life {
 public:
  static constexpr unsigned kBits = 17;

  explicit Life(std::uint64_t seed) : walk_(verdict_, mailbox_, seed, kBits) {}

  void Run() {
    BlocksOfEveryKind();
    HugeBlocks();
    InAThread([this] { Other(); });
    InAThread([this] { Other(); });  // what the first one left is there for the second
    HeapsOfItsOwn();
    Forked();
    Knobs();
    walk_.Run(40, [](Random&) {});
  }

  // A process of two threads empties itself and stands still; then it goes on. From that moment on a call
  // fails.
  void Idle(std::uint64_t call) {
    std::atomic<int> turn{0};  // the other thread waits for it, with what it caches
    const auto wait_for = [&](int number) {
      while (turn.load() != number) Sleep(1);
    };
    InAThread([&] { BlocksOfEveryKind(); });
    auto other = [&] {
      Other();
      turn = 1;
      wait_for(2);
      Other();
    };
    const pthread_t thread = Start(other);
    wait_for(1);
    MakeAndFree(2000);
    failing::Once(call, failing::kAllCalls);
    Sleep(kIdle);
    turn = 2;
    pthread_join(thread, nullptr);
    MakeAndFree(200);
    failing::None();
  }

  // After Run, when calls work again: all sizes can be had, and the books balance. Whether all was well.
  bool Sound() {
    InAThread([this] { Other(); });
    for (Block& block : blocks_) walk_.Free(block);
    walk_.CheckAll();
    walk_.FreeAll();
    ExpectEverySizeWorks(verdict_, kBits);
    const hz_stats_t stats = HeapStats();
    verdict_.Expect(stats.bytes_live == 0, "nothing is lost");
    verdict_.Expect(stats.bytes_held == stats.bytes_cached, "what is held is cached");
    verdict_.Expect(stats.remote_sent == stats.remote_collected + stats.remote_waiting, "no parcel is lost");
    verdict_.Expect(stats.counting == 0 || stats.alloc_small + stats.alloc_medium + stats.alloc_large ==
                                               stats.free_small + stats.free_medium + stats.free_large,
                    "as many frees as allocations");
    verdict_.Write();
    return !verdict_.Failed();
  }
  Verdict& Told() { return verdict_; }

 private:
  static constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
  static constexpr std::size_t kBlocks = 58, kOfThreads = 45, kHuge = 55;
  static constexpr long kIdle = 700;  // milliseconds: several ticks of any purger

  // Several of a class, so that bins are filled and emptied.
  void BlocksOfEveryKind() {
    for (std::size_t i = 0; i < 30; ++i) walk_.Make(blocks_[i], std::size_t{16} << (i / 3));
    for (std::size_t i = 30; i < 36; ++i) walk_.MakeZeroed(blocks_[i], (i - 29) * 20 * kKiB);
    for (std::size_t i = 36; i < kOfThreads; ++i)
      walk_.MakeAligned(blocks_[i], 16 * kKiB << (i % 3), 40 * kKiB);
    for (std::size_t i = 0; i < kOfThreads; i += 2) walk_.Free(blocks_[i]);
    for (std::size_t i = 1; i < kOfThreads; i += 4) Resize(blocks_[i], 3 * blocks_[i].size);
  }
  // In place, to a place that is free, to the top, and smaller again.
  void HugeBlocks() {
    // Free memory that is there already: so that blocks find a place to move to also when nothing else works.
    const Answer place = Ask([] { return api::Malloc(30 * kMiB); });
    verdict_.Expect(place.proper, "malloc of free memory");
    api::Free(place.block);
    for (std::size_t i = kHuge; i < kHuge + 3; ++i) walk_.Make(blocks_[i], (5 + i % 2) * kMiB);
    for (const std::size_t mib : {7, 9, 5}) {
      for (std::size_t i = kHuge; i < kHuge + 3; ++i) Resize(blocks_[i], mib * kMiB);
      walk_.Free(blocks_[kHuge + 1]);
    }
    Resize(blocks_[kHuge], 100 * kKiB);
    // Used memory that is to be zero.
    walk_.MakeZeroed(blocks_[kHuge + 1], 5 * kMiB);
    walk_.Free(blocks_[kHuge + 2]);
  }
  void Resize(Block& block, std::size_t size) {
    if (block.at != nullptr) walk_.Resize(block, size);
  }

  // Frees what the first thread has, and leaves something for it.
  void Other() {
    for (std::size_t i = 1; i < kOfThreads; i += 3) walk_.Free(blocks_[i]);
    for (std::size_t i = kOfThreads; i < kHuge; ++i) {
      walk_.Free(blocks_[i]);
      walk_.Make(blocks_[i], (i - kOfThreads + 1) * 300);
    }
  }
  template <class What>
  pthread_t Start(What& what) {
    const TestsOwn own;
    pthread_t thread{};
    const auto run = [](void* all) -> void* { return (*static_cast<What*>(all))(), nullptr; };
    verdict_.Expect(pthread_create(&thread, nullptr, run, &what) == 0, "the test has a thread");
    return thread;
  }
  template <class What>
  void InAThread(What what) {
    pthread_join(Start(what), nullptr);
    // At once: the next thread may have the place of the one that was forgotten, and all is well again.
    verdict_.Expect(HeapStats().threads <= 1, "the end of the thread was noticed");
  }
  // So much that there is a purger.
  void MakeAndFree(std::size_t size) {
    for (Block& block : pile_) walk_.Make(block, size);
    for (Block& block : pile_) walk_.Free(block);
  }
  static void Sleep(long milliseconds) {
    const timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, nullptr);
  }

  void HeapsOfItsOwn() {
    Block ended[kOfHeap], kept[kOfHeap];
    hz_heap_t* const first = OfItsOwn(ended);
    for (std::size_t i = 0; i < kOfHeap; i += 2) walk_.Free(ended[i]);
    for (const Block& block : ended) verdict_.Expect(block.at == nullptr || Holds(block), "a heap's", block);
    hz_heap_t* const second = OfItsOwn(kept);
    hz_heap_destroy(first);
    hz_heap_delete(second);
    for (Block& block : kept) walk_.Free(block);
  }
  static constexpr std::size_t kOfHeap = 6;
  hz_heap_t* OfItsOwn(Block (&blocks)[kOfHeap]) {
    hz_heap_t* heap = nullptr;
    const Answer made = Ask([&] { return heap = hz_heap_new(); });
    verdict_.Expect(made.proper || IsTiny(), "hz_heap_new");
    for (std::size_t i = 0; i < kOfHeap && heap != nullptr; ++i) {
      Block& block = blocks[i];
      block = {nullptr, std::size_t{50} << (2 * i), FreshSeed()};
      const Answer given = Ask([&] { return hz_heap_malloc(heap, block.size); });
      verdict_.Expect(given.proper, "hz_heap_malloc", block);
      block.at = given.block;
      if (block.at == nullptr) continue;
      FillBlock(block);
      const Answer larger = Ask([&] { return hz_heap_realloc(heap, block.at, 2 * block.size); });
      verdict_.Expect(larger.proper, "hz_heap_realloc", block);
      if (larger.block != nullptr) block.at = larger.block;
      verdict_.Expect(HoldsUpTo(block.at, block, block.size), "a heap's realloc keeps the content", block);
      if (larger.block == nullptr) continue;
      block.size *= 2;
      FillBlock(block);
    }
    return heap;
  }

  // The child has all that there was, and more.
  void Forked() {
    const pid_t pid = fork();
    if (pid == 0) {
      Other();
      walk_.CheckAll();
      verdict_.Write();
      _exit(verdict_.Failed() ? 1 : 0);
    }
    int status = -1;
    verdict_.Expect(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "the child of a fork");
  }

  void Knobs() {
    hz_ctl("limit_soft", "64M", nullptr, 0);
    hz_ctl("purge", "", nullptr, 0);
    hz_ctl("limit_soft", "0", nullptr, 0);
    api::Trim();
    hz_write_heap_profile(nullptr);
    if (std::getenv("HZ_STATS_FILE") != nullptr) hz_ctl("write_stats", "", nullptr, 0);
  }

  Verdict verdict_;
  Mailbox mailbox_;
  Walk walk_;
  Block blocks_[kBlocks], pile_[3000];
};

// How a process of which a call was to fail ended.
inline constexpr int kSound = 0, kUnsound = 1, kNoSuchCall = 2;
inline int Outcome(Life& life) {
  if (!life.Sound()) return kUnsound;
  return failing::Failures() == 0 ? kNoSuchCall : kSound;
}

// A process that was started to fail (failing_calls.hpp) lives here, before anything else is done in main.
inline int LiveFromTheStart() {
  alarm(100);
  static Life life(1);
  life.Run();
  failing::None();
  failing::Seen::Shared(std::atoi(std::getenv("HZ_TEST_SEEN")))->Note();
  return Outcome(life);
}

}  // namespace hz_test
