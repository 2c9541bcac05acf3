// SPDX-License-Identifier: Apache-2.0
//
// How many threads each owner has. A new thread takes over an owner that has none, and with it all that the
// dead left; else it is a new owner's first, up to the line's kOwners; beyond that threads share. Changed
// under the lock of the list of threads, read by any thread as a hint.
#pragma once

#include "os/growing_table.hpp"

namespace hz {

template <unsigned kMost>
class Owners {
 public:
  // Owners from here on never had a thread. The shared state is owner 0.
  unsigned end() const { return end_.load(std::memory_order_relaxed); }

  unsigned threads(unsigned owner) {
    const std::atomic<unsigned>* row = rows_.find(owner);
    return row != nullptr ? row->load(std::memory_order_relaxed) : 0;
  }

  unsigned for_new_thread() {
    unsigned least = 0;
    for (unsigned owner = 0; owner < end(); ++owner) {
      if (threads(owner) < threads(least)) least = owner;
      if (threads(least) == 0) return least;
    }
    if (end() == kMost || rows_.reach(end()) == nullptr) return least;
    return end_.fetch_add(1, std::memory_order_relaxed);
  }
  void joined(unsigned owner) { rows_.find(owner)->fetch_add(1, std::memory_order_relaxed); }
  void left(unsigned owner) { rows_.find(owner)->fetch_sub(1, std::memory_order_relaxed); }

  std::size_t chunk_bytes() const { return rows_.chunk_bytes(); }

 private:
  os::GrowingTable<std::atomic<unsigned>, kMost> rows_;
  std::atomic<unsigned> end_{1};
};

}  // namespace hz
