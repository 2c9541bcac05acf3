// SPDX-License-Identifier: Apache-2.0
//
// The blocks that wait in the queues of a run: the harness's doing, and part of the peak. Used by the
// families whose threads send each other blocks, rings and interleaved.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace hz::bench {

// A queue in which more wait when it is drained belongs to a thread that was not on a processor for a while.
inline constexpr std::uint64_t kOverdue = 64;

// All queues of a run, and the most blocks that were seen in them together. They are looked at when one is
// drained that was overdue, because then there are many. Queue: std::uint64_t waiting() const, for any
// thread.
template <class Queue>
class Backlog {
 public:
  Backlog(const Queue* queues, unsigned count) : queues_(queues), count_(count) {}

  // Any thread.
  void look() {
    std::uint64_t blocks = 0;
    for (unsigned i = 0; i < count_; ++i) blocks += queues_[i].waiting();
    std::uint64_t most = most_.load(std::memory_order_relaxed);
    while (most < blocks && !most_.compare_exchange_weak(most, blocks, std::memory_order_relaxed)) {
    }
  }

  std::uint64_t blocks() const { return most_.load(std::memory_order_relaxed); }

  // What they keep resident at least, when sizes are drawn evenly from min_size to max_size and the first and
  // the last byte are written: of a long block a page, because its ends may share theirs with those of its
  // neighbours.
  std::uint64_t kib(std::uint32_t min_size, std::uint32_t max_size) const {
    constexpr std::uint64_t kPage = 4096;
    std::uint64_t sum = 0;
    for (std::uint64_t size = min_size; size <= max_size; ++size) sum += std::min(size, kPage);
    return blocks() * (sum / (max_size - min_size + 1)) / 1024;
  }

 private:
  const Queue* queues_;
  unsigned count_;
  std::atomic<std::uint64_t> most_{0};
};

}  // namespace hz::bench
