// SPDX-License-Identifier: Apache-2.0
//
// Thread bins as arrays of pointers beside the slots (magazines): last in first out, nothing is ever written
// into a free slot, so a block that passes from thread to thread costs no cache miss here. Used by hakozuna,
// hz4, hz5, hz6 and hz8. A null below each array ends a pop, so that an empty bin needs no compare of its
// own.
//
//   tops[bin] - base(bin) == limit(bin) - room[bin]         the slots at hand are [base, top)
//
// A bin begins with an array of kShortSlots, side by side with those of the other bins that the thread uses,
// so that one which hardly uses its classes touches few pages. When its capacity outgrows that, its array is
// a magazine of the line's; and at its full capacity it has a second one beside it, full or empty, so that no
// sequence of calls comes to the boundary more often than once a magazine. Magazines change hands whole: see
// exchange().
//
// Pop and put count first and write the top last: a thread that stops another one anywhere sees by this
// equation whether it stands inside of one (heap/process/revoke.hpp). A bin that is detached has its top on
// `scratch`, where the one put that may be under way finds a place and the one pop finds a null. Source of
// the idea: J. Bonwick, J. Adams, "Magazines and Vmem", 2001.
#pragma once

#include "base/bytes.hpp"
#include "base/plain_word.hpp"
#include "base/slot_array.hpp"
#include "box/front/contract.hpp"
#include "os/magazines.hpp"

namespace hz {

inline constexpr unsigned kShortSlots = 16;

// Of a bin, with its null.
template <class Policy>
constexpr unsigned short_entries(Bin bin) {
  const unsigned most = Policy::max_capacity(bin);
  return 1 + (most < kShortSlots ? most : kShortSlots);
}
template <class Policy>
consteval unsigned short_entries() {
  unsigned all = 0;
  for (Bin bin = 1; bin < kBins; ++bin) all += short_entries<Policy>(bin);
  return all;
}

template <class Line>
struct MagazineBins {
  using Bundle = SlotArray;
  using Empty = os::Magazines<Line, Line::kBinSlots / 2>;
  using Magazine = typename Empty::Magazine;
  using List = void**;  // a detached bin's top
  static constexpr bool kInBand = false;
  static constexpr bool kAnyBin = true;

  static constexpr unsigned kMany = Magazine::kSlots, kMost = 2 * kMany;

  // The short arrays, in the order in which the thread came to need them: of one that uses few classes they
  // lie on one page.
  struct Store {
    void* entries[short_entries<typename Line::Policy>()];
  };

  static constexpr unsigned kRows = kHeapBin + 1;    // of 0, kHugeBin and kHeapBin nothing is admitted
  static constexpr std::int32_t kClosed = -1 << 30;  // no room, however many threads meet there

  struct PerThread {
    OwnerWord<void**> tops[kRows];
    OwnerWord<std::int32_t> room[kRows];
    OwnerWord<std::int32_t> capacity[kRows];
    void** entries = nullptr;
    unsigned reached = 0;                         // entries that are of some bin
    OwnerWord<std::uint16_t> short_array[kRows];  // its first entry; 0: the bin has none yet
    OwnerWord<Magazine*> loaded[kRows];           // null: the bin is in its short array
    Magazine* spare[kRows] = {};                  // beside it, if any
    OwnerWord<std::uint16_t> spare_count[kRows];  // slots in that
    void* scratch[2] = {};
    void** unresolved = nullptr;  // see keep_unresolved()
    Bin unresolved_bin = 0;
    bool detached = false;

    constexpr PerThread() {
      for (unsigned row = 0; row < kRows; ++row) {
        tops[row] = OwnerWord<void**>(nothing + 1);
        room[row] = OwnerWord<std::int32_t>(kClosed);
      }
    }
  };

  // In the array at hand lie limit() - room slots.
  static constexpr auto words() {
    return layout::Words<6>{
        layout::Word("thread.room", offsetof(PerThread, room), sizeof(std::int32_t), kBins),
        {"thread.capacity", offsetof(PerThread, capacity), sizeof(std::int32_t), kBins},
        {"thread.magazine", offsetof(PerThread, loaded), sizeof(void*), kBins},
        {"thread.spare", offsetof(PerThread, spare_count), sizeof(std::uint16_t), kBins},
        {"magazine.slots", kMany},
        {"magazine.short", kShortSlots}};
  }

