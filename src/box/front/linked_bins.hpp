// SPDX-License-Identifier: Apache-2.0
//
// Thread bins as linked lists: heads and counts in separate arrays, last in first out, links in the free slots. Used by
// hz3. A pop is two loads, a store and a count; admission counts down the room that is left, so that one decrement both
// counts and finds the bin full.
//
//   length(list of bin) == capacity[bin] - room[bin]
#pragma once

#include "base/plain_word.hpp"
#include "box/front/contract.hpp"

namespace hz {

struct LinkedBins {
  struct PerThread {
    FreeSlot* heads[kBins] = {};
    OwnerWord<std::int32_t> room[kBins];
    OwnerWord<std::int32_t> capacity[kBins];
  };

  HZ_INLINE static void* pop(PerThread& t, Bin bin) {
    FreeSlot* slot = t.heads[bin];
    if (HZ_UNLIKELY(slot == nullptr)) return nullptr;
    t.heads[bin] = slot->next;
    t.room[bin].add(1);
    return slot;
  }

  // In two steps, so that the hot one is a single decrement of memory.
  HZ_INLINE static bool admit(PerThread& t, Bin bin) { return HZ_LIKELY(!t.room[bin].take_one_too_many()); }
  static void turn_away(PerThread& t, Bin bin) { t.room[bin].add(1); }

  HZ_INLINE static void put(PerThread& t, Bin bin, void* p) {
    auto* slot = static_cast<FreeSlot*>(p);
    slot->next = t.heads[bin];
    // The slot before the head, also for the compiler: a fork may copy the thread's state between the two.
    std::atomic_signal_fence(std::memory_order_release);
    t.heads[bin] = slot;
  }

  static void fill(PerThread& t, Bin bin, const Chain& chain) {
    chain.last->next = t.heads[bin];
    t.heads[bin] = chain.first;
    t.room[bin].add(-static_cast<std::int32_t>(chain.count));
  }

  static Chain drain(PerThread& t, Bin bin, unsigned n) {
    Chain chain;
    if (n == 0 || t.heads[bin] == nullptr) return chain;
    chain = {t.heads[bin], t.heads[bin], 1};
    while (chain.count < n && chain.last->next != nullptr) {
      chain.last = chain.last->next;
      ++chain.count;
    }
    t.heads[bin] = chain.last->next;
    t.room[bin].add(static_cast<std::int32_t>(chain.count));
    return chain;
  }

  static unsigned count(const PerThread& t, Bin bin) {
    const std::int32_t n = t.capacity[bin].peek() - t.room[bin].peek();
    return n > 0 ? static_cast<unsigned>(n) : 0;
  }
  static unsigned capacity(const PerThread& t, Bin bin) { return static_cast<unsigned>(t.capacity[bin].peek()); }
  static void set_capacity(PerThread& t, Bin bin, unsigned n) {
    const auto capacity = static_cast<std::int32_t>(n);
    t.room[bin].add(capacity - t.capacity[bin].peek());
    t.capacity[bin].set(capacity);
  }

  static void recount(PerThread& t) {
    for (Bin bin = 1; bin < kBins; ++bin) t.room[bin].set(t.capacity[bin].peek() - length(t, bin));
  }
  static void check(const PerThread& t, Bin bin) {
    if constexpr (kDebug) hz::check(length(t, bin) == t.capacity[bin].peek() - t.room[bin].peek());
  }

 private:
  static std::int32_t length(const PerThread& t, Bin bin) {
    std::int32_t n = 0;
    for (const FreeSlot* slot = t.heads[bin]; slot != nullptr; slot = slot->next) ++n;
    return n;
  }
};

}  // namespace hz
