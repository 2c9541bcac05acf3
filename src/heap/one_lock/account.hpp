// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the heap: what it holds, in bytes, and what it has done. The limits are compared with them,
// and statistics, `hz stat` and the debugger read them. Called by everything here; costs an addition.
// Lock: the caller holds HeapLock.
#pragma once

#include "base/size_classes.hpp"
#include "box/source/memory_limits.hpp"
#include "os/probe.hpp"

namespace hz::one_lock {

struct Account {
  static inline constinit MemoryLimits limits;
  static inline constinit std::size_t used_bytes = 0;   // of granules in spans, and of those being purged
  static inline constinit std::size_t dirty_bytes = 0;  // of free granules that have pages
  static inline constinit std::size_t huge_bytes = 0;   // usable, of huge blocks and those being mapped
  static inline constinit std::size_t huge_blocks = 0, regions = 0;
  static inline constinit std::uint64_t purges = 0, purged_bytes = 0, begun = 0, ended = 0;  // spans

  HZ_INLINE static std::size_t held_bytes() { return used_bytes + dirty_bytes + huge_bytes; }
  static std::size_t metadata_bytes() { return regions * kTouchedNotes + huge_blocks * kPage; }
  // Bytes by which the heap may grow before it passes a limit.
  static std::size_t room() {
    const std::size_t most = limits.soft < limits.hard ? limits.soft : limits.hard, held = held_bytes();
    return held < most ? most - held : 0;
  }
  // Returns true if the hard limit allows growth by `more` bytes.
  static bool has_room(std::size_t more) {
    if (held_bytes() + more <= limits.hard) return true;
    os::probe::limit(os::probe::Limit::kHard, more);
    return false;
  }

  static constexpr std::size_t kTouchedNotes = 3 * kPage;  // of a region in common use
};

// What the program has allocated and freed.
struct Counts {
  std::uint64_t allocs[3], frees[3];  // small, medium, large
  std::size_t live, peak;

  void allocated(Bin bin, std::size_t bytes) {
    ++allocs[kind(bin)];
    grown(bytes);
  }
  void freed(Bin bin, std::size_t bytes) {
    ++frees[kind(bin)];
    live -= bytes;
  }
  void grown(std::size_t bytes) {
    live += bytes;
    if (live > peak) peak = live;
  }
  static unsigned kind(Bin bin) { return bin <= kLastSmallBin ? 0 : bin <= kLastMediumBin ? 1 : 2; }
};

}  // namespace hz::one_lock
