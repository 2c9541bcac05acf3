// SPDX-License-Identifier: Apache-2.0
//
// The moments of a run at which memory and usage are read. Read in any other order, or with the wrong number
// of workers alive, the numbers would carry wrong names, so such a run ends with status 3. Read by main and
// the crew.
//
//   empty    before the harness has any memory
//   start    fair: all workers are about to leave the barrier; upstream: before the first worker is created
//   end      every worker has freed everything
//   idle     workers alive and parked, 50 ms later, or as --settle says
//   after    workers joined, harness memory unmapped, as much later
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lane/lane.hpp"
#include "support/process.hpp"

namespace hz::bench {

enum class Moment { kEmpty, kStart, kEnd, kIdle, kAfter };
inline constexpr std::array kMomentNames = {"empty", "start", "end", "idle", "after"};

// How many threads made by start_thread (crew.hpp) exist.
inline std::atomic<unsigned> alive_workers{0};

class Moments {
 public:
  // `workers`: how many must be alive at this moment.
  void read(Moment moment, unsigned workers) {
    if (static_cast<std::size_t>(moment) != size_) fail("a moment of the run was read out of order");
    if (alive_workers.load(std::memory_order_relaxed) != workers) {
      fail("a moment of the run was read with the wrong number of workers alive");
    }
    // Between start and end nothing is read that takes time.
    if (moment != Moment::kStart && moment != Moment::kEnd) read_memory();
    usage_[size_] = Usage::now();
    order_[size_++] = moment;
  }

  bool complete() const { return size_ == order_.size(); }
  const std::array<Moment, 5>& order() const { return order_; }

  std::uint64_t rss_kib(Moment moment) const { return rss_kib_[static_cast<std::size_t>(moment)]; }

  // The kernel's peak comes from counters that lag by some pages; what was read exactly is a lower bound.
  std::uint64_t peak_kib() const {
    return std::max({peak_rss_kib(), rss_kib(Moment::kIdle), rss_kib(Moment::kAfter)});
  }

  // 0 where the system does not count it.
  std::uint64_t committed_kib(Moment moment) const {
    return committed_[static_cast<std::size_t>(moment)].kib;
  }
  std::uint64_t peak_committed_kib() const {
    return committed_[static_cast<std::size_t>(Moment::kAfter)].peak_kib;
  }

  Usage usage() const {
    return usage_[static_cast<std::size_t>(Moment::kEnd)].since(
        usage_[static_cast<std::size_t>(Moment::kStart)]);
  }

 private:
  void read_memory() {
    rss_kib_[size_] = bench::rss_kib();
    committed_[size_] = Committed::now();
  }

  // Invariant: order_[0, size_) are the moments read so far.
  std::array<Moment, 5> order_{};
  std::array<std::uint64_t, 5> rss_kib_{};
  std::array<Committed, 5> committed_{};
  std::array<Usage, 5> usage_{};
  std::size_t size_ = 0;
};

}  // namespace hz::bench
