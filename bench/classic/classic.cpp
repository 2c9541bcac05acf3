// SPDX-License-Identifier: Apache-2.0
//
// The classic programs: which loop runs on which thread.
#include "classic/classic.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "classic/alloc_test.hpp"
#include "classic/covers.hpp"
#include "classic/false_sharing.hpp"
#include "classic/larson_crew.hpp"
#include "classic/mstress.hpp"
#include "classic/numbers.hpp"
#include "classic/redis.hpp"
#include "classic/shbench.hpp"
#include "classic/xmalloc_test.hpp"
#include "lane/allocator.hpp"
#include "lane/counted_crew.hpp"
#include "lane/random.hpp"
#include "support/harness_memory.hpp"

namespace hz::bench {
namespace {

struct alignas(64) AllocTestWorker {
  AllocTestShape shape;
  Xorshift64Star random;
  SizedBlock* slots;
  Tally tally{};
  void timed() { tally = replace_by_pareto<SystemAllocator>(shape, random, slots); }
  void untimed() {}
};

void run_alloc_test(const Run& run, Record& record) {
  const AllocTestShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<AllocTestWorker>(run.threads);
  auto* slots = memory.take<SizedBlock>(std::size_t{run.threads} * shape.slots);
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i)
        AllocTestWorker{shape, make_random<Mode::kFair>(run.seed, i), slots + std::size_t{i} * shape.slots};
  }
  run_counted_crew(run, memory, workers, record);
}

enum class XmallocRole { kProducer, kConsumer, kBoth };

struct alignas(64) XmallocWorker {
  XmallocTest<SystemAllocator> test;
  Xorshift64Star random;
  XmallocRole role;
  Tally tally{};

  void timed() {
    if (role == XmallocRole::kBoth) {
      tally = test.produce_and_consume(random);
    } else {
      tally = role == XmallocRole::kProducer ? test.produce(random) : test.consume();
    }
  }
  void untimed() {}
};

void run_xmalloc_test(const Run& run, Record& record) {
  const XmallocShape shape(run);
  const unsigned producers = (run.threads + 1) / 2;
  HarnessMemory memory;
  auto& queue = *new (memory.take<BatchQueue>(1)) BatchQueue(shape.queue, producers);
  auto* workers = memory.take<XmallocWorker>(run.threads);
  for (unsigned i = 0; i < run.threads; ++i) {
    const XmallocRole role = run.threads == 1 ? XmallocRole::kBoth
                             : i < producers  ? XmallocRole::kProducer
                                              : XmallocRole::kConsumer;
    new (workers + i) XmallocWorker{XmallocTest<SystemAllocator>(shape, queue),
                                    make_random<Mode::kFair>(run.seed, i), role};
  }
  run_counted_crew(run, memory, workers, record);
  record.ring_high_water = std::uint64_t{queue.high_water()} * (shape.batch + 1);
}

struct alignas(64) ShbenchWorker {
  Shbench<SystemAllocator> bench;
  Tally tally{};
  void timed() { tally = bench.run(); }
  void untimed() {}
};

void run_shbench(const Run& run, Record& record) {
  const ShbenchShape shape(run);
  const unsigned threads = run.threads;
  const std::size_t entries_each = shape.send ? shape.ring : 1;
  HarnessMemory memory;
  auto* workers = memory.take<ShbenchWorker>(threads);
  auto* rings = memory.take<SpscRing>(threads);
  void** entries = memory.take<void*>(threads * entries_each);
  void** slots = memory.take<void*>(threads * shape.blocks());
  for (unsigned i = 0; i < threads; ++i) new (rings + i) SpscRing(entries + i * entries_each, entries_each);
  for (unsigned i = 0; i < threads; ++i) {
    SpscRing& receive = rings[(i + threads - 1) % threads];
    new (workers + i)
        ShbenchWorker{Shbench<SystemAllocator>(shape, slots + i * shape.blocks(), rings[i], receive)};
  }
  run_counted_crew(run, memory, workers, record);
  for (unsigned i = 0; i < threads; ++i) {
    record.ring_high_water = std::max(record.ring_high_water, rings[i].high_water());
  }
}

