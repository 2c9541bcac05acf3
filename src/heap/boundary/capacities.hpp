// SPDX-License-Identifier: Apache-2.0
//
// The capacities of a thread's bins: does what the policy decides about them. Called by boundary.hpp at each
// refill and flush, with the thread's lock held; a few comparisons as a rule.
#pragma once

#include "heap/exchange/reclaim.hpp"

namespace hz {

template <class Line>
struct Capacities {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Front = typename Line::Front;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Policy = typename Line::Policy;

  // Of a bin that ran empty or full.
  static void grow(Thread& t, Bin bin) {
    const unsigned capacity = Front::capacity(t.front, bin);
    const unsigned next =
        Front::admissible(capacity == 0 ? Policy::first_capacity(bin) : Policy::next_capacity(bin, capacity));
    if (next <= capacity) return;
    if (t.capacity_bytes + bytes(bin, next) - bytes(bin, capacity) <=
        Policy::budget(t.policy, allowance(t, bin))) {
      Front::set_capacity(t.front, bin, next);
      const std::size_t more = bytes(bin, Front::capacity(t.front, bin)) - bytes(bin, capacity);
      t.capacity_bytes += more;
      Retain::bins_grown(t.retain, more);
      return;
    }
    const Denial denial = Policy::denied(t.policy);
    if (denial == Denial::kStays) return;
    if (denial == Denial::kOneGivesAtThatTime) Policy::denied_often(t.policy, os::microseconds());
    one_gives(t, bin);
  }

  // At a crossing for a bin that caches: one in turn gives up half, if it is not used.
  static void look_at_one(Thread& t, Bin except) {
    if (Front::capacity(t.front, except) == 0)
      return;  // a size that never fits would make all others look idle
    const Bin bin = Policy::next_to_look_at(t.policy);
    if (bin != except && Front::count(t.front, bin) != 0 &&
        (Policy::is_unused(t.policy, bin, Front::fingerprint(t.front, bin)) ||
         Policy::is_over(t.policy, allowance(t, bin), t.capacity_bytes)))
      shrink(t, bin);
    Policy::is_unused(t.policy, bin, Front::fingerprint(t.front, bin));  // as it is now
  }

 private:
  // That a bin of so many slots can keep from others.
  static std::size_t bytes(Bin bin, unsigned capacity) {
    if constexpr (FrontOfQuarantine<Front>) capacity += capacity == 0 ? 0 : Front::places(bin);
    return capacity * bin_size(bin);
  }
  // Returns true if no purger can take the cache back, and the process has something to return.
  static bool is_bounded() {
    return !S::global.aided.load(std::memory_order_relaxed) && !Retain::was_always_small(S::global.retain);
  }
  static Allowance allowance(const Thread& t, Bin bin) {
    return {.asked = S::global.thread_budget.load(std::memory_order_relaxed),
            .share = Source::thread_share(S::global.source),
            .live = is_bounded() ? t.level : SIZE_MAX,
            .shrinks = t.shrinks,
            .all_slots = bin_size(bin) * S::global.thread_count.load(std::memory_order_relaxed)};
  }

  static void one_gives(Thread& t, Bin except) {
    for (unsigned looked = 0; looked < kBins; ++looked) {
      const Bin bin = Policy::next_to_give(t.policy);
      if (bin == except || Front::capacity(t.front, bin) == 0) continue;
      return shrink(t, bin);
    }
  }
  static void shrink(Thread& t, Bin bin) {
    const unsigned capacity = Front::capacity(t.front, bin);
    Front::set_capacity(t.front, bin, capacity / 2);
    const unsigned less = Front::capacity(t.front, bin);
    t.capacity_bytes -= bytes(bin, capacity) - bytes(bin, less);
    Retain::bins_shrunk(t.retain, bytes(bin, capacity) - bytes(bin, less));
    const unsigned count = Front::count(t.front, bin);
    if (count > less) Reclaim<Line>::drain(t, bin, count - less, false);
    if constexpr (FrontOfQuarantine<Front>) {
      while (less == 0 && Reclaim<Line>::drain(t, bin, TransferCache<Line>::kAll, false)) continue;
    }
  }
};

}  // namespace hz
