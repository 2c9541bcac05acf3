// SPDX-License-Identifier: Apache-2.0
//
// Crates: arrays of slots of one class, in which slots wait where nothing is written into free slots. Used by the
// magazine depot and by messages between threads. A crate costs one lock and one copy of at most a kilobyte; memory for
// crates comes from the system by the granule and stays, empty ones wait in one list.
#pragma once

#include <atomic>

#include "base/free_list.hpp"
#include "base/units.hpp"
#include "os/lock.hpp"

namespace hz::os {

struct Crate {
  static constexpr unsigned kSlots = 128;

  FreeSlot* next;  // a crate: it begins like a free slot, so that a SharedList chains crates, too
  std::uint32_t count, bin;
  void* slots[kSlots];

  Crate* following() const { return reinterpret_cast<Crate*>(next); }
  void follow_with(Crate* crate) { next = reinterpret_cast<FreeSlot*>(crate); }
};

class CrateStore {
 public:
  // An empty one; nullptr if there is no memory.
  Crate* take() {
    const Guarded hold(lock_);
    if (unused_ == nullptr && !more()) return nullptr;
    Crate* crate = unused_;
    unused_ = crate->following();
    return crate;
  }

  // A list of them, or none.
  void give(Crate* first) {
    if (first == nullptr) return;
    Crate* last = first;
    while (last->following() != nullptr) last = last->following();
    const Guarded hold(lock_);
    last->follow_with(unused_);
    unused_ = first;
  }

  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  bool more() {
    void* chunk = map(kGranule, kGranule);
    if (chunk == nullptr) return false;
    forbid_huge_pages(chunk, kGranule);
    bytes_.fetch_add(kGranule, std::memory_order_relaxed);
    auto* crate = static_cast<Crate*>(chunk);
    for (std::size_t left = kGranule / sizeof(Crate); left != 0; --left, ++crate) {
      crate->follow_with(unused_);
      unused_ = crate;
    }
    return true;
  }

  alignas(64) Lock lock_;
  Crate* unused_ = nullptr;
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace hz::os
