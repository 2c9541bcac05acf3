// SPDX-License-Identifier: Apache-2.0
//
// What one thread of a ring lane does, and how its operations are counted. Called by the `ring` program with malloc
// and by the unit tests with an allocator that keeps books.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ring/lanes.hpp"
#include "ring/spsc_ring.hpp"
#include "support/rng.hpp"

namespace hz::bench {

// fair: the one to judge by. upstream: the published shape with its flaws (generator, counting, loose start and end).
enum class Mode { kUpstream, kFair };

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

  // fair: one malloc or one free. upstream counts a send as well, so a block that travels counts 3 instead of 2.
  std::uint64_t ops(Mode mode) const {
    const std::uint64_t calls = allocated + freed_local + fallbacks + drained;
    return mode == Mode::kFair ? calls : calls + sent;
  }

  // More than 0.1 % of the blocks that should have travelled did not: the run measured another workload.
  bool dirty() const { return fallbacks * 1000 > sent + fallbacks; }
};

// The generator of thread `index`.
template <Mode kMode>
auto make_random(std::uint64_t seed, unsigned index) {
  if constexpr (kMode == Mode::kFair) {
    return Xorshift64Star(splitmix64(seed + index));
  } else {
    return Lcg32(static_cast<std::uint32_t>(seed + 977U * index));
  }
}

// Allocator: static void* allocate(size_t), static void release(void*).
template <class Allocator>
class Churn {
 public:
  // `slots` has lane.slots entries, all null.
  Churn(const Lane& lane, bool touch, void** slots, SpscRing& send, SpscRing& receive)
      : lane_(lane), touch_(touch), slots_(slots), send_(send), receive_(receive) {}

  template <class Random>
  void iterate(Random random) {
    const Lane lane = lane_;  // copies: the allocator is opaque, so members would be loaded again after every call
    const std::uint32_t span = lane.max_size - lane.min_size + 1;
    const bool touch = touch_;
    void** const slots = slots_;
    Counts counts;
    for (std::uint64_t i = 0; i < lane.iterations; ++i) {
      counts.drained += receive_.drain(Allocator::release);
      void** slot = slots + random.below(lane.slots);
      const std::size_t size = lane.min_size + random.below(span);
      if (*slot == nullptr) {
        *slot = allocate(size, touch);
        ++counts.allocated;
        continue;
      }
      void* p = *slot;
      *slot = nullptr;
      if (lane.remote_percent == 0 || random.below(100) >= lane.remote_percent) {
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
    for (std::uint32_t i = 0; i < lane_.slots; ++i) {
      if (slots_[i] == nullptr) continue;
      Allocator::release(slots_[i]);
      slots_[i] = nullptr;
      ++counts_.freed_local;
    }
    send_.close();
  }

  // Frees what still arrives until the sender has finished; call after finish(). Yields, because with more threads
  // than CPUs the sender may be waiting for this one's CPU.
  void drain_to_end() {
    for (;;) {
      const bool last = receive_.closed();  // read first: whatever was sent before it is drained below
      counts_.drained += receive_.drain(Allocator::release);
      if (last) return;
      sched_yield();
    }
  }

  const Counts& counts() const { return counts_; }

 private:
  static void* allocate(std::size_t size, bool touch) {
    void* p = Allocator::allocate(size);
    if (p == nullptr) [[unlikely]] {
      std::fprintf(stderr, "ring: malloc(%zu) failed\n", size);
      std::_Exit(3);
    }
    if (touch) {
      volatile char* bytes = static_cast<char*>(p);
      bytes[0] = 1;
      bytes[size - 1] = 1;
    }
    return p;
  }

  Lane lane_;
  bool touch_;
  void** slots_;
  SpscRing& send_;
  SpscRing& receive_;
  Counts counts_;
};

}  // namespace hz::bench
