// SPDX-License-Identifier: Apache-2.0
//
// The ring lanes: every thread churns through its slots and sends a share of its blocks to the next thread,
// which frees them.
#include "ring/ring.hpp"

#include <algorithm>
#include <new>

#include "lane/allocator.hpp"
#include "lane/crew.hpp"
#include "lane/random.hpp"
#include "ring/churn.hpp"
#include "ring/spsc_ring.hpp"
#include "support/harness_memory.hpp"

namespace hz::bench {
namespace {

struct alignas(64) RingWorker {
  Churn<SystemAllocator> churn;
  Mode mode;
  std::uint64_t seed;
  unsigned index;
  Counts counts{};  // as they stood at the end of the timed region

  void timed() {
    if (mode == Mode::kFair) {
      churn.iterate(make_random<Mode::kFair>(seed, index));
      churn.finish();
      churn.drain_to_end();
    } else {
      churn.iterate(make_random<Mode::kUpstream>(seed, index));
    }
    counts = churn.counts();
  }

  void untimed() {
    if (mode == Mode::kFair) return;
    churn.finish();
    churn.drain_to_end();
  }
};

}  // namespace

void run_ring(const Run& run, Record& record) {
  const RingShape shape(run);
  const unsigned threads = run.threads;
  record.touched = shape.touch;
  record.written = shape.written;

  HarnessMemory memory;
  auto* workers = memory.take<RingWorker>(threads);
  auto* rings = memory.take<SpscRing>(threads);
  void** entries = memory.take<void*>(std::size_t{threads} * shape.ring);
  void** slots = memory.take<void*>(std::size_t{threads} * shape.slots);
  for (unsigned i = 0; i < threads; ++i)
    new (rings + i) SpscRing(entries + std::size_t{i} * shape.ring, shape.ring);
  auto& backlog = *new (memory.take<Backlog<SpscRing>>(1)) Backlog<SpscRing>(rings, threads);
  for (unsigned i = 0; i < threads; ++i) {
    SpscRing& receive = rings[(i + threads - 1) % threads];
    new (workers + i) RingWorker{
        Churn<SystemAllocator>(shape, slots + std::size_t{i} * shape.slots, rings[i], receive, backlog),
        run.mode, run.seed, i};
  }
  run_crew(run, memory, workers, record);

  Counts counts;
  for (unsigned i = 0; i < threads; ++i) {
    counts += workers[i].counts;
    record.ring_high_water = std::max(record.ring_high_water, rings[i].high_water());
  }
  if (shape.touch) record.backlog_kib = backlog.kib(shape.min_size, shape.max_size);
  record.ops = counts.ops(run.mode);
  record.sends = counts.sent;
  record.fallbacks = counts.fallbacks;
  record.dirty = counts.dirty();
}

}  // namespace hz::bench
