// SPDX-License-Identifier: Apache-2.0
//
// The interleaved lanes: every thread allocates, and frees at once or puts the block into the inbox of
// another thread, which frees it soon after. Few blocks are live at any time, so what is resident is the
// allocator's own doing.
#include "interleaved/interleaved.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

#include "interleaved/exchange.hpp"
#include "interleaved/inbox.hpp"
#include "lane/allocator.hpp"
#include "lane/crew.hpp"
#include "lane/random.hpp"
#include "support/harness_memory.hpp"

namespace hz::bench {
namespace {

struct alignas(64) InterleavedWorker {
  Exchange<SystemAllocator> exchange;
  Gate& meeting;  // all workers
  Mode mode;
  std::uint64_t seed;
  unsigned index;

  void timed() {
    // The published program drew from this generator too.
    exchange.iterate(make_random<Mode::kFair>(seed, index));
    meeting.wait();
    exchange.drain();
    meeting.wait();
    exchange.final_pairs();
    if (mode == Mode::kFair) exchange.close();
  }

  void untimed() {
    if (mode == Mode::kUpstream) exchange.close();
  }
};

}  // namespace

void run_interleaved(const Run& run, Record& record) {
  const ExchangeShape shape(run);
  const unsigned threads = run.threads;
  record.written = shape.written;

  HarnessMemory memory;
  auto* workers = memory.take<InterleavedWorker>(threads);
  auto* inboxes = memory.take<Inbox<SystemAllocator>>(threads);
  using Inboxes = Backlog<Inbox<SystemAllocator>>;
  auto& backlog = *new (memory.take<Inboxes>(1)) Inboxes(inboxes, threads);
  Gate& meeting = *new (memory.take<Gate>(1)) Gate(threads);
  for (unsigned i = 0; i < threads; ++i) {
    new (inboxes + i) Inbox<SystemAllocator>();
    new (workers + i) InterleavedWorker{Exchange<SystemAllocator>(shape, inboxes, threads, i, backlog),
                                        meeting, run.mode, run.seed, i};
  }
  run_crew(run, memory, workers, record);

  record.ops = shape.iterations * threads;
  if (shape.touch) record.backlog_kib = backlog.kib(shape.min_size, shape.max_size);
  for (unsigned i = 0; i < threads; ++i) {
    record.sends += workers[i].exchange.sent();
    record.ring_high_water = std::max(record.ring_high_water, inboxes[i].high_water());
  }
}

}  // namespace hz::bench
