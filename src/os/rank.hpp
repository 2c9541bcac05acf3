// SPDX-License-Identifier: Apache-2.0
//
// The order in which a thread may wait for locks. A debug build stops a thread that waits for a lock while it
// has one of a higher rank: another thread could wait the other way round, and both would wait for ever.
// Called by lock.hpp and by the ways into a first-class heap. Cost: none in other builds.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/compiler.hpp"

namespace hz::os {

// A thread that has a lock may wait for one of a higher rank. It may also wait for one more of kHeap, the row
// of deleted heaps, and for one more of kShelf, the lower address first.
enum class Rank : std::uint8_t {
  kOpening,    // the start of line hz7
  kHeapTable,  // which rows of first-class heaps are free
  kHeap,       // such a row
  kThreads,    // the list of threads
  kState,      // a thread's state: one crossing of the boundary
  kPurger,     // the purger's state, for other threads
  kShelf,      // spans that have slots to give
  kWaiting,    // slots that wait between threads
  kSource,     // runs
  kMagazines,  // empty magazines
  kSamples,    // guarded samples, and the heap profile
  kFunctions,  // names of Python's functions
  kFile,       // the statistics file
};

// Ranks of the locks that a thread has, or waits for.
class Ranks {
 public:
  using Before = std::uint32_t;

  bool may_wait_for(Rank rank) const {
    const bool twice = rank == Rank::kHeap || rank == Rank::kShelf;
    return ranks_ < (twice ? 2 * bit_of(rank) : bit_of(rank));
  }
  // Requires: the thread may wait for a lock of that rank. Returns what remove() takes.
  Before add(Rank rank) {
    check(may_wait_for(rank));
    const Before before = ranks_;
    ranks_ |= bit_of(rank);
    return before;
  }
  void remove(Before before) { ranks_ = before; }

 private:
  static constexpr std::uint32_t bit_of(Rank rank) { return std::uint32_t{1} << static_cast<unsigned>(rank); }

  std::uint32_t ranks_ = 0;
};

// The same in a build that does not check.
class UncheckedRanks {
 public:
  struct Before {};

  static Before add(Rank /*rank*/) { return {}; }
  static void remove(Before /*before*/) {}
};

using RanksOfThread = std::conditional_t<kDebug, Ranks, UncheckedRanks>;

}  // namespace hz::os
