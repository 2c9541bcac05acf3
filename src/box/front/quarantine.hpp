// SPDX-License-Identifier: Apache-2.0
//
// Thread bins behind a quarantine: what a thread frees takes a random place in a ring of its class, and the
// slot that lay there goes into the bin. So no slot is used again at once, none in the order in which it was
// freed, and a second free of it, or a late write to it, meets it free. The bins are magazine_bins.hpp. Used
// by secure; costs nine instructions a free and nothing a malloc.
//
// A ring is its thread's own: who takes an idle thread's bins away leaves it. It goes back with all that the
// thread gives up: when it ends, and when memory cannot be had.
//
//   a ring of kWaiting places, of which kLargeWaiting are used for slots above kSmallMax; null: nobody
#pragma once

#include "base/random.hpp"
#include "box/front/magazine_bins.hpp"
#include "os/os.hpp"

namespace hz {

template <class Line>
struct Quarantine : MagazineBins<Line> {
  using Bins = MagazineBins<Line>;

  static constexpr unsigned kWaiting = 32, kLargeWaiting = 8;

  struct Store {
    typename Bins::Store bins;
    void* waiting[kBins][kWaiting];
  };
  struct PerThread : Bins::PerThread {
    Random dice;
    void* (*rings)[kWaiting] = nullptr;
  };

  static void join(PerThread& t, Store& store) {
    Bins::join(t, store.bins);
    __builtin_memset(store.waiting, 0, sizeof store.waiting);
    t.rings = store.waiting;
    t.dice = Random(os::random_word());
  }

  // The bin that has made room for one may get none.
  HZ_INLINE static void put(PerThread& t, Bin bin, void* slot) {
    void*& place = t.rings[bin][t.dice.next() & (places(bin) - 1)];
    void* const leaving = place;
    place = slot;
    if (HZ_UNLIKELY(leaving == nullptr)) return Bins::turn_away(t, bin);
    Bins::put(t, bin, leaving);
  }
  // When the bin is empty, what waits.
  static SlotArray drain(PerThread& t, Bin bin, unsigned n) {
    const SlotArray some = Bins::drain(t, bin, n);
    if (some.count != 0 || n == 0 || t.rings == nullptr) return some;
    SlotArray waiting = {t.rings[bin], 0};
    for (unsigned i = 0; i < kWaiting; ++i) {
      void* const slot = t.rings[bin][i];
      t.rings[bin][i] = nullptr;
      if (slot != nullptr) waiting.push(slot);
    }
    if (waiting.count > n) waiting.count = n;
    return waiting;
  }
  static void drained(PerThread& t, Bin bin, unsigned n) {
    if (Bins::count(t, bin) != 0) return Bins::drained(t, bin, n);
    void** const ring = t.rings[bin];
    for (unsigned i = 0; i < kWaiting; ++i) ring[i] = i + n < kWaiting ? ring[i + n] : nullptr;
  }

 private:
  HZ_INLINE static constexpr unsigned places(Bin bin) {
    return bin <= kLastSmallBin ? kWaiting : kLargeWaiting;
  }
  static_assert(is_power_of_two(kWaiting) && is_power_of_two(kLargeWaiting));
};

}  // namespace hz
