// SPDX-License-Identifier: Apache-2.0
//
// Thread bins behind a quarantine: what a thread frees takes a random place in a ring of its class, and the
// slot that lay there goes into the bin. So no slot is used again at once, none in the order in which it was
// freed, and a second free of it, or a late write to it, meets it free. The bins are magazine_bins.hpp. Used
// by secure; costs some fifteen instructions a free and nothing a malloc.
//
//   waiting[bin][0, places(bin))     null: empty; the larger the class, the fewer
//
// Slots in rings are cached: they leave with the rest of the thread's cache, and a revocation of an idle
// thread's bins takes its rings (heap/process/revoke.hpp). A ring that is detached has `late` in its place:
// the one free that may be under way finds a ring there that is empty, and its slot there is put again when
// the owner is back. Such a free gives the room back that it counted, so a bin whose count agrees with its
// length has a ring that no thread is using.
#pragma once

#include "box/front/magazine_bins.hpp"
#include "os/os.hpp"

namespace hz {

template <class Line, unsigned kMostWaiting = 32>
struct Quarantine : MagazineBins<Line> {
  using Bins = MagazineBins<Line>;
  using List = typename Bins::List;
  using Place = OwnerWord<void*>;

  static constexpr std::size_t kMostUpTo = 512, kSomeUpTo = 4 * kKiB;
  static constexpr unsigned kSome = kMostWaiting < 8 ? kMostWaiting : 8;
  static constexpr unsigned kFew = kMostWaiting < 4 ? kMostWaiting : 4;
  static_assert(is_power_of_two(kMostWaiting));

  // Zero at first, and again when all that waited has left.
  struct Store {
    typename Bins::Store bins;
    Place waiting[kBins][kMostWaiting];
    Place late[kMostWaiting];
    void* leaving[kMostWaiting];  // on their way out
  };
  // Random bytes that are to be used, from the last one down.
  struct Dice {
    std::size_t left = 0;
    unsigned char bytes[256] = {};
  };
  static_assert(kMostWaiting <= 256);
  struct PerThread : Bins::PerThread {
    OwnerWord<Place*> rings[kBins];
    Dice dice;
    OwnerWord<Bin> came{0};  // the class of the last free that found its place empty
    Store* store = nullptr;
  };

  // The rings, for readers from outside (observe/) that count their slots.
  static constexpr auto words() {
    return layout::joined(
        Bins::words(),
        layout::Words<2>{layout::Word("thread.ring", offsetof(PerThread, rings), sizeof(void*), kBins),
                         {"ring.places", kMostWaiting}});
  }

  // Slots of a class that may wait.
  HZ_INLINE static constexpr unsigned places(Bin bin) {
    return bin <= scan_bin(kMostUpTo) ? kMostWaiting : bin <= scan_bin(kSomeUpTo) ? kSome : kFew;
  }

  static void join(PerThread& t, Store& store) {
    Bins::join(t, store.bins);
    t.store = &store;
    attach(t);
    renew(t);
  }
  // Drops the random bytes that a thread of another process may have, too.
  static void renew(PerThread& t) { t.dice.left = 0; }

  // The bin that has made room for one may get none.
  HZ_INLINE static void put(PerThread& t, Bin bin, void* slot) {
    const std::size_t left = t.dice.left;
    if (HZ_UNLIKELY(left == 0)) return put_with_new_dice(t, bin, slot);
    put(t, bin, slot, left);
  }

 private:
  HZ_SLOW static void put_with_new_dice(PerThread& t, Bin bin, void* slot) {
    os::random_bytes(t.dice.bytes, sizeof t.dice.bytes);
    put(t, bin, slot, sizeof t.dice.bytes);
  }
  HZ_INLINE static void put(PerThread& t, Bin bin, void* slot, std::size_t left) {
    t.dice.left = left - 1;
    Place& place = t.rings[bin].get()[t.dice.bytes[left - 1] & (places(bin) - 1)];
    void* const leaving = place.get();
    if (HZ_UNLIKELY(leaving == nullptr)) return come(t, bin, place, slot);
    place.put(slot);
    Bins::put(t, bin, leaving);
  }

 public:
  // When the bin is empty, what waits; that has left its ring.
  static SlotArray drain(PerThread& t, Bin bin, unsigned n) {
    const SlotArray some = Bins::drain(t, bin, n);
    if (some.count != 0 || t.store == nullptr) return some;
    return {t.store->leaving, take_waiting(t, bin, t.store->leaving, n)};
  }
  static void drained(PerThread& t, Bin bin, unsigned n) {
    if (Bins::count(t, bin) != 0) Bins::drained(t, bin, n);
  }

  // Any thread; a recent value.
  static unsigned waiting(const PerThread& t, Bin bin) {
    if (t.store == nullptr) return 0;
    unsigned n = 0;
    for (unsigned i = 0; i < places(bin); ++i) {
      if (t.store->waiting[bin][i].peek() != nullptr) ++n;
      if (bin == t.came.peek() && t.store->late[i].peek() != nullptr) ++n;
    }
    return n;
  }
  // At most `n` of them, to `out`: by the owner, or of a detached bin that accounts for its list.
  static unsigned take_waiting(PerThread& t, Bin bin, void** out, unsigned n) {
    unsigned taken = 0;
    for (unsigned i = 0; i < places(bin) && taken < n; ++i) {
      Place& place = t.store->waiting[bin][i];
      void* const slot = place.peek();
      if (slot == nullptr) continue;
      place.set(nullptr);
      out[taken++] = slot;
    }
    return taken;
  }

  // For diagnosis: whether the owner caches the slot.
  static bool holds(const PerThread& t, Bin bin, const void* slot) {
    if (t.store == nullptr) return false;
    for (unsigned i = 0; i < places(bin); ++i)
      if (t.store->waiting[bin][i].peek() == slot) return true;
    const SlotArray at_hand = Bins::listed(t, bin, t.tops[bin].peek());
    return has(at_hand.slots, at_hand.count, slot) ||
           (t.spare[bin] != nullptr && has(t.spare[bin]->slots, t.spare_count[bin].peek(), slot));
  }

  static List detach(PerThread& t, Bin bin) {
    if (t.store != nullptr) t.rings[bin].take(t.store->late);
    return Bins::detach(t, bin);
  }
  static void reconcile(PerThread& t) {
    Bins::reconcile(t);
    if (t.store == nullptr) return;
    attach(t);
    const Bin bin = t.came.peek();
    for (Place& place : t.store->late) {
      void* const slot = place.peek();
      if (slot == nullptr) continue;
      place.set(nullptr);
      hz::check(Bins::admit(t, bin, slot));  // it has the room that it gave back
      put(t, bin, slot);
    }
  }

 private:
  static bool has(void* const* slots, unsigned count, const void* slot) {
    for (unsigned i = 0; i < count; ++i)
      if (slots[i] == slot) return true;
    return false;
  }
  static void attach(PerThread& t) {
    for (Bin bin = 1; bin < kBins; ++bin) t.rings[bin].set(t.store->waiting[bin]);
  }
  // What is said first is seen first, also by the child of a fork that copies the thread's state here.
  HZ_INLINE static void come(PerThread& t, Bin bin, Place& place, void* slot) {
    t.came.set(bin);
    std::atomic_signal_fence(std::memory_order_release);
    place.put(slot);
    std::atomic_signal_fence(std::memory_order_release);
    Bins::turn_away(t, bin);
  }
};

}  // namespace hz
