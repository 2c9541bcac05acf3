// SPDX-License-Identifier: Apache-2.0
//
// The queue by which one thread hands blocks to the next: single producer, single consumer, fixed capacity,
// entries in memory that the caller provides. A push or pop costs one load and two stores; the two sides
// share a cache line only when one of them looks at the other's counter.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lane/backlog.hpp"

namespace hz::bench {

class SpscRing {
 public:
  // Invariants: popped_ <= pushed_ <= popped_ + capacity; both only grow. `capacity` must be a power of two.
  SpscRing(void** entries, std::size_t capacity) : entries_(entries), mask_(capacity - 1) {}

  // Producer. False when the ring is full.
  bool push(void* p) {
    const std::uint64_t at = pushed_.load(std::memory_order_relaxed);
    if (at - popped_seen_ > mask_) {
      popped_seen_ =
          popped_.load(std::memory_order_acquire);  // the consumer is done with the entry we overwrite
      if (at - popped_seen_ > mask_) return false;
    }
    entries_[at & mask_] = p;
    pushed_.store(at + 1,
                  std::memory_order_release);  // the entry, and the block behind it, before the counter
    return true;
  }

  // Producer, after its last push.
  void close() { closed_.store(true, std::memory_order_release); }  // the last push before the flag

  // Consumer: true once nothing will be pushed any more. Drain again after it, for what came before the flag.
  bool closed() const { return closed_.load(std::memory_order_acquire); }

  // Consumer: pops until the ring is found empty and returns the number popped. `overdue` is called before a
  // backlog of more than kOverdue is popped.
  template <class Consume, class Overdue>
  std::uint64_t drain(Consume&& consume, Overdue&& overdue) {
    const std::uint64_t first = popped_.load(std::memory_order_relaxed);
    std::uint64_t at = first;
    for (;;) {
      const std::uint64_t end = pushed_.load(std::memory_order_acquire);  // pairs with the store in push()
      if (at == end) return at - first;
      // A backlog is longest just before it is drained, so looking here misses no peak.
      if (end - at > high_water_) high_water_ = end - at;
      if (end - at > kOverdue) overdue();
      while (at != end) {
        void* p = entries_[at & mask_];
        popped_.store(++at,
                      std::memory_order_release);  // the entry has been read before it may be overwritten
        consume(p);
      }
    }
  }

  template <class Consume>
  std::uint64_t drain(Consume&& consume) {
    return drain(consume, [] {});
  }

  // Anyone: what is in it, or was a moment ago.
  std::uint64_t waiting() const {
    const std::uint64_t popped =
        popped_.load(std::memory_order_acquire);  // first, so that the other is not below it
    return pushed_.load(std::memory_order_relaxed) - popped;
  }

  // Consumer, or anyone after both sides have stopped.
  std::uint64_t high_water() const { return high_water_; }

 private:
  void** entries_;
  std::uint64_t mask_;
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  std::uint64_t popped_seen_ = 0;  // producer's copy, refreshed only when the ring looks full
  std::atomic<bool> closed_{false};
  alignas(64) std::atomic<std::uint64_t> popped_{0};
  std::uint64_t high_water_ = 0;
};

}  // namespace hz::bench
