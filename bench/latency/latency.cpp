// SPDX-License-Identifier: Apache-2.0
//
// The latency lanes: every call of a churning program is timed. An op is a call, as in other lanes, but the
// time of the run has the clock in it, so its throughput is not that of another lane.
#include "latency/latency.hpp"

#include <cstddef>
#include <new>

#include "lane/allocator.hpp"
#include "lane/crew.hpp"
#include "latency/clock.hpp"
#include "latency/timed_churn.hpp"
#include "support/harness_memory.hpp"

namespace hz::bench {
namespace {

struct alignas(64) LatencyWorker {
  TimedChurn<SystemAllocator> churn;
  std::uint64_t seed;
  unsigned thread;

  void timed() { churn.run(seed, thread); }
  void untimed() {}
};

CallTimes times_of(const Histogram& seen, double tick_ns) {
  const auto ns = [&](std::uint64_t ticks) { return static_cast<double>(ticks) * tick_ns; };
  return {.calls = seen.count(),
          .p50_ns = ns(seen.percentile(500'000)),
          .p99_ns = ns(seen.percentile(990'000)),
          .p999_ns = ns(seen.percentile(999'000)),
          .p9999_ns = ns(seen.percentile(999'900)),
          .longest_ns = ns(seen.longest())};
}

}  // namespace

void run_latency(const Run& run, Record& record) {
  const LatencyShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<LatencyWorker>(run.threads);
  void** slots = memory.take<void*>(std::size_t{run.threads} * shape.slots);
  auto* times = memory.take<CallHistograms>(run.threads + 1);  // the last one is for all together
  Board& board = *memory.take<Board>(1);
  board.at_work.store(run.threads, std::memory_order_relaxed);
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i) LatencyWorker{
        TimedChurn<SystemAllocator>(shape, slots + std::size_t{i} * shape.slots, board, times[i]), run.seed,
        i};
  }
  const Stopwatch watch;
  run_crew(run, memory, workers, record);

  CallHistograms& all = times[run.threads];
  for (unsigned i = 0; i < run.threads; ++i) {
    all.allocate += times[i].allocate;
    all.release += times[i].release;
    record.ops += workers[i].churn.tally().calls();
    record.sends += workers[i].churn.tally().sent;
  }
  const double tick_ns = watch.tick_ns();
  record.clock_ns = static_cast<double>(clock_ticks()) * tick_ns;
  record.allocate_times = times_of(all.allocate, tick_ns);
  record.release_times = times_of(all.release, tick_ns);
}

}  // namespace hz::bench
