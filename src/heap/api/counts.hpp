// SPDX-License-Identifier: Apache-2.0
//
// Statistics of blocks: how many were allocated and freed, by kind of size, and their bytes. Called by the
// slow paths with the thread's lock held; costs a load unless operations are counted, for then all take the
// slow paths.
#pragma once

#include "heap/huge/huge.hpp"

namespace hz {

template <class Line>
struct Counts {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Observe = typename Line::Observe;

  // Counts a block of a class, or in a run. Samples have a class, and lie in a run.
  static void allocated(Thread& t, Bin bin, const void* block) {
    count(t, Event::kAllocSmall, Event::kBytesAllocated, bin, block);
  }
  static void freed(Thread& t, Bin bin, const void* block) {
    count(t, Event::kFreeSmall, Event::kBytesFreed, bin, block);
  }
  // Counts a run that has another size now.
  static void resized(Thread& t, std::size_t before, std::size_t bytes) {
    if (!S::global.counting.load(std::memory_order_relaxed)) return;
    Observe::count(t.observe, Event::kBytesFreed, before);
    Observe::count(t.observe, Event::kBytesAllocated, bytes);
  }

 private:
  static void count(Thread& t, Event small, Event total, Bin bin, const void* block) {
    if (!S::global.counting.load(std::memory_order_relaxed)) return;
    Observe::count(t.observe, kind_of(small, bin), 1);
    Observe::count(t.observe, total, bin == kHugeBin ? Huge<Line>::run_bytes(block) : bin_size(bin));
  }
  static Event kind_of(Event small, Bin bin) {
    const unsigned kind = bin <= kLastSmallBin ? 0 : bin <= kLastMediumBin ? 1 : 2;
    return static_cast<Event>(static_cast<unsigned>(small) + kind);
  }
};

}  // namespace hz
