// SPDX-License-Identifier: Apache-2.0
//
// The owners that a thread asks for their slots before it maps memory. They are owners without a thread,
// whose slots no thread would collect. If the box lends, they are any owners, whose threads may be waiting
// for a processor. Part of the exchange boxes that keep owners apart. A walk along at most kLooks owners,
// from where the last one of the processor ended.
#pragma once

#include <atomic>

#include "os/os.hpp"

namespace hz {

class Stealing {
 public:
  static constexpr unsigned kLooks = 64;

  // Calls `found`(owner) until it returns true. The number of an owner's threads is a hint: any thread may
  // take from any list.
  void ask(auto& owners, bool anybody, auto found) {
    const unsigned end = owners.end();
    const unsigned looks = end < kLooks ? end : kLooks;
    const unsigned from = end == looks ? 0 : here().fetch_add(looks, std::memory_order_relaxed);
    for (unsigned i = 0; i < looks; ++i) {
      const unsigned owner = (from + i) % end;
      if ((anybody || owners.threads(owner) == 0) && found(owner)) return;
    }
  }

 private:
  static constexpr unsigned kCursors = 16;
  struct alignas(64) Cursor {
    std::atomic<unsigned> next{0};
  };
  std::atomic<unsigned>& here() { return cursors_[os::current_cpu() % kCursors].next; }

  Cursor cursors_[kCursors];
};

}  // namespace hz