  static unsigned most(Bin bin) { return Line::Policy::max_capacity(bin); }

  static void join(PerThread& t, Store& store) {
    t.entries = store.entries;
    for (Bin bin = 1; bin < kBins; ++bin) {
      t.tops[bin].set(base(t, bin));
      t.room[bin].set(0);
    }
  }

  HZ_INLINE static void* pop(PerThread& t, Bin bin) {
    t.room[bin].add(1);
    in_this_order();
    void** top = t.tops[bin].get();
    void* slot = top[-1];
    if (HZ_UNLIKELY(slot == nullptr)) {
      undo(t, apart(bin), -1);
      return nullptr;
    }
    t.tops[bin].put(top - 1);
    return slot;
  }

  // The slot that came last is not admitted again: it was freed twice.
  HZ_INLINE static bool admit(PerThread& t, Bin bin, const void* slot) {
    if (HZ_UNLIKELY(t.room[bin].take_one_too_many())) return false;
    in_this_order();
    return HZ_LIKELY(t.tops[bin].get()[-1] != slot);
  }
  HZ_INLINE static void turn_away(PerThread& t, Bin bin) { undo(t, apart(bin), 1); }

  HZ_INLINE static void put(PerThread& t, Bin bin, void* slot) {
    void** top = t.tops[bin].get();
    *top = slot;
    // The slot before the top, also for the compiler: a fork may copy the thread's state between the two.
    std::atomic_signal_fence(std::memory_order_release);
    t.tops[bin].put(top + 1);
  }

  static bool is_latest(const PerThread& t, Bin bin, const void* slot) {
    return t.tops[bin].peek()[-1] == slot;
  }

  static SlotArray space(PerThread& t, Bin bin, unsigned /*n*/) {
    have_short_array(t, bin);
    return {t.tops[bin].peek(), 0};
  }
  static void fill(PerThread& t, Bin bin, const SlotArray& bundle) {
    std::atomic_signal_fence(std::memory_order_release);  // as in put
    t.tops[bin].set(bundle.slots + bundle.count);
    t.room[bin].add(-static_cast<std::int32_t>(bundle.count));
  }

  // The oldest: the newest are in this core's cache.
  static SlotArray drain(PerThread& t, Bin bin, unsigned n) {
    if (const unsigned spare = t.spare_count[bin].peek(); spare != 0) {
      const unsigned some = n < spare ? n : spare;
      return {t.spare[bin]->slots + spare - some, some};
    }
    const unsigned count = length(t, bin);
    return {base(t, bin), n < count ? n : count};
  }
  static void drained(PerThread& t, Bin bin, unsigned n) {
    if (const unsigned spare = t.spare_count[bin].peek(); spare != 0) {
      set_spare(t, bin, t.spare[bin], spare - n);
    } else {
      void** const first = base(t, bin);
      const unsigned left = length(t, bin) - n;
      copy_bytes(first, first + n, left * sizeof(void*));
      t.tops[bin].set(first + left);
      t.room[bin].add(static_cast<std::int32_t>(n));
    }
    drop_unneeded(t, bin);
  }

  // The array at hand is empty, or full, and the spare one is not: they change places. Whether they did.
  static bool swap(PerThread& t, Bin bin) {
    Magazine* const other = t.spare[bin];
    if (other == nullptr) return false;
    const unsigned count = length(t, bin), others = t.spare_count[bin].peek();
    if (count == 0 ? others == 0 : count != kMany || others != 0) return false;
    load(t, bin, other, others, count);
    return true;
  }
  // Takes the place of the array at hand, which is empty or full and becomes the spare one; the spare one
  // leaves.
  static Magazine* exchange(PerThread& t, Bin bin, Magazine* magazine) {
    Magazine* const leaving = take_spare(t, bin);
    load(t, bin, magazine, magazine->count, length(t, bin));
    return leaving;
  }
  static Magazine* take_spare(PerThread& t, Bin bin) {
    Magazine* const leaving = t.spare[bin];
    if (leaving != nullptr) leaving->count = t.spare_count[bin].peek();
    set_spare(t, bin, nullptr, 0);
    return leaving;
  }
  // Whether it has magazines enough to part with one.
  static bool exchanges(const PerThread& t, Bin bin) {
    return capacity(t, bin) == kMost && (length(t, bin) == 0 || length(t, bin) == kMany);
  }
  // What a thread that holds no slots has of the line's magazines.
  static void leave(PerThread& t) {
    for (Bin bin = 1; bin < kBins; ++bin) {
      set_capacity(t, bin, 0);
      drop_unneeded(t, bin);
    }
  }