struct alignas(64) FalseSharingWorker {
  FalseSharingShape shape;
  void* given;
  Tally tally{};
  void timed() { tally = write_small_blocks<SystemAllocator>(shape, given); }
  void untimed() {}
};

void run_false_sharing(const Run& run, Record& record) {
  const FalseSharingShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<FalseSharingWorker>(run.threads);
  Caller<SystemAllocator> caller;
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i) FalseSharingWorker{shape, shape.given ? caller.allocate(shape.size) : nullptr};
  }
  run_counted_crew(run, memory, workers, record);
  count(caller.tally(), record);
}

struct alignas(64) RedisWorker {
  RedisStore<SystemAllocator> store;
  Tally tally{};
  void timed() { tally = store.run(); }
  void untimed() {}
};

void run_redis(const Run& run, Record& record) {
  const RedisShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<RedisWorker>(run.threads);
  auto* keys = memory.take<RedisText>(std::size_t{run.threads} * shape.keys);
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i) RedisWorker{RedisStore<SystemAllocator>(shape, make_random<Mode::kFair>(run.seed, i),
                                                              keys + std::size_t{i} * shape.keys)};
  }
  run_counted_crew(run, memory, workers, record);
}

struct alignas(64) NumbersWorker {
  NumbersShape shape;
  Xorshift64Star random;
  void** numbers;
  Tally tally{};
  void timed() { tally = compute_with_numbers<SystemAllocator>(shape, random, numbers); }
  void untimed() {}
};

void run_numbers(const Run& run, Record& record) {
  const NumbersShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<NumbersWorker>(run.threads);
  void** numbers = memory.take<void*>(run.threads * shape.places());
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i)
        NumbersWorker{shape, make_random<Mode::kFair>(run.seed, i), numbers + i * shape.places()};
  }
  run_counted_crew(run, memory, workers, record);
}

struct alignas(64) CoversWorker {
  Covers<SystemAllocator> covers;
  Tally tally{};
  void timed() { tally = covers.run(); }
  void untimed() {}
};

void run_covers(const Run& run, Record& record) {
  const CoversShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<CoversWorker>(run.threads);
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i) CoversWorker{Covers<SystemAllocator>(shape, make_random<Mode::kFair>(run.seed, i))};
  }
  run_counted_crew(run, memory, workers, record);
}

struct alignas(64) MstressWorker {
  Mstress<SystemAllocator> stress;
  unsigned number, threads;
  Tally tally{};
  void timed() {
    stress.run();
    tally = stress.tally();
  }
  void untimed() { stress.finish(number, threads); }
};

void run_mstress(const Run& run, Record& record) {
  const MstressShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<MstressWorker>(run.threads);
  void** places = memory.take<void*>(run.threads * shape.places());
  auto* table = memory.take<Mstress<SystemAllocator>::Place>(shape.table);
  for (unsigned i = 0; i < run.threads; ++i) {
    Mstress<SystemAllocator> stress(shape, make_random<Mode::kFair>(run.seed, i), places + i * shape.places(),
                                    table);
    new (workers + i) MstressWorker{stress, i, run.threads};
  }
  run_counted_crew(run, memory, workers, record);
}

}  // namespace

void run_classic(const Run& run, Record& record) {
  const std::string_view workload = run.lane.definition.text("workload");
  if (workload == "larson") return run_larson(run, record);
  if (workload == "alloc_test") return run_alloc_test(run, record);
  if (workload == "xmalloc_test") return run_xmalloc_test(run, record);
  if (workload == "shbench") return run_shbench(run, record);
  if (workload == "false sharing") return run_false_sharing(run, record);
  if (workload == "redis") return run_redis(run, record);
  if (workload == "numbers") return run_numbers(run, record);
  if (workload == "covers") return run_covers(run, record);
  if (workload == "mstress") return run_mstress(run, record);
  fail("a lane of the family classic names no workload of it");
}

}  // namespace hz::bench
