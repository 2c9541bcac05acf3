// SPDX-License-Identifier: Apache-2.0
//
// How much a thread caches: the capacities of its bins and their sum's budget, which follow what the thread
// does. Called by boundary.hpp at each refill and flush, with the thread's lock held; a few comparisons as a
// rule.
#pragma once

#include "heap/reclaim.hpp"

namespace hz {

template <class Line>
struct Adaptive {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Front = typename Line::Front;
  using Source = typename Line::Source;
  using Retain = typename Line::Retain;
  using Policy = typename Line::Policy;

  static constexpr unsigned kDeniedPerTake = 16, kDeniedPerBudget = 256;
  static constexpr std::uint64_t kBusyMicroseconds = 500, kCalmMicroseconds = 50000;  // for so many denials
  static constexpr std::size_t kAloneShare = 2, kLeastAlone = 2 * kMiB;

  // A bin that runs empty or full grows while the thread's budget lasts. When it is spent, a bin in turn
  // gives up half of its own now and then, so that what the thread no longer uses does not hold the budget
  // for ever; and the budget follows how often that happens.
  static void grow_capacity(Thread& t, Bin bin) {
    const unsigned capacity = Front::capacity(t.front, bin);
    const unsigned next =
        Front::admissible(capacity == 0 ? Policy::first_capacity(bin) : Policy::next_capacity(bin, capacity));
    if (next <= capacity) return;
    if (t.capacity_bytes + (next - capacity) * bin_size(bin) <= thread_budget(t)) {
      Front::set_capacity(t.front, bin, next);
      const std::size_t more = (Front::capacity(t.front, bin) - capacity) * bin_size(bin);
      t.capacity_bytes += more;
      Retain::bins_grown(t.retain, more);
    } else if (++t.denied % kDeniedPerTake == 0) {
      if (t.denied % kDeniedPerBudget == 0) adapt_budget(t);
      shrink_next(t, bin);
    }
  }

  // Each crossing for a bin that caches looks at one bin in turn. If it is as it was the last time, the
  // thread does not use it, and half of it goes: a program that goes on to other sizes takes its memory
  // along. (As tcmalloc's low-water marks, without a mark on the hot path.)
  static void look_at_one(Thread& t, Bin except) {
    if (Front::capacity(t.front, except) == 0)
      return;  // a size that never fits would make all others look idle
    t.looked_at = t.looked_at % (kBins - 1) + 1;
    const Bin bin = t.looked_at;
    if (bin != except && Front::fingerprint(t.front, bin) == t.seen[bin] && Front::count(t.front, bin) != 0)
      shrink(t, bin);
    t.seen[bin] = Front::fingerprint(t.front, bin);
  }

 private:
  // What the user said, or what the thread has come to, but no more than its share of a small container.
  static std::size_t thread_budget(const Thread& t) {
    const std::size_t asked = S::global.thread_budget.load(std::memory_order_relaxed);
    if (asked != 0) return asked;
    const std::size_t share = Source::thread_share(S::global.source);
    const std::size_t budget = share < t.budget ? share : t.budget;
    if (S::global.aided.load(std::memory_order_relaxed)) return budget;
    // Nobody will take it back; and of what is far more than the thread has, nobody could tell whether it is
    // emptied.
    const std::size_t share_of_most = t.lately.most() / kAloneShare;
    const std::size_t alone = share_of_most < kLeastAlone ? kLeastAlone : share_of_most;
    return budget < alone ? budget : alone;
  }

  // A cache of twice the size is worth its memory to a thread that spends a good part of its time at the
  // boundary. By the clock on the wall, for that of a thread's processor is a system call: who waits for a
  // processor looks calm, and busy again within its next slice of time.
  static void adapt_budget(Thread& t) {
    const std::uint64_t now = os::microseconds();
    const std::uint64_t spent = now - t.budget_set_at;
    t.budget_set_at = now;
    if (spent < kBusyMicroseconds && t.budget < Line::kThreadCacheMost) t.budget *= 2;
    if (spent > kCalmMicroseconds && t.budget > Line::kThreadCacheBytes) t.budget /= 2;
  }

  static void shrink_next(Thread& t, Bin except) {
    for (unsigned looked = 0; looked < kBins; ++looked) {
      const Bin bin = ++t.victim % kBins;
      if (bin == except || Front::capacity(t.front, bin) == 0) continue;
      return shrink(t, bin);
    }
  }
  static void shrink(Thread& t, Bin bin) {
    const unsigned capacity = Front::capacity(t.front, bin);
    Front::set_capacity(t.front, bin, capacity / 2);
    const unsigned less = Front::capacity(t.front, bin);
    t.capacity_bytes -= (capacity - less) * bin_size(bin);
    Retain::bins_shrunk(t.retain, (capacity - less) * bin_size(bin));
    const unsigned count = Front::count(t.front, bin);
    if (count > less) Reclaim<Line>::drain(t, bin, count - less, false);
  }
};

}  // namespace hz
