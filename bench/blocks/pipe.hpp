// SPDX-License-Identifier: Apache-2.0
//
// The workload of remote64k and pipe_64: one thread allocates every block, another one frees it, and a
// bounded queue is between them. Neither ever does the other's work: the producer waits while the queue is
// full, the consumer while it is empty, both by yielding. Run by the blocks family, and by a unit test with
// an allocator that keeps books.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "ring/spsc_ring.hpp"

namespace hz::bench {

struct PipeShape {
  explicit PipeShape(const Run& run)
      : size(run.lane.definition["size"]),
        queue(run.lane.definition["queue"]),
        iterations(run.iterations()),
        touch(run.touch) {}

  std::size_t size;
  std::size_t queue;  // a power of two
  std::uint64_t iterations;
  bool touch;
};

template <class Allocator>
Tally produce(const PipeShape shape, SpscRing& queue) {
  Caller<Allocator> caller;
  for (std::uint64_t i = 0; i < shape.iterations; ++i) {
    void* p = caller.allocate(shape.size);
    if (shape.touch) write_ends(p, shape.size);
    while (!queue.push(p)) sched_yield();
    caller.sent();
  }
  queue.close();
  return caller.tally();
}

template <class Allocator>
Tally consume(SpscRing& queue) {
  Caller<Allocator> caller;
  for (;;) {
    const bool last = queue.closed();  // read first: whatever was pushed before it is drained below
    queue.drain([&caller](void* p) { caller.release(p); });
    if (last) return caller.tally();
    sched_yield();
  }
}

}  // namespace hz::bench
