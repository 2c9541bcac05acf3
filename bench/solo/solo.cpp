// SPDX-License-Identifier: Apache-2.0
//
// The solo lanes: every thread churns through a table of its own, nothing passes from thread to thread.
#include "solo/solo.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "lane/allocator.hpp"
#include "lane/crew.hpp"
#include "solo/draws.hpp"
#include "solo/slot_loop.hpp"
#include "support/harness_memory.hpp"

namespace hz::bench {
namespace {

template <class Draws>
struct alignas(64) SoloWorker {
  SlotLoop<SystemAllocator> loop;
  Draws draws;
  bool fair;

  void timed() {
    loop.iterate(draws);
    if (fair) loop.finish();
  }

  void untimed() {
    if (!fair) loop.finish();
  }
};

template <class Draws>
void run_with(const Run& run, Record& record) {
  const SoloShape shape(run);
  const bool fair = run.mode == Mode::kFair;
  record.touched = shape.touch;

  HarnessMemory memory;
  auto* workers = memory.take<SoloWorker<Draws>>(run.threads);
  void** slots = memory.take<void*>(std::size_t{run.threads} * shape.field.slots);
  for (unsigned i = 0; i < run.threads; ++i) {
    new (workers + i)
        SoloWorker<Draws>{SlotLoop<SystemAllocator>(shape, slots + std::size_t{i} * shape.field.slots),
                          Draws(shape.field, run.seed, i), fair};
  }
  if (run.threads == 1) {
    run_alone(memory, *workers, record);
  } else {
    run_crew(run, memory, workers, record);
  }
  for (unsigned i = 0; i < run.threads; ++i) {
    record.ops += fair ? workers[i].loop.tally().calls() : shape.iterations;
  }
}

}  // namespace

void run_solo(const Run& run, Record& record) {
  const std::string_view draws = run.lane.definition.text("draws");
  if (draws == "in turn") {
    run_with<InTurn>(run, record);
  } else if (draws == "application") {
    run_with<Application>(run, record);
  } else if (run.mode == Mode::kFair) {
    run_with<OneNumber<Mode::kFair>>(run, record);
  } else {
    run_with<OneNumber<Mode::kUpstream>>(run, record);
  }
}

}  // namespace hz::bench
