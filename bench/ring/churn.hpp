// SPDX-License-Identifier: Apache-2.0
//
// What one thread of a ring lane does, and how its operations are counted. Called by the ring lanes with
// malloc and by the unit tests with an allocator that keeps books.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>

#include "lane/allocator.hpp"
#include "lane/backlog.hpp"
#include "lane/lane.hpp"
#include "ring/spsc_ring.hpp"

namespace hz::bench {

// The numbers of a ring lane, out of its definition.
struct RingShape {
  RingShape() = default;
  explicit RingShape(const Run& run)
      : min_size(run.number("min_size")),
        max_size(run.number("max_size")),
        iterations(run.iterations()),
        remote_percent(run.number("remote_percent")),
        slots(run.number("slots")),
        ring(run.number("ring")),
        touch(run.touch && run.mode == Mode::kFair),
        written(run.written) {}  // the published programs wrote nothing into their blocks

  std::uint32_t min_size = 0;
  std::uint32_t max_size = 0;
  std::uint64_t iterations = 0;
  std::uint32_t remote_percent = 0;
  std::uint32_t slots = 0;
  std::uint32_t ring = 0;
  bool touch = true;
  bool written = false;
};

struct Counts {
  std::uint64_t allocated = 0;
  std::uint64_t freed_local = 0;
  std::uint64_t sent = 0;
  std::uint64_t drained = 0;
  std::uint64_t fallbacks = 0;  // ring full, freed locally instead of sent

  Counts& operator+=(const Counts& o) {
    allocated += o.allocated;
    freed_local += o.freed_local;
    sent += o.sent;
    drained += o.drained;
    fallbacks += o.fallbacks;
    return *this;
  }

  // fair: one malloc or one free. upstream counts a send as well, so a block that travels counts 3 instead
  // of 2.
  std::uint64_t ops(Mode mode) const {
    const std::uint64_t calls = allocated + freed_local + fallbacks + drained;
    return mode == Mode::kFair ? calls : calls + sent;
  }

  // More than 0.1 % of the blocks that should have travelled did not: the run measured another workload.
  bool dirty() const { return fallbacks * 1000 > sent + fallbacks; }
};

// Allocator: static void* allocate(size_t), static void release(void*).
template <class Allocator>
class Churn {
 public:
  // `slots` has shape.slots entries, all null.
  Churn(const RingShape& shape, void** slots, SpscRing& send, SpscRing& receive, Backlog<SpscRing>& backlog)
      : shape_(shape), slots_(slots), send_(send), receive_(receive), backlog_(backlog) {}

  template <class Random>
  void iterate(Random random) {
    const RingShape shape =
        shape_;  // copies: the allocator is opaque, so members would be loaded after every call
    const std::uint32_t span = shape.max_size - shape.min_size + 1;
    void** const slots = slots_;
    Counts counts;
    for (std::uint64_t i = 0; i < shape.iterations; ++i) {
      counts.drained += receive();
      void** slot = slots + random.below(shape.slots);
      const std::size_t size = shape.min_size + random.below(span);
      if (*slot == nullptr) {
        *slot = checked(Allocator::allocate(size));
        if (shape.touch) write(*slot, size, shape.written);
        ++counts.allocated;
        continue;
      }
      void* p = *slot;
      *slot = nullptr;
      if (shape.remote_percent == 0 || random.below(100) >= shape.remote_percent) {
        Allocator::release(p);
        ++counts.freed_local;
      } else if (send_.push(p)) {
        ++counts.sent;
      } else {
        Allocator::release(p);
        ++counts.fallbacks;
      }
    }
    counts_ += counts;
  }

  // Frees what is left in the slots and says that nothing more will be sent.
  void finish() {
    for (std::uint32_t i = 0; i < shape_.slots; ++i) {
      if (slots_[i] == nullptr) continue;
      Allocator::release(slots_[i]);
      slots_[i] = nullptr;
      ++counts_.freed_local;
    }
    send_.close();
  }

  // Frees what still arrives until the sender has finished; call after finish(). Yields, because with more
  // threads than CPUs the sender may be waiting for this one's CPU.
  void drain_to_end() {
    for (;;) {
      const bool last = receive_.closed();  // read first: whatever was sent before it is drained below
      counts_.drained += receive();
      if (last) return;
      sched_yield();
    }
  }

  const Counts& counts() const { return counts_; }

 private:
  std::uint64_t receive() {
    return receive_.drain(Allocator::release, [this] { backlog_.look(); });
  }

  RingShape shape_;
  void** slots_;
  SpscRing& send_;
  SpscRing& receive_;
  Backlog<SpscRing>& backlog_;
  Counts counts_;
};

}  // namespace hz::bench
