// SPDX-License-Identifier: Apache-2.0
//
// A program that freed everything is small again without being asked, also when it then sleeps and its
// threads live on: 256 MiB of live blocks in several shapes, all freed, and what of it is still resident over
// the process before. At most 16 MiB after 2 s of sleep; at most 8 MiB after malloc_trim(0). HZ_TEST_LONG=1
// samples after 0, 2, 4 and 16 s; else a test ends as soon as its bound is met. Every test prints a line
// `returns: …`.
#include <gtest/gtest.h>

#include <atomic>

#include "returns/crew.hpp"
#include "returns/load.hpp"
#include "returns/patience.hpp"
#include "stress/blocks.hpp"

namespace hz_test {
namespace {

constexpr std::size_t kVolume = 256 * kMiB;
constexpr long kLeftAfterSleep = 16;
constexpr long kLeftAfterTrim = 8;

// One shape: some loads, the threads that live on, and the measurement before and after.
class Shape {
 public:
  Shape(const char* name, unsigned threads, unsigned loads, Sizes sizes, Order order = Order::kAtRandom)
      : name_(name), watchdog_(200), sizes_(sizes), order_(order), crew_(threads) {
    for (unsigned i = 0; i < loads; ++i) loads_.emplace_back(kVolume / loads, sizes, order);
  }

  // What is measured must not be the first use of anything: a sixteenth of the work, and then a trim.
  template <class Work>
  void Warm(Work work) {
    share_ = 16;
    work();
    share_ = 1;
    api::Trim();
    api::Trim();
    baseline_ = RssBytes();
  }

  Crew& Threads() { return crew_; }
  void Make(unsigned load) { loads_[load].Make(Seed() + load, share_); }
  void Free(unsigned load) { loads_[load].Free(); }
  void NoteFull() { full_ = LeftMiB(); }

  // The process sleeps; what is left of it?
  void Expect(long bound = kLeftAfterSleep, long bound_after_trim = kLeftAfterTrim) {
    if (kUnderTool) return;  // shadow memory is resident as well
    EXPECT_GE(full_, 240) << "the blocks were there, and not before";
    Patience patience(2);
    const long at_once = LeftMiB();
    long left = at_once;
    while (left > bound && patience.Wait()) left = LeftMiB();
    const double met = patience.Passed();
    char samples[100] = "";
    if (Long()) Sample(patience, samples, sizeof samples);
    api::Trim();
    const long trimmed = LeftMiB();
    const char* order = order_ == Order::kAsMade ? "as_made" : "at_random";
    std::printf("returns: line=%s shape=%s sizes=%s frees=%s full=%ld ", api::LineName(), name_,
                NameOf(sizes_), order, full_);
    std::printf("after_0s=%ld%s bound=%ld met_after=%.1fs left=%ld trim=%ld\n", at_once, samples, bound, met,
                left, trimmed);
    EXPECT_LE(left, bound) << "MiB after 2 s of sleep";
    EXPECT_LE(trimmed, bound_after_trim) << "MiB after a trim";
  }

 private:
  long LeftMiB() const {
    constexpr long kMi = long{kMiB};
    return (static_cast<long>(RssBytes()) - static_cast<long>(baseline_) + kMi - 1) / kMi;
  }
  void Sample(const Patience& patience, char* text, std::size_t size) const {
    int at = 0;
    for (double moment : {2.0, 4.0, 16.0}) {
      if (moment > patience.Passed()) SleepFor(moment - patience.Passed());
      at += std::snprintf(text + at, size - static_cast<std::size_t>(at), " after_%.0fs=%ld", moment,
                          LeftMiB());
    }
  }

