// SPDX-License-Identifier: Apache-2.0
//
// The threads of a larson lane. A crew's worker is the first and the last thread of its table; between them
// it makes one new thread after the other and waits for it, so as many threads run at a time as the run has,
// and they all are alive at the moment `idle`. The first worker also notes the resident set, twice a second,
// between two generations.
#include "classic/larson_crew.hpp"

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "classic/larson.hpp"
#include "lane/allocator.hpp"
#include "lane/counted_crew.hpp"
#include "lane/crew.hpp"
#include "lane/random.hpp"
#include "support/harness_memory.hpp"
#include "support/process.hpp"
#include "support/stacks.hpp"

namespace hz::bench {
namespace {

constexpr std::uint64_t kRssEveryMs = 500;

struct alignas(64) LarsonWorker {
  Larson<SystemAllocator> table;
  std::uint64_t nanoseconds;
  const Stacks& stacks;  // for the generations after the first: of each worker one
  unsigned number;
  Record* record;  // of the worker that notes the resident set
  std::uint64_t deadline_ns = 0;
  bool in_time = true;
  Tally tally{};

  void timed() {
    const std::uint64_t start_ns = now_ns();
    deadline_ns = start_ns + nanoseconds;
    table.fill();
    in_time = table.generation(deadline_ns);
    unsigned next_rss_ms = kRssEveryMs;
    while (in_time) {
      pthread_join(start_thread(stacks, number, generation, this), nullptr);
      const std::uint64_t elapsed_ms = (now_ns() - start_ns) / 1'000'000;
      if (record == nullptr || elapsed_ms < next_rss_ms) continue;
      record->add_rss_point("ms", static_cast<unsigned>(elapsed_ms));
      while (next_rss_ms <= elapsed_ms) next_rss_ms += kRssEveryMs;
    }
    table.finish();
    tally = table.tally();
  }

  void untimed() {}

  static void* generation(void* self) {
    auto& worker = *static_cast<LarsonWorker*>(self);
    worker.table.inherit();
    worker.in_time = worker.table.generation(worker.deadline_ns);
    alive_workers.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
};

}  // namespace

void run_larson(const Run& run, Record& record) {
  const LarsonShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<LarsonWorker>(run.threads);
  void** slots = memory.take<void*>(std::size_t{run.threads} * shape.slots);
  const Stacks stacks(run.threads);
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i) LarsonWorker{Larson<SystemAllocator>(shape, make_random<Mode::kFair>(run.seed, i),
                                                           slots + std::size_t{i} * shape.slots),
                                   shape.nanoseconds, stacks, i, i == 0 ? &record : nullptr};
  }
  run_counted_crew(run, memory, workers, record);
  record.stacks_kib += stacks.resident_kib();
}

}  // namespace hz::bench
