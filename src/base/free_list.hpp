// SPDX-License-Identifier: Apache-2.0
//
// Free slots as linked lists: the layout of a free slot, a chain that a thread holds, and a lock-free list
// that threads share. Used by the lines whose free slots carry their links (linked bins, owner lists).
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

// A private list with its end and its length; last->next is meaningless. Empty: all of it zero.
struct Chain {
  FreeSlot* first;
  FreeSlot* last;
  unsigned count;

  static Chain of(void* slot) {
    Chain chain = {};
    chain.push(slot);
    return chain;
  }

  HZ_INLINE void push(void* p) {
    auto* slot = static_cast<FreeSlot*>(p);
    slot->next = first;
    if (first == nullptr) last = slot;
    // A fork may copy a chain that another thread is building: whatever `first` shows is whole.
    std::atomic_signal_fence(std::memory_order_release);
    first = slot;
    ++count;
  }

  // Moves at most `n` of them to `out`; how many.
  unsigned take(void** out, unsigned n) {
    unsigned taken = 0;
    for (; taken < n && count != 0; --count) {
      out[taken++] = first;
      if (count != 1) first = first->next;
    }
    if (count == 0) first = nullptr;
    return taken;
  }
};

// A chain in a shared list, whose first slot has room for the chain's end and length (48 bytes and more). The
// thread that takes it need not walk it, which would be a cache miss a slot, one after the other.
struct Batch {
  FreeSlot slot;
  FreeSlot* last;
  FreeSlot* next_batch;  // a Batch
  std::uint64_t count;
};
inline constexpr std::size_t kBatchBytes = sizeof(Batch);

// Any number of threads push chains and take them. A thread takes the whole list with one exchange, so there
// is no ABA problem. It pushes the rest back, with one compare-and-swap unless others pushed meanwhile.
// `slot_bytes` is the same for all slots of a list; below kBatchBytes every slot is a batch.
class SharedList {
 public:
  HZ_INLINE bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }

  // chain.count > 0
  void push(const Chain& chain, std::size_t slot_bytes) {
    const bool roomy = slot_bytes >= kBatchBytes;
    auto* first = reinterpret_cast<Batch*>(chain.first);
    if (roomy) {
      chain.last->next = nullptr;
      first->last = chain.last;
      first->count = chain.count;
    }
    FreeSlot* head = head_.load(std::memory_order_relaxed);
    do {
      if (roomy) {
        first->next_batch = head;
      } else {
        chain.last->next = head;
      }
      // Release: the chain is visible to the thread that takes it.
    } while (!head_.compare_exchange_weak(head, chain.first, std::memory_order_release,
                                          std::memory_order_relaxed));
  }

  // At least one slot unless the list is empty, and no batch more than it takes to have `want`.
  Chain take(unsigned want, std::size_t slot_bytes) {
    Chain taken = {};
    if (empty()) return taken;
    // Acquire: pairs with push. The whole list is ours alone from here on.
    FreeSlot* rest = head_.exchange(nullptr, std::memory_order_acquire);
    const bool roomy = slot_bytes >= kBatchBytes;
    while (rest != nullptr && taken.count < want)
      rest = roomy ? join_batch(taken, rest) : join_slot(taken, rest);
    if (rest != nullptr) give_back(rest, roomy);
    return taken;
  }

 private:
  static FreeSlot* join_slot(Chain& taken, FreeSlot* slot) {
    if (taken.count == 0) taken.first = slot;
    taken.last = slot;  // linked already
    ++taken.count;
    return slot->next;
  }
  static FreeSlot* join_batch(Chain& taken, FreeSlot* first) {
    auto* batch = reinterpret_cast<Batch*>(first);
    (taken.count == 0 ? taken.first : taken.last->next) = first;
    taken.last = batch->last;
    taken.count += static_cast<unsigned>(batch->count);
    return batch->next_batch;
  }

  // `rest` ends in null; its length is unknown.
  void give_back(FreeSlot* rest, bool roomy) {
    for (;;) {
      FreeSlot* expected = nullptr;
      // Release: as in push.
      if (head_.compare_exchange_strong(expected, rest, std::memory_order_release, std::memory_order_relaxed))
        return;
      // Others pushed meanwhile: take what they pushed (short) and hang the rest behind it.
      FreeSlot* recent = head_.exchange(nullptr, std::memory_order_acquire);  // acquire: as in take
      if (recent == nullptr) continue;
      FreeSlot* last = recent;
      for (FreeSlot* next = following(last, roomy); next != nullptr; next = following(last, roomy))
        last = next;
      if (roomy) {
        reinterpret_cast<Batch*>(last)->next_batch = rest;
      } else {
        last->next = rest;
      }
      rest = recent;
    }
  }
  static FreeSlot* following(FreeSlot* slot, bool roomy) {
    return roomy ? reinterpret_cast<Batch*>(slot)->next_batch : slot->next;
  }

  std::atomic<FreeSlot*> head_{nullptr};
};

}  // namespace hz
