// SPDX-License-Identifier: Apache-2.0
//
// Thread bins as arrays of pointers beside the slots: last in first out, nothing is ever written into a free slot, so a
// block that passes from thread to thread costs no cache miss here. Used by hakozuna, hz4 and hz8. A null below each
// array ends a pop, so that an empty bin needs no compare of its own.
//
//   tops[bin] - base(bin) == capacity[bin] - room[bin]         the slots of a bin are [base, top)
//
// A bin begins with an array of kFew, side by side with those of all other bins, so that a thread which hardly uses its
// classes touches few pages; when its capacity outgrows that it moves to a longer one, for good.
//
// Pop and put count first and write the top last: whoever stops a thread anywhere sees by this equation whether it
// stands inside of one (heap/revoke.hpp). A bin that is seized has its top on `stray`, where the one put that may be
// under way finds a place and the one pop finds a null.
// Source of the idea: J. Bonwick, J. Adams, "Magazines and Vmem", 2001.
#pragma once

#include <array>

#include "base/plain_word.hpp"
#include "base/slot_array.hpp"
#include "box/front/contract.hpp"

namespace hz {

inline constexpr unsigned kFew = 16;

// Where the arrays begin. Before each is its null.
struct MagazinePlaces {
  std::array<unsigned, kBins> few{}, many{};
  unsigned total = 0;
};

template <class Policy>
consteval MagazinePlaces magazine_places() {
  MagazinePlaces places;
  unsigned at = 0;
  for (Bin bin = 1; bin < kBins; ++bin) {
    const unsigned most = Policy::max_capacity(bin);
    places.few[bin] = ++at;
    at += most < kFew ? most : kFew;
  }
  for (Bin bin = 1; bin < kBins; ++bin) {
    const unsigned most = Policy::max_capacity(bin);
    places.many[bin] = ++at;
    at += most > kFew ? most : 0;
  }
  places.total = at;
  return places;
}

template <class Line>
struct Magazine {
  using Bundle = SlotArray;
  using List = void**;  // a seized bin's top
  static constexpr bool kInBand = false;
  static constexpr bool kAnyBin = true;

  static constexpr MagazinePlaces kPlaces = magazine_places<typename Line::Policy>();

  // Zero at first. A page of it is touched when a bin in it is used.
  struct Store {
    void* entries[kPlaces.total];
  };

  static constexpr unsigned kRows = kBins + 1;       // of 0 and of kHugeBin nothing is admitted
  static constexpr std::int32_t kClosed = -1 << 30;  // no room, however many threads meet there

  struct PerThread {
    OwnerWord<void**> tops[kRows];
    OwnerWord<std::int32_t> room[kRows];
    OwnerWord<std::int32_t> capacity[kRows];
    void** entries = nullptr;
    std::uint64_t grown[kBins / 64 + 1] = {};  // a bit: the bin has moved to its longer array
    void* stray[2] = {};
    void** limbo = nullptr;  // see dispute()
    Bin limbo_bin = 0;
    bool seized = false;

    constexpr PerThread() {
      for (unsigned row = 0; row < kRows; ++row) {
        tops[row] = OwnerWord<void**>(nothing + 1);
        room[row] = OwnerWord<std::int32_t>(kClosed);
      }
    }
  };

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

  static bool is_latest(const PerThread& t, Bin bin, const void* slot) { return t.tops[bin].peek()[-1] == slot; }

  static SlotArray space(PerThread& t, Bin bin, unsigned n) {
    if (length(t, bin) + n > kFew && !has_grown(t, bin)) move(t, bin);
    return {t.tops[bin].peek(), 0};
  }
  static void fill(PerThread& t, Bin bin, const SlotArray& bundle) {
    std::atomic_signal_fence(std::memory_order_release);  // as in put
    t.tops[bin].set(bundle.slots + bundle.count);
    t.room[bin].add(-static_cast<std::int32_t>(bundle.count));
  }

  // The oldest: the newest are in this core's cache.
  static SlotArray drain(PerThread& t, Bin bin, unsigned n) {
    const unsigned count = length(t, bin);
    return {base(t, bin), n < count ? n : count};
  }
  static void drained(PerThread& t, Bin bin, unsigned n) {
    void** const first = base(t, bin);
    const unsigned left = length(t, bin) - n;
    __builtin_memmove(first, first + n, left * sizeof(void*));
    t.tops[bin].set(first + left);
    t.room[bin].add(static_cast<std::int32_t>(n));
  }