  const char* name_;
  const Watchdog watchdog_;
  const Sizes sizes_;
  const Order order_;
  std::vector<Load> loads_;
  std::size_t share_ = 1;
  std::size_t baseline_ = 0;
  long full_ = 0;
  Crew crew_;
};

// The first thread does it all; the process has no other.
void OneThread(Sizes sizes, Order order) {
  Shape shape("one_thread", 0, 1, sizes, order);
  const auto work = [&] {
    shape.Make(0);
    shape.NoteFull();
    shape.Free(0);
  };
  shape.Warm(work);
  work();
  shape.Expect();
}

TEST(MemoryComesBack, SmallBlocksOfOneThreadAsMade) { OneThread(Sizes::kSmall, Order::kAsMade); }
TEST(MemoryComesBack, SmallBlocksOfOneThread) { OneThread(Sizes::kSmall, Order::kAtRandom); }
TEST(MemoryComesBack, MixedBlocksOfOneThreadAsMade) { OneThread(Sizes::kMixed, Order::kAsMade); }
TEST(MemoryComesBack, MixedBlocksOfOneThread) { OneThread(Sizes::kMixed, Order::kAtRandom); }
TEST(MemoryComesBack, LargeBlocksOfOneThread) { OneThread(Sizes::kLarge, Order::kAtRandom); }
TEST(MemoryComesBack, HugeBlocksOfOneThread) { OneThread(Sizes::kHuge, Order::kAtRandom); }

// Each of eight threads makes its blocks and frees those of the thread `step` further on.
void EightThreads(const char* name, Sizes sizes, unsigned step, Order order = Order::kAtRandom) {
  Shape shape(name, 8, 8, sizes, order);
  const auto work = [&] {
    shape.Threads().Run([&](unsigned i) { shape.Make(i); });
    shape.NoteFull();
    shape.Threads().Run([&](unsigned i) { shape.Free((i + step) % 8); });
  };
  shape.Warm(work);
  work();
  shape.Expect();
}

TEST(MemoryComesBack, MixedBlocksOfEightThreadsAsMade) {
  EightThreads("eight_threads", Sizes::kMixed, 0, Order::kAsMade);
}
TEST(MemoryComesBack, MixedBlocksOfEightThreads) { EightThreads("eight_threads", Sizes::kMixed, 0); }
TEST(MemoryComesBack, SmallBlocksOfEightThreads) { EightThreads("eight_threads", Sizes::kSmall, 0); }
TEST(MemoryComesBack, BlocksFreedInARing) { EightThreads("ring", Sizes::kMixed, 1); }
TEST(MemoryComesBack, LargeBlocksFreedInARing) { EightThreads("ring", Sizes::kLarge, 1); }
TEST(MemoryComesBack, HugeBlocksFreedInARing) { EightThreads("ring", Sizes::kHuge, 1); }

// One thread makes them, another frees them, both live on.
void MakerAndTaker(Sizes sizes, Order order = Order::kAtRandom) {
  Shape shape("maker_and_taker", 2, 1, sizes, order);
  const auto work = [&] {
    shape.Threads().Run([&](unsigned i) { i == 0 ? shape.Make(0) : void(); });
    shape.NoteFull();
    shape.Threads().Run([&](unsigned i) { i == 1 ? shape.Free(0) : void(); });
  };
  shape.Warm(work);
  work();
  shape.Expect();
}

TEST(MemoryComesBack, MixedBlocksFreedByAnotherAsMade) { MakerAndTaker(Sizes::kMixed, Order::kAsMade); }
TEST(MemoryComesBack, MixedBlocksFreedByAnother) { MakerAndTaker(Sizes::kMixed); }
TEST(MemoryComesBack, SmallBlocksFreedByAnother) { MakerAndTaker(Sizes::kSmall); }

// A pool of threads did it, and has ended; or the pool has ended, and the first thread cleans up.
void EndedPool(const char* name, bool frees_itself) {
  Shape shape(name, 0, 8, Sizes::kMixed);
  const auto work = [&] {
    Barrier made(8);
    Together(8, [&](unsigned i) {
      shape.Make(i);
      made.Wait();
      if (i == 0) shape.NoteFull();
      made.Wait();
      if (frees_itself) shape.Free(i);
    });
    for (unsigned i = 0; i < 8 && !frees_itself; ++i) shape.Free(i);
  };
  shape.Warm(work);
  work();
  shape.Expect();
}

TEST(MemoryComesBack, BlocksOfAPoolThatEnded) { EndedPool("ended_pool", true); }
TEST(MemoryComesBack, BlocksThatOutliveTheirPool) { EndedPool("outlived_pool", false); }

// Long after the load was made, one thread frees it, and then nobody does anything.
TEST(MemoryComesBack, BlocksFreedLate) {
  Shape shape("freed_late", 8, 8, Sizes::kMixed);
  double pause = 0;
  const auto work = [&] {
    shape.Threads().Run([&](unsigned i) { shape.Make(i); });
    shape.NoteFull();
    SleepFor(pause);
    shape.Threads().Run([&](unsigned i) {
      for (unsigned load = 0; load < 8 && i == 3; ++load) shape.Free(load);
    });
  };
  shape.Warm(work);
  pause = 5;
  work();
  shape.Expect();
}

// Two of eight threads go on with small blocks: they keep their caches, as far as their line lets them; the
// others do not.
TEST(MemoryComesBack, BlocksOfIdleThreadsBesideBusyOnes) {
  constexpr unsigned kBusy = 2;
  std::atomic<bool> stop{false};
  Shape shape("half_busy", 8, 8, Sizes::kMixed);
  const auto work = [&] {
    shape.Threads().Run([&](unsigned i) { shape.Make(i); });
    shape.NoteFull();
    shape.Threads().Run([&](unsigned i) { shape.Free(i); });
  };
  shape.Warm(work);
  work();
  const auto churn = [&](unsigned thread) {
    void* live[100] = {};
    Random random(Seed() + thread);
    while (!stop) {
      for (int n = 0; n < 1000; ++n) {
        void*& block = live[Below(random, 100)];
        api::Free(block);
        block = api::Malloc(LogSize(random, 10));
      }
      SleepFor(0.001);
    }
    for (void* block : live) api::Free(block);
  };
  shape.Threads().Start(churn, kBusy);
  // Their caches, and what retention still allows: it forgets the peak slowly while somebody is at work.
  shape.Expect(kLeftAfterSleep + 16 * kBusy, kLeftAfterTrim + 8 * kBusy);
  stop = true;
  shape.Threads().Wait();
}

}  // namespace
}  // namespace hz_test
