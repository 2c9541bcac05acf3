// SPDX-License-Identifier: Apache-2.0
//
// The lanes of aligned and large blocks, and of blocks that pass from one producer to one consumer: which
// loop runs on which thread.
#include "blocks/blocks.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "blocks/aligned.hpp"
#include "blocks/grow.hpp"
#include "blocks/large.hpp"
#include "blocks/phases.hpp"
#include "blocks/pipe.hpp"
#include "blocks/plateau.hpp"
#include "blocks/requests.hpp"
#include "lane/allocator.hpp"
#include "lane/counted_crew.hpp"
#include "lane/random.hpp"
#include "support/harness_memory.hpp"
#include "support/process.hpp"

namespace hz::bench {
namespace {

struct alignas(64) AlignedWorker {
  AlignedShape shape;
  Tally tally{};
  void timed() { tally = allocate_aligned_blocks<SystemAllocator>(shape); }
  void untimed() {}
};

struct alignas(64) GrowWorker {
  GrowShape shape;
  Tally tally{};
  void timed() { tally = grow_blocks<SystemAllocator>(shape); }
  void untimed() {}
};

struct alignas(64) LargeWorker {
  LargeShape shape;
  Xorshift64Star random;
  void** slots;
  Tally tally{};
  void timed() { tally = churn_large<SystemAllocator>(shape, random, slots); }
  void untimed() {}
};

struct alignas(64) PipeWorker {
  PipeShape shape;
  SpscRing& queue;
  bool producer;
  Tally tally{};
  void timed() {
    tally = producer ? produce<SystemAllocator>(shape, queue) : consume<SystemAllocator>(queue);
  }
  void untimed() {}
};

// Reading the RSS takes about as long as a phase, so the worker takes the time of the phases alone.
struct PlateauWorker {
  PlateauShape shape;
  void** slots;
  Record& record;
  Tally tally{};
  std::uint64_t busy_ns = 0;

  void timed() {
    std::uint64_t phase_start = now_ns();
    tally = fill_and_empty<SystemAllocator>(shape, slots, [&](const char* phase, unsigned round) {
      busy_ns += now_ns() - phase_start;
      record.add_rss_point(phase, round);
      phase_start = now_ns();
    });
  }
  void untimed() {}
};

struct RequestsWorker {
  RequestsShape shape;
  Xorshift64Star random;
  HeapFunctions heaps;
  void** blocks;
  Tally tally{};
  void timed() {
    tally = heaps.complete() ? serve_from_heaps(shape, random, heaps, blocks)
                             : serve_one_by_one<SystemAllocator>(shape, random, blocks);
  }
  void untimed() {}
};

// The resident set is read between phases, while all wait: a few microseconds of each second.
struct alignas(64) PhasesWorker {
  PhasesShape shape;
  Xorshift64Star random;
  unsigned thread;
  void** slots;
  PhasesMeeting& meeting;
  Record& record;
  Tally tally{};
  void timed() {
    tally = run_phases<SystemAllocator>(
        shape, random, thread, slots, meeting,
        [this](const char* label, unsigned phase) { record.add_rss_point(label, phase); });
  }
  void untimed() {}
};

// Workers that need nothing but the shape.
template <class Worker, class Shape>
void run_independent(const Run& run, Record& record) {
  HarnessMemory memory;
  auto* workers = memory.take<Worker>(run.threads);
  for (unsigned i = 0; i < run.threads; ++i) new (workers + i) Worker{Shape(run)};
  run_counted_crew(run, memory, workers, record);
}

void run_large(const Run& run, Record& record) {
  const LargeShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<LargeWorker>(run.threads);
  void** slots = memory.take<void*>(std::size_t{run.threads} * shape.slots);
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i)
        LargeWorker{shape, make_random<Mode::kFair>(run.seed, i), slots + std::size_t{i} * shape.slots};
  }
  run_counted_crew(run, memory, workers, record);
}

void run_phases(const Run& run, Record& record) {
  const PhasesShape shape(run);
  HarnessMemory memory;
  auto* workers = memory.take<PhasesWorker>(run.threads);
  void** slots = memory.take<void*>(std::size_t{run.threads} * shape.slots);
  auto& meeting = *memory.take<PhasesMeeting>(1);
  meeting.open(run.threads);
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i) PhasesWorker{shape,   make_random<Mode::kFair>(run.seed, i),
                                   i,       slots + std::size_t{i} * shape.slots,
                                   meeting, record};
  }
  run_counted_crew(run, memory, workers, record);
}

void run_pipe(const Run& run, Record& record) {
  const PipeShape shape(run);
  HarnessMemory memory;
  auto& queue = *new (memory.take<SpscRing>(1)) SpscRing(memory.take<void*>(shape.queue), shape.queue);
  auto* workers = memory.take<PipeWorker>(2);
  new (workers) PipeWorker{shape, queue, true};
  new (workers + 1) PipeWorker{shape, queue, false};
  run_counted_crew(run, memory, workers, record);
  record.ring_high_water = queue.high_water();
}

void run_plateau(const Run& run, Record& record) {
  const PlateauShape shape(run);
  HarnessMemory memory;
  PlateauWorker worker{shape, memory.take<void*>(shape.slots), record};
  run_alone(memory, worker, record);
  count(worker.tally, record);
  record.seconds = static_cast<double>(worker.busy_ns) * 1e-9;
}

void run_requests(const Run& run, Record& record) {
  const RequestsShape shape(run);
  HarnessMemory memory;
  RequestsWorker worker{shape, make_random<Mode::kFair>(run.seed, 0), find_heap_functions(),
                        memory.take<void*>(shape.blocks)};
  run_alone(memory, worker, record);
  count(worker.tally, record);
}

}  // namespace

void run_blocks(const Run& run, Record& record) {
  const std::string_view workload = run.lane.definition.text("workload");
  if (workload == "aligned") return run_independent<AlignedWorker, AlignedShape>(run, record);
  if (workload == "grow") return run_independent<GrowWorker, GrowShape>(run, record);
  if (workload == "large") return run_large(run, record);
  if (workload == "phases") return run_phases(run, record);
  if (workload == "pipe") return run_pipe(run, record);
  if (workload == "plateau") return run_plateau(run, record);
  if (workload == "requests") return run_requests(run, record);
  fail("a lane of the family blocks names no workload of it");
}

}  // namespace hz::bench