  static unsigned count(const PerThread& t, Bin bin) {
    void** top = t.tops[bin].peek();
    const bool strayed = top == t.stray + 2;
    if (strayed || top == t.stray + 1) top = bin == t.limbo_bin ? t.limbo : base(t, bin);
    const std::uintptr_t n = (address(top) - address(base(t, bin))) / sizeof(void*) + (strayed ? 1 : 0);
    return n <= most(bin) ? static_cast<unsigned>(n) : 0;
  }
  static unsigned capacity(const PerThread& t, Bin bin) { return static_cast<unsigned>(t.capacity[bin].peek()); }
  static void set_capacity(PerThread& t, Bin bin, unsigned n) {
    if (n > kFew && !has_grown(t, bin)) move(t, bin);
    const auto capacity = static_cast<std::int32_t>(n);
    t.room[bin].add(capacity - t.capacity[bin].peek());
    t.capacity[bin].set(capacity);
  }

  static std::uint64_t signature(const PerThread& t) {
    std::uint64_t sum = 0;
    for (Bin bin = 1; bin < kBins; ++bin)
      sum = sum * 31 + address(t.tops[bin].peek()) + static_cast<std::uint32_t>(t.room[bin].peek());
    return sum;
  }

  static std::uint16_t glance(const PerThread& t, Bin bin) {
    void** top = t.tops[bin].peek();
    return static_cast<std::uint16_t>(address(top) / sizeof(void*) * 31 + address(top[-1]) / kMinAlign);
  }

  static void** seize(PerThread& t, Bin bin) {
    t.seized = true;
    void** top = t.tops[bin].take(t.stray + 1);
    return top == base(t, bin) ? nullptr : top;
  }
  // What a seized bin held, where it lies.
  static SlotArray listed(const PerThread& t, Bin bin, void** top) {
    return {base(t, bin), static_cast<unsigned>(top - base(t, bin))};
  }

  static bool accounts_for(const PerThread& t, Bin bin, unsigned length) {
    return t.tops[bin].peek() == t.stray + 1 &&
           t.capacity[bin].peek() - t.room[bin].peek() == static_cast<std::int32_t>(length);
  }

  static bool dispute(PerThread& t, Bin bin, void** top) {
    if (t.limbo != nullptr) return false;
    t.limbo = top;
    t.limbo_bin = bin;
    return true;
  }

  // A top that is not on `stray` was written by the owner in the array itself, and is true.
  static void reconcile(PerThread& t) {
    for (Bin bin = 1; bin < kBins; ++bin) {
      void** top = t.tops[bin].peek();
      if (top == t.stray + 1 || top == t.stray + 2) {
        void** first = bin == t.limbo_bin ? t.limbo : base(t, bin);
        if (top == t.stray + 2) *first++ = t.stray[1];
        t.tops[bin].set(first);
      }
      t.room[bin].set(t.capacity[bin].peek() - static_cast<std::int32_t>(length(t, bin)));
    }
    t.limbo = nullptr;
    t.limbo_bin = 0;
    t.seized = false;
  }

  static void check(const PerThread& t, Bin bin) {
    if constexpr (kDebug) {
      hz::check(static_cast<std::int32_t>(length(t, bin)) == t.capacity[bin].peek() - t.room[bin].peek());
      hz::check(base(t, bin)[-1] == nullptr);
    }
  }

 private:
  static inline constinit void* nothing[1] = {};  // below every array of a thread that has none

  // For the compiler; the machine is told by whoever needs to know (os::barrier_on_all_threads).
  HZ_INLINE static void in_this_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

  HZ_INLINE static void undo(PerThread& t, Bin bin, std::int32_t step) {
    if (HZ_LIKELY(t.entries != nullptr)) {
      t.room[bin].add(step);
    } else {
      t.room[bin].set(kClosed);  // all threads meet here, and lose some of each other's steps
    }
  }

  static bool has_grown(const PerThread& t, Bin bin) { return (t.grown[bin / 64] >> bin % 64 & 1) != 0; }
  static void** base(const PerThread& t, Bin bin) {
    const unsigned place = has_grown(t, bin) ? kPlaces.many[bin] : kPlaces.few[bin];
    return static_cast<void**>(pointer(address(t.entries) + place * sizeof(void*)));  // of nobody's, too
  }
  static void move(PerThread& t, Bin bin) {
    const unsigned count = length(t, bin);
    void** const from = base(t, bin);
    t.grown[bin / 64] |= std::uint64_t{1} << bin % 64;
    __builtin_memcpy(base(t, bin), from, count * sizeof(void*));
    t.tops[bin].set(base(t, bin) + count);
  }
  static unsigned length(const PerThread& t, Bin bin) {
    return static_cast<unsigned>(t.tops[bin].peek() - base(t, bin));
  }
};

}  // namespace hz
