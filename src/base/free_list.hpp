// SPDX-License-Identifier: Apache-2.0
//
// Free slots as linked lists: the layout of a free slot, a chain that a thread holds, and a lock-free list that threads
// share. Used by the lines whose free slots carry their links (linked bins, stashes, central lists).
//
//   free slot:  word 0 = next, word 1 = mark (see the guard box); the rest is untouched
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.hpp"

namespace hz {

struct FreeSlot {
  FreeSlot* next;
  std::uint64_t mark;
};

// A private list with its end and its length; last->next is meaningless.
struct Chain {
  FreeSlot* first = nullptr;
  FreeSlot* last = nullptr;
  unsigned count = 0;

  HZ_INLINE void push(FreeSlot* slot) {
    slot->next = first;
    if (first == nullptr) last = slot;
    // A fork may copy a chain that another thread is building: whatever `first` shows is whole.
    std::atomic_signal_fence(std::memory_order_release);
    first = slot;
    ++count;
  }
};

// Any number of threads push chains and take them. Whoever takes gets the whole list with one exchange, so there is no
// ABA problem; what was not wanted is given back, which is one compare-and-swap unless others pushed meanwhile.
class SharedList {
 public:
  HZ_INLINE bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }

  void push(const Chain& chain) {
    FreeSlot* head = head_.load(std::memory_order_relaxed);
    do {
      chain.last->next = head;
      // Release: the links of the chain are visible to whoever takes it.
    } while (!head_.compare_exchange_weak(head, chain.first, std::memory_order_release, std::memory_order_relaxed));
  }

  // At most `want` slots. Walks what it takes, nothing more.
  Chain take(unsigned want) {
    Chain taken;
    if (empty()) return taken;
    // Acquire: pairs with push. The whole list is ours alone from here on.
    FreeSlot* first = head_.exchange(nullptr, std::memory_order_acquire);
    if (first == nullptr) return taken;
    taken = {first, first, 1};
    while (taken.count < want && taken.last->next != nullptr) {
      taken.last = taken.last->next;
      ++taken.count;
    }
    if (taken.last->next != nullptr) give_back(taken.last->next);
    return taken;
  }

 private:
  // `rest` ends in null; its length is unknown.
  void give_back(FreeSlot* rest) {
    for (;;) {
      FreeSlot* expected = nullptr;
      // Release: as in push.
      if (head_.compare_exchange_strong(expected, rest, std::memory_order_release, std::memory_order_relaxed)) return;
      // Others pushed meanwhile: take what they pushed (short) and hang the rest behind it.
      FreeSlot* recent = head_.exchange(nullptr, std::memory_order_acquire);  // acquire: as in take
      if (recent == nullptr) continue;
      FreeSlot* last = recent;
      while (last->next != nullptr) last = last->next;
      last->next = rest;
      rest = recent;
    }
  }

  std::atomic<FreeSlot*> head_{nullptr};
};

}  // namespace hz
