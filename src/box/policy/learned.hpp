// SPDX-License-Identifier: Apache-2.0
//
// A policy that can watch its program: the capacities of `Rules`, and on demand (HZ_POLICY) a look at the
// sizes that the program asks for. `observe` notes what a spare class would save, for the profile that is
// written when the process exits; `learn` deals it out. While neither is on, an event is not told: one load
// at each crossing. Used by all lines of boxes.
#pragma once

#include "box/policy/contract.hpp"

namespace hz {

template <class Rules>
struct Learned : Rules {
  // Once, when the heap opens.
  static void set_learning(Learning learning) {
    observes.set(learning != Learning::kFrozen);
    learns.set(learning == Learning::kLearn);
  }
  HZ_INLINE static bool watches() { return HZ_UNLIKELY(observes.get()); }

  static void refilled(std::size_t size, unsigned slots) { watch.asked(size, slots); }
  static void span_acquired(Bin bin) {
    if (!watch.acquired(bin) || !learns.get()) return;
    const SizeWatch::Choice choice = watch.choose(bin, watch.spans(bin));
    if (choice.size == 0 || !classes.deal(choice.size)) watch.forget_half(bin);
  }
  static void span_retired(Bin bin) { watch.retired(bin); }

  static const SizeWatch& watched() { return watch; }

 private:
  static inline constinit OnceWord<bool> observes{false}, learns{false};
  static inline constinit SizeWatch watch;
};

}  // namespace hz
