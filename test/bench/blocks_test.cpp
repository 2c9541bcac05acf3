// SPDX-License-Identifier: Apache-2.0
//
// The lanes of aligned, large and passed blocks against their definitions, with an allocator that keeps
// books.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "blocks/aligned.hpp"
#include "blocks/grow.hpp"
#include "blocks/large.hpp"
#include "blocks/phases.hpp"
#include "blocks/pipe.hpp"
#include "blocks/plateau.hpp"
#include "blocks/requests.hpp"
#include "books.hpp"
#include "lane/random.hpp"
#include "run_of.hpp"

namespace hz::bench {
namespace {

constexpr std::size_t kPage = 4096;

class BlocksTest : public testing::Test {
 protected:
  void SetUp() override { Books::open(); }

  static void expect_all_freed(const Tally& tally) {
    EXPECT_TRUE(Books::live.empty());
    EXPECT_EQ(Books::unknown, 0U);
    EXPECT_EQ(tally.allocated, Books::allocations);
    EXPECT_EQ(tally.released, Books::releases);
    EXPECT_EQ(tally.resized, Books::resizes.size());
  }
};

// Counts blocks that are not aligned as asked for.
struct AlignedBooks : Books {
  static inline int misaligned;
  static void* allocate_aligned(std::size_t alignment, std::size_t size) {
    misaligned += alignment != 8'192 || size != 65'536;
    return Books::allocate_aligned(alignment, size);
  }
};

TEST_F(BlocksTest, Aligned64kFreesEachBlockAtOnce) {
  AlignedBooks::misaligned = 0;
  const Tally tally =
      allocate_aligned_blocks<AlignedBooks>(AlignedShape(run_of("aligned64k", Mode::kFair, 100)));
  expect_all_freed(tally);
  EXPECT_EQ(tally.calls(), 200U);
  EXPECT_EQ(Books::most_live, 1U);
  EXPECT_EQ(Books::untouched, 0U);
  EXPECT_EQ(AlignedBooks::misaligned, 0);
}

TEST_F(BlocksTest, ThePipeFreesEveryBlockInOrderOnTheOtherThread) {
  for (const char* lane : {"remote64k", "pipe_64"}) {
    SCOPED_TRACE(lane);
    Books::open();
    const auto run = run_of(lane, Mode::kFair, 3'000);
    const PipeShape shape(run);
    EXPECT_EQ(run.lane.threads, 2U);
    EXPECT_EQ(shape.queue, 1'024U);
    std::vector<void*> entries(shape.queue);
    SpscRing queue(entries.data(), entries.size());
    Tally tally;
    std::thread consumer([&] { tally = consume<Books>(queue); });
    const Tally produced = produce<Books>(shape, queue);
    consumer.join();
    EXPECT_EQ(produced.sent, 3'000U);
    EXPECT_EQ(produced.released, 0U);
    tally += produced;
    expect_all_freed(tally);
    EXPECT_EQ(tally.calls(), 6'000U);
    EXPECT_EQ(Books::foreign, 3'000U);
    EXPECT_EQ(Books::untouched, 0U);
    EXPECT_LE(Books::most_live, 1'024U + 2);  // the queue, and one in the hands of either thread
    EXPECT_EQ(Books::largest, run.lane.definition["size"]);
    EXPECT_EQ(Books::smallest, run.lane.definition["size"]);
    std::int64_t freed = 0;
    for (const std::int64_t call : Books::calls) {
      if (call < 0) {
        EXPECT_EQ(-call, ++freed);
      }
    }
  }
}

TEST_F(BlocksTest, TheProducerWaitsWhileTheQueueIsFull) {
  const PipeShape shape(run_of("pipe_64", Mode::kFair, 50));
  std::vector<void*> entries(4);
  SpscRing queue(entries.data(), entries.size());
  std::thread producer([&] { produce<Books>(shape, queue); });
  const auto allocated = [] {
    const std::lock_guard guard(Books::lock);
    return Books::allocations;
  };
  while (allocated() < 5) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(allocated(), 5U);  // four in the queue and one that does not fit
  expect_all_freed(Tally{.allocated = 50, .released = consume<Books>(queue).released});
  producer.join();
  EXPECT_EQ(Books::foreign, 50U);
}

TEST_F(BlocksTest, ThePlateauIsFilledAndEmptiedFiveTimes) {
  const auto run = run_of("rss_plateau");
  PlateauShape shape(run);
  EXPECT_EQ(shape.size, 65'536U);
  EXPECT_EQ(shape.slots, 1'024U);
  shape.slots = 16;
  std::uint64_t dry_pages = 0;
  Books::inspect = [&](const unsigned char* bytes, std::size_t size) {
    for (std::size_t at = 0; at < size; at += kPage) dry_pages += bytes[at] == 0;
  };
  std::vector<void*> slots(shape.slots);
  std::vector<std::string> seen;
  const Tally tally = fill_and_empty<Books>(shape, slots.data(), [&](const char* phase, unsigned round) {
    seen.push_back(std::string(phase) + " " + std::to_string(round) + ": " +
                   std::to_string(Books::live.size()));
  });
  expect_all_freed(tally);
  EXPECT_EQ(tally.calls(), 5U * 2 * 16);
  EXPECT_EQ(dry_pages, 0U);
  ASSERT_EQ(seen.size(), 10U);
  EXPECT_EQ(seen[0], "allocated 1: 16");
  EXPECT_EQ(seen[1], "freed 1: 0");
  EXPECT_EQ(seen[8], "allocated 5: 16");
  EXPECT_EQ(seen[9], "freed 5: 0");
}

TEST_F(BlocksTest, BlocksOfARequestEndTogether) {
  const RequestsShape shape(run_of("arena_request", Mode::kFair, 3));
  EXPECT_EQ(shape.blocks, 1'000U);
  const Xorshift64Star random(7);
  std::vector<void*> blocks(shape.blocks);
  const Tally tally = serve_one_by_one<Books>(shape, random, blocks.data());
  expect_all_freed(tally);
  EXPECT_EQ(tally.calls(), 6'000U);
  EXPECT_EQ(Books::most_live, 1'000U);
  EXPECT_EQ(Books::untouched, 0U);
  EXPECT_GE(Books::smallest, 16U);
  EXPECT_LE(Books::largest, 8'192U);
  const auto small =
      std::count_if(Books::sizes.begin(), Books::sizes.end(), [](auto size) { return size <= 128; });
  EXPECT_NEAR(static_cast<double>(small), 2'400, 110);  // five deviations
}

// The same blocks, of which each lies in the heap of its request, and none is freed by itself.
struct BookedHeaps : Books {
  static inline int heap, begun, ended;
  static void* begin() { return ++begun, &heap; }
  static void* allocate_in(void* in, std::size_t size) { return in == &heap ? allocate(size) : nullptr; }
  static void destroy(void*) {
    ++ended;
    while (!live.empty()) release(live.begin()->first);
  }
};

TEST_F(BlocksTest, ARequestHasAHeapWhereThereAreHeaps) {
  const RequestsShape shape(run_of("arena_request", Mode::kFair, 3));
  std::vector<void*> blocks(shape.blocks);
  serve_one_by_one<Books>(shape, Xorshift64Star(7), blocks.data());
  const std::vector<std::size_t> sizes = Books::sizes;
  Books::open();
  const HeapFunctions heaps = {&BookedHeaps::begin, &BookedHeaps::allocate_in, &BookedHeaps::destroy};
  EXPECT_TRUE(heaps.complete());
  const Tally tally = serve_from_heaps(shape, Xorshift64Star(7), heaps, blocks.data());
  expect_all_freed(tally);
  EXPECT_EQ(Books::sizes, sizes);
  EXPECT_EQ(BookedHeaps::begun, 3);
  EXPECT_EQ(BookedHeaps::ended, 3);
  EXPECT_EQ(Books::most_live, 1'000U);
  EXPECT_EQ(Books::untouched, 0U);
}

// Two threads, in turn: what changes from phase to phase is what the lane is named after.
TEST_F(BlocksTest, PhasesShiftOneThing) {
  for (const char* shift : {"sizes", "threads", "remote"}) {
    Books::open();
    PhasesShape shape(run_of(std::string("phases_") + shift, Mode::kFair, 6 * 4000));
    EXPECT_EQ(shape.shift, shift);
    EXPECT_EQ(shape.phases, 6U);
    EXPECT_EQ(shape.iterations, 4000U);
    EXPECT_EQ(shape.slots, 100'000U);
    shape.slots = 1000;
    PhasesMeeting meeting{};
    meeting.open(2);
    std::vector<void*> slots(2 * shape.slots);
    std::vector<std::uint64_t> allocated, live_of_usual;
    Tally tallies[2];
    const auto observe = [&](const char* label, unsigned phase) {
      EXPECT_STREQ("phase", label);
      EXPECT_EQ(allocated.size() + 1, phase);
      allocated.push_back(Books::allocations);
      std::uint64_t usual = 0;
      for (const auto& [at, block] : Books::live) usual += block.size == shape.size(phase - 1) ? 1 : 0;
      live_of_usual.push_back(usual * 100 / Books::live.size());
    };
    const auto work = [&](unsigned thread) {
      tallies[thread] = run_phases<Books>(shape, make_random<Mode::kFair>(1, thread), thread,
                                          slots.data() + std::size_t{thread} * shape.slots, meeting, observe);
    };
    std::thread other([&] { work(1); });
    work(0);
    other.join();
    Tally all = tallies[0];
    all += tallies[1];
    expect_all_freed(all);
    ASSERT_EQ(allocated.size(), 6U);
    for (unsigned phase = 1; phase < 6; ++phase) {
      const std::uint64_t some = allocated[phase] - allocated[phase - 1];
      const bool half = std::string_view(shift) == "threads" && phase % 2 == 1;
      EXPECT_NEAR(half ? 2000 : 4000, static_cast<double>(some), 400) << shift << " " << phase;
      EXPECT_GT(live_of_usual[phase], half ? 30U : 60U) << shift << " " << phase;
    }
    if (std::string_view(shift) == "remote") {
      EXPECT_NEAR(0.9 / 2 * 3 * 2 * 2000, static_cast<double>(all.sent) / 2, 600);
    } else {
      EXPECT_EQ(0U, all.sent);
    }
  }
}

TEST_F(BlocksTest, LargeBlocksAreFewAndWrittenAtTheFirst64KiBAndTheEnd) {
  std::uint64_t wrong = 0;
  Books::inspect = [&](const unsigned char* bytes, std::size_t size) {
    for (std::size_t at = 0; at < size; at += kPage)
      wrong += (bytes[at] != 0) != (at < 65'536 || at == size - 1);
    wrong += bytes[size - 1] == 0;
  };
  const auto run = run_of("large_128k_1m", Mode::kFair, 400);
  const LargeShape shape(run);
  std::vector<void*> slots(shape.slots);
  const Tally tally = churn_large<Books>(shape, make_random<Mode::kFair>(1, 0), slots.data());
  expect_all_freed(tally);
  EXPECT_EQ(tally.calls(), tally.allocated * 2);
  EXPECT_EQ(wrong, 0U);
  EXPECT_LE(Books::most_live, 16U);
  EXPECT_GE(Books::smallest, 131'072U);
  EXPECT_LE(Books::largest, 1'048'576U);
  EXPECT_GT(Books::largest, 900'000U);
}

TEST_F(BlocksTest, LargeSizesReachBothEndsOfTheirLane) {
  const LargeShape shape(run_of("large_1m_64m"));
  EXPECT_EQ(shape.slots, 4U);
  Xorshift64Star random(splitmix64(1));
  std::size_t smallest = SIZE_MAX, largest = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t size = shape.sizes.draw(random);
    smallest = std::min(smallest, size);
    largest = std::max(largest, size);
  }
  EXPECT_LT(smallest, 1'052'000U);
  EXPECT_GE(smallest, 1'048'576U);
  EXPECT_GT(largest, 67'000'000U);
  EXPECT_LT(largest, 67'108'864U);
}

TEST_F(BlocksTest, GrowingGoesFrom16BytesTo64MiBByHalvesAndStartsAgain) {
  const GrowShape shape(run_of("realloc_grow"));
  std::vector<std::size_t> steps{shape.min_size};
  while (steps.back() < shape.max_size) steps.push_back(shape.next(steps.back()));
  EXPECT_EQ(steps[0], 16U);
  EXPECT_EQ(steps[1], 24U);
  EXPECT_EQ(steps[2], 36U);
  EXPECT_EQ(steps[3], 54U);
  EXPECT_EQ(steps.back(), 67'108'864U);
  EXPECT_EQ(steps.size(), 39U);
}

TEST_F(BlocksTest, AGrowingBlockIsFreedAtItsEndAndWrittenOnEveryPage) {
  GrowShape shape(run_of("realloc_grow", Mode::kFair, 48));
  shape.max_size = 100'000;
  std::uint64_t dry_pages = 0;
  Books::inspect = [&](const unsigned char* bytes, std::size_t size) {
    for (std::size_t at = 0; at < size; at += kPage) {
      const std::size_t end = std::min(at + kPage, size);
      dry_pages += std::all_of(bytes + at, bytes + end, [](unsigned char byte) { return byte == 0; });
    }
  };
  const Tally tally = grow_blocks<Books>(shape);
  expect_all_freed(tally);
  EXPECT_EQ(tally.allocated, 3U);  // 23 steps each: two whole ones, and two steps of a third
  EXPECT_EQ(tally.resized, 45U);
  EXPECT_EQ(Books::resizes[21].second, 100'000U);
  EXPECT_EQ(Books::resizes[22], (std::pair<std::size_t, std::size_t>{16, 24}));
  EXPECT_EQ(dry_pages, 0U);
}

// An allocator that forgets: the first byte, or the last one.
template <bool kFirst>
struct ForgetfulBooks : Books {
  static void* reallocate(void* p, std::size_t size) {
    const std::size_t old = live.at(p).size;
    auto* bytes = static_cast<unsigned char*>(Books::reallocate(p, size));
    bytes[kFirst ? 0 : old - 1] = 0;
    return bytes;
  }
};

TEST(BlocksDeathTest, LostContentEndsTheRun) {
  const GrowShape shape(run_of("realloc_grow", Mode::kFair, 10));
  EXPECT_EXIT(grow_blocks<ForgetfulBooks<true>>(shape), testing::ExitedWithCode(3),
              "realloc lost what was in");
  EXPECT_EXIT(grow_blocks<ForgetfulBooks<false>>(shape), testing::ExitedWithCode(3),
              "realloc lost what was in");
}

}  // namespace
}  // namespace hz::bench