  static unsigned count(const PerThread& t, Bin bin) {
    void** top = t.tops[bin].peek();
    const bool put_there = top == t.scratch + 2;
    if (put_there || top == t.scratch + 1) top = bin == t.unresolved_bin ? t.unresolved : base(t, bin);
    const std::uintptr_t n = (address(top) - address(base(t, bin))) / sizeof(void*) + (put_there ? 1 : 0);
    return (n <= kMany ? static_cast<unsigned>(n) : 0) + t.spare_count[bin].peek();
  }
  static unsigned capacity(const PerThread& t, Bin bin) {
    return static_cast<unsigned>(t.capacity[bin].peek());
  }
  // One magazine at most, or two.
  static constexpr unsigned admissible(unsigned n) { return n >= kMost ? kMost : n > kMany ? kMany : n; }
  // As much of it as can be had.
  static void set_capacity(PerThread& t, Bin bin, unsigned n) {
    const std::int32_t before = limit(t, bin);
    if (n != 0) have_short_array(t, bin);
    if (n > kShortSlots && !has_grown(t, bin) && !grow(t, bin)) n = kShortSlots;
    t.capacity[bin].set(static_cast<std::int32_t>(admissible(n)));
    t.room[bin].add(limit(t, bin) - before);
  }

  static std::uint64_t signature(const PerThread& t) {
    std::uint64_t sum = 0;
    for (Bin bin = 1; bin < kBins; ++bin)
      sum = sum * 31 + address(t.tops[bin].peek()) + static_cast<std::uint32_t>(t.room[bin].peek());
    return sum;
  }

  static std::uint16_t fingerprint(const PerThread& t, Bin bin) {
    void** top = t.tops[bin].peek();
    return static_cast<std::uint16_t>(address(top) / sizeof(void*) * 31 + address(top[-1]) / kMinAlign);
  }

  static void** detach(PerThread& t, Bin bin) {
    t.detached = true;
    void** top = t.tops[bin].take(t.scratch + 1);
    return top == base(t, bin) ? nullptr : top;
  }
  // What a detached bin held, where it lies.
  static SlotArray listed(const PerThread& t, Bin bin, void** top) {
    return {base(t, bin), static_cast<unsigned>(top - base(t, bin))};
  }

  static bool accounts_for(const PerThread& t, Bin bin, unsigned length) {
    return t.tops[bin].peek() == t.scratch + 1 &&
           limit(t, bin) - t.room[bin].peek() == static_cast<std::int32_t>(length);
  }

  static bool keep_unresolved(PerThread& t, Bin bin, void** top) {
    if (t.unresolved != nullptr) return false;
    t.unresolved = top;
    t.unresolved_bin = bin;
    return true;
  }

  // A top that is not on `scratch` was written by the owner in the array itself, and is true.
  static void reconcile(PerThread& t) {
    for (Bin bin = 1; bin < kBins; ++bin) {
      void** top = t.tops[bin].peek();
      if (top == t.scratch + 1 || top == t.scratch + 2) {
        void** first = bin == t.unresolved_bin ? t.unresolved : base(t, bin);
        if (top == t.scratch + 2) *first++ = t.scratch[1];
        t.tops[bin].set(first);
      }
      t.room[bin].set(limit(t, bin) - static_cast<std::int32_t>(length(t, bin)));
    }
    t.unresolved = nullptr;
    t.unresolved_bin = 0;
    t.detached = false;
  }

  static void cut_off(PerThread& t) {
    if (t.detached) return;  // the owner reconciles
    for (Bin bin = 1; bin < kBins; ++bin) {
      const std::int32_t most = limit(t, bin) - static_cast<std::int32_t>(length(t, bin));
      if (t.room[bin].peek() > most) t.room[bin].set(most);
    }
  }

