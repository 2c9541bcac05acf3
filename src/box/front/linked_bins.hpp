// SPDX-License-Identifier: Apache-2.0
//
// Thread bins as linked lists: heads and counts in separate arrays, last in first out, links in the free
// slots. Used by hz3. A pop is two loads, a store and a count; admission counts down the room that is left,
// so that one decrement both counts and finds the bin full.
//
//   length(list of bin) == capacity[bin] - room[bin]
//
// Pop and put count first and write the head last, so that a thread that stops another one anywhere sees by
// this equation whether it stands inside of one. So a remote thread can take the lists away without a further
// word on the hot path: see heap/process/revoke.hpp.
#pragma once

#include "base/free_list.hpp"
#include "base/plain_word.hpp"
#include "box/front/contract.hpp"

namespace hz {

struct LinkedBins {
  using Bundle = Chain;
  using List = FreeSlot*;
  static constexpr bool kInBand = true;
  static constexpr bool kAnyBin = false;

  struct Store {};
  struct PerThread {
    OwnerWord<FreeSlot*> heads[kBins];
    OwnerWord<std::int32_t> room[kBins];
    OwnerWord<std::int32_t> capacity[kBins];
    FreeSlot* unresolved = nullptr;  // see keep_unresolved()
    Bin unresolved_bin = 0;
    bool detached = false;  // the room tells no more than what the owner did since
  };

  static constexpr auto words() {
    return layout::Words<2>{
        layout::Word("thread.room", offsetof(PerThread, room), sizeof(std::int32_t), kBins),
        {"thread.capacity", offsetof(PerThread, capacity), sizeof(std::int32_t), kBins}};
  }

  static unsigned most(Bin) { return ~0U; }
  static void join(PerThread&, Store&) {}

  HZ_INLINE static void* pop(PerThread& t, Bin bin) {
    t.room[bin].add(1);
    in_this_order();
    FreeSlot* slot = t.heads[bin].get();
    if (HZ_UNLIKELY(slot == nullptr)) {
      t.room[apart(bin)].add(-1);
      return nullptr;
    }
    t.heads[bin].put(slot->next);
    return slot;
  }

  // In two steps, so that the hot one is a single decrement of memory.
  HZ_INLINE static bool admit(PerThread& t, Bin bin, const void* /*slot*/) {
    return HZ_LIKELY(!t.room[bin].take_one_too_many());
  }
  HZ_INLINE static void turn_away(PerThread& t, Bin bin) { t.room[apart(bin)].add(1); }

  HZ_INLINE static void put(PerThread& t, Bin bin, void* p) {
    auto* slot = static_cast<FreeSlot*>(p);
    in_this_order();
    slot->next = t.heads[bin].get();
    // The slot before the head, also for the compiler: a fork may copy the thread's state between the two.
    in_this_order();
    t.heads[bin].put(slot);
  }

  static bool is_latest(const PerThread& t, Bin bin, const void* slot) { return t.heads[bin].peek() == slot; }

  static Chain space(PerThread&, Bin, unsigned /*n*/) { return {}; }
  static void fill(PerThread& t, Bin bin, const Chain& chain) {
    chain.last->next = t.heads[bin].peek();
    t.heads[bin].set(chain.first);
    t.room[bin].add(-static_cast<std::int32_t>(chain.count));
  }

  static Chain drain(PerThread& t, Bin bin, unsigned n) {
    Chain chain = {};
    FreeSlot* head = t.heads[bin].peek();
    if (n == 0 || head == nullptr) return chain;
    chain = {head, head, 1};
    while (chain.count < n && chain.last->next != nullptr) {
      chain.last = chain.last->next;
      ++chain.count;
    }
    t.heads[bin].set(chain.last->next);
    t.room[bin].add(static_cast<std::int32_t>(chain.count));
    return chain;
  }
  static void drained(PerThread&, Bin, unsigned /*n*/) {}

  static unsigned count(const PerThread& t, Bin bin) {
    // The owner has brought at most one slot since.
    if (t.detached && t.unresolved_bin != bin) return t.heads[bin].peek() != nullptr ? 1 : 0;
    const std::int32_t n = t.capacity[bin].peek() - t.room[bin].peek();
    return n > 0 ? static_cast<unsigned>(n) : 0;
  }
  static unsigned capacity(const PerThread& t, Bin bin) {
    return static_cast<unsigned>(t.capacity[bin].peek());
  }
  static constexpr unsigned admissible(unsigned n) { return n; }
  static void set_capacity(PerThread& t, Bin bin, unsigned n) {
    const auto capacity = static_cast<std::int32_t>(n);
    t.room[bin].add(capacity - t.capacity[bin].peek());
    t.capacity[bin].set(capacity);
  }

  static std::uint64_t signature(const PerThread& t) {
    std::uint64_t sum = 0;
    for (Bin bin = 1; bin < kBins; ++bin)
      sum = sum * 31 + address(t.heads[bin].peek()) + static_cast<std::uint32_t>(t.room[bin].peek());
    return sum;
  }

  static void leave(PerThread& t) {
    for (Bin bin = 1; bin < kBins; ++bin) set_capacity(t, bin, 0);
  }

  static std::uint16_t fingerprint(const PerThread& t, Bin bin) {
    return static_cast<std::uint16_t>(std::uint64_t{count(t, bin)} * 31 +
                                      address(t.heads[bin].peek()) / kMinAlign);
  }

  // The room counts on until the owner reconciles.
  static FreeSlot* detach(PerThread& t, Bin bin) {
    t.detached = true;
    return t.heads[bin].take(nullptr);
  }

  static bool accounts_for(const PerThread& t, Bin bin, unsigned length) {
    return t.heads[bin].peek() == nullptr &&
           t.capacity[bin].peek() - t.room[bin].peek() == static_cast<int>(length);
  }

  static bool keep_unresolved(PerThread& t, Bin bin, FreeSlot* list) {
    if (t.unresolved != nullptr) return false;
    t.unresolved = list;
    t.unresolved_bin = bin;
    return true;
  }

  // The equation resolves a list: if the owner's bin is short of it, no thread took it.
  static void reconcile(PerThread& t) {
    if (t.unresolved != nullptr) {
      const Bin bin = t.unresolved_bin;
      FreeSlot* head = t.heads[bin].peek();
      if (length(t, bin) != t.capacity[bin].peek() - t.room[bin].peek()) {
        if (head != nullptr) {
          head->next = t.unresolved;
        } else {
          t.heads[bin].set(t.unresolved);
        }
      }
      t.unresolved = nullptr;
      t.unresolved_bin = 0;
    }
    t.detached = false;
    for (Bin bin = 1; bin < kBins; ++bin) t.room[bin].set(t.capacity[bin].peek() - length(t, bin));
  }

  static void cut_off(PerThread&) {}  // a list has no end that one slot too many could pass

  static void check(const PerThread& t, Bin bin, bool was_cut_off = false) {
    if constexpr (kDebug) {
      const std::int32_t lost = t.capacity[bin].peek() - t.room[bin].peek() - length(t, bin);
      hz::check(lost == 0 || (was_cut_off && (lost == 1 || lost == -1)));
    }
  }

 private:
  // Orders for the compiler only; a thread that needs the order passes a barrier
  // (os::barrier_on_all_threads).
  HZ_INLINE static void in_this_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

  static std::int32_t length(const PerThread& t, Bin bin) {
    std::int32_t n = 0;
    for (const FreeSlot* slot = t.heads[bin].peek(); slot != nullptr; slot = slot->next) ++n;
    return n;
  }
};

}  // namespace hz
