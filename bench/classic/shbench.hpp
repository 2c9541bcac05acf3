// SPDX-License-Identifier: Apache-2.0
//
// The workload of sh6bench and sh8bench, after the stress tests of MicroQuill: arrays are filled with blocks
// of a fixed distribution of sizes and freed partly in the order of allocation, partly in reverse. An
// iteration is one sweep:
//   fill     sizes min..max, then min..max/2, then min..max/3, ... and at last min: size s comes max / s
//            times
//   free     of each three neighbours in the array the first ones in the order of allocation, then the second
//            ones in reverse order; the third ones (`last_third`) either live until their place is filled
//            again (sh6bench), or are freed by the next thread (sh8bench)
// Run by the classic family, and by a unit test with an allocator that keeps books.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "ring/spsc_ring.hpp"

namespace hz::bench {

struct ShbenchShape {
  explicit ShbenchShape(const Run& run)
      : min_size(run.number("min_size")),
        max_size(run.number("max_size")),
        iterations(run.iterations()),
        send(run.lane.definition.text("last_third") == "sent to the next thread"),
        ring(run.number("ring")),
        touch(run.touch) {}

  // Blocks in a sweep.
  std::size_t blocks() const {
    std::size_t count = 0;
    for (std::uint32_t s = min_size; s <= max_size; ++s) count += max_size / s;
    return count;
  }

  std::uint32_t min_size;
  std::uint32_t max_size;
  std::uint64_t iterations;
  bool send;
  std::uint32_t ring;  // capacity of what is on the way to the next thread, a power of two
  bool touch;
};

template <class Allocator>
class Shbench {
 public:
  // `slots` has shape.blocks() entries, all null. The rings are not used unless shape.send is set.
  Shbench(const ShbenchShape& shape, void** slots, SpscRing& send, SpscRing& receive)
      : shape_(shape), slots_(slots), blocks_(shape.blocks()), send_(send), receive_(receive) {}

  Tally run() {
    Caller<Allocator> caller;
    for (std::uint64_t i = 0; i < shape_.iterations; ++i) {
      drain(caller);
      fill(caller);
      free_two_thirds(caller);
      if (shape_.send) send_last_third(caller);
    }
    caller.release_all(slots_, blocks_);
    if (shape_.send) drain_to_end(caller);
    return caller.tally();
  }

 private:
  void fill(Caller<Allocator>& caller) {
    void** slot = slots_;
    for (std::uint32_t part = 1; part <= shape_.max_size / shape_.min_size; ++part) {
      for (std::uint32_t size = shape_.min_size; size <= shape_.max_size / part; ++size, ++slot) {
        if (*slot != nullptr) caller.release(*slot);
        *slot = caller.allocate(size);
        if (shape_.touch) write_ends(*slot, size);
      }
    }
  }

  void free_two_thirds(Caller<Allocator>& caller) {
    for (std::size_t i = 0; i < blocks_; i += 3) take(i, caller);
    for (std::size_t i = blocks_; i-- > 0;) {
      if (i % 3 == 1) take(i, caller);
    }
  }

  void take(std::size_t i, Caller<Allocator>& caller) {
    caller.release(slots_[i]);
    slots_[i] = nullptr;
  }

  // Goes on freeing what arrives while the next thread's ring is full: it may be waiting for this thread to
  // do so.
  void send_last_third(Caller<Allocator>& caller) {
    for (std::size_t i = 2; i < blocks_; i += 3) {
      while (!send_.push(slots_[i])) {
        drain(caller);
        sched_yield();
      }
      caller.sent();
      slots_[i] = nullptr;
    }
  }

  void drain(Caller<Allocator>& caller) {
    receive_.drain([&caller](void* p) { caller.release(p); });
  }

  void drain_to_end(Caller<Allocator>& caller) {
    send_.close();
    for (;;) {
      const bool last = receive_.closed();  // read first: whatever was sent before it is drained below
      drain(caller);
      if (last) return;
      sched_yield();
    }
  }

  ShbenchShape shape_;
  void** slots_;
  std::size_t blocks_;
  SpscRing& send_;
  SpscRing& receive_;
};

}  // namespace hz::bench