  static void check(const PerThread& t, Bin bin, bool was_cut_off = false) {
    if constexpr (kDebug) {
      const std::int32_t lost =
          limit(t, bin) - static_cast<std::int32_t>(length(t, bin)) - t.room[bin].peek();
      hz::check(lost == 0 || (was_cut_off && lost == 1));
      hz::check(base(t, bin)[-1] == nullptr);
    }
  }

 private:
  static inline constinit void* nothing[1] = {};  // below every array of a thread that has none

  // Orders for the compiler only; a thread that needs the order passes a barrier
  // (os::barrier_on_all_threads).
  HZ_INLINE static void in_this_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

  HZ_INLINE static void undo(PerThread& t, Bin bin, std::int32_t step) {
    if (HZ_LIKELY(t.entries != nullptr)) {
      t.room[bin].add(step);
    } else {
      t.room[bin].set(kClosed);  // all threads meet here, and lose some of each other's steps
    }
  }

  static bool has_grown(const PerThread& t, Bin bin) { return t.loaded[bin].peek() != nullptr; }
  static void** base(const PerThread& t, Bin bin) {
    Magazine* const magazine = t.loaded[bin].peek();
    if (magazine != nullptr) return magazine->slots;
    const unsigned first = t.short_array[bin].peek();
    return first != 0 ? t.entries + first : nothing + 1;
  }
  // Before something comes into the bin. What a state's last thread left there may lie where the null is now.
  static void have_short_array(PerThread& t, Bin bin) {
    if (t.short_array[bin].peek() != 0) return;
    t.entries[t.reached] = nullptr;
    t.short_array[bin].set(static_cast<std::uint16_t>(t.reached + 1));
    t.reached += short_entries<typename Line::Policy>(bin);
    t.tops[bin].set(base(t, bin));
  }
  // That the array at hand may hold.
  static std::int32_t limit(const PerThread& t, Bin bin) {
    const std::int32_t most = has_grown(t, bin) ? kMany : kShortSlots, all = t.capacity[bin].peek();
    return all < most ? all : most;
  }

  // What lies in the array at hand goes on in another one.
  static void move(PerThread& t, Bin bin, Magazine* to) {
    const unsigned count = length(t, bin);
    void** const from = base(t, bin);
    t.loaded[bin].set(to);
    copy_bytes(base(t, bin), from, count * sizeof(void*));
    std::atomic_signal_fence(std::memory_order_release);  // as in put
    t.tops[bin].set(base(t, bin) + count);
  }
  static bool grow(PerThread& t, Bin bin) {
    Magazine* const magazine = Empty::take();
    if (magazine != nullptr) move(t, bin, magazine);
    return magazine != nullptr;
  }
  static void drop_unneeded(PerThread& t, Bin bin) {
    if (t.spare[bin] != nullptr && t.spare_count[bin].peek() == 0 && capacity(t, bin) < kMost)
      Empty::give(take_spare(t, bin));
    if (has_grown(t, bin) && capacity(t, bin) <= kShortSlots && length(t, bin) <= kShortSlots) {
      Magazine* const magazine = t.loaded[bin].peek();
      move(t, bin, nullptr);
      Empty::give(magazine);
    }
  }

  // `count` slots are in it; those at hand, `spare` of them, become the spare ones.
  static void load(PerThread& t, Bin bin, Magazine* magazine, unsigned count, unsigned spare) {
    set_spare(t, bin, t.loaded[bin].peek(), spare);
    t.loaded[bin].set(magazine);
    std::atomic_signal_fence(std::memory_order_release);  // as in put
    t.tops[bin].set(magazine->slots + count);
    t.room[bin].set(limit(t, bin) - static_cast<std::int32_t>(count));
  }
  static void set_spare(PerThread& t, Bin bin, Magazine* magazine, unsigned count) {
    t.spare[bin] = magazine;
    t.spare_count[bin].set(static_cast<std::uint16_t>(count));
  }
  static unsigned length(const PerThread& t, Bin bin) {
    return static_cast<unsigned>(t.tops[bin].peek() - base(t, bin));
  }
};

}  // namespace hz
