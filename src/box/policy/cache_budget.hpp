// SPDX-License-Identifier: Apache-2.0
//
// How much a thread caches: the sum of its bins' capacities has a budget, which follows what the thread does.
// A bin that runs empty or full grows while the budget lasts. When it is spent, a bin in turn loses half of
// its own now and then, so that unused bins do not keep the budget without end. The budget follows how often
// that happens. Asked at each refill and flush; a few comparisons.
#pragma once

#include "box/policy/contract.hpp"

namespace hz {

template <class Line>
struct CacheBudget {
  static constexpr unsigned kDeniedPerTake = 16, kDeniedPerBudget = 256;
  static constexpr std::uint64_t kBusyMicroseconds = 500, kCalmMicroseconds = 50000;  // for so many denials
  static constexpr std::size_t kShareOfLive = 8, kLeastAlone = 3 * kMiB / 2;

  struct PerThread {
    std::size_t budget = Line::kThreadCacheBytes;
    std::uint64_t set_at = 0;  // microseconds
    unsigned denied = 0, victim = 0;
    Bin looked_at = 0;
    std::uint16_t seen[kBins] = {};  // fingerprints
  };

  // What the user said, or what the thread has come to, but no more than its share of a small container.
  static std::size_t budget(const PerThread& t, const Allowance& a) {
    if (a.asked != 0) return a.asked;
    const std::size_t usual = a.share < t.budget ? a.share : t.budget;
    // So a thread crosses the boundary before its live bytes halve (Boundary::give_up_if_halved).
    const std::size_t share = a.live / kShareOfLive;
    // Each thread may keep the slot that it cached last, and all of these are no more than one thread has.
    const bool only_share = a.shrinks || a.all_slots > kLeastAlone;
    const std::size_t alone = only_share || share > kLeastAlone ? share : kLeastAlone;
    return usual < alone ? usual : alone;
  }

  static Denial denied(PerThread& t) {
    if (++t.denied % kDeniedPerTake != 0) return Denial::kStays;
    return t.denied % kDeniedPerBudget == 0 ? Denial::kOneGivesAtThatTime : Denial::kOneGives;
  }
  // A cache of twice the size is worth its memory to a thread that spends a good part of its time at the
  // boundary. Measures by wall-clock time, because a thread's CPU time costs a system call. A thread that
  // waits for a processor looks calm, and busy again within its next slice of time.
  static void denied_often(PerThread& t, std::uint64_t now) {
    const std::uint64_t spent = now - t.set_at;
    t.set_at = now;
    if (spent < kBusyMicroseconds && t.budget < Line::kThreadCacheMost) t.budget *= 2;
    if (spent > kCalmMicroseconds && t.budget > Line::kThreadCacheBytes) t.budget /= 2;
  }
  static Bin next_to_give(PerThread& t) { return ++t.victim % kBins; }

  // Each crossing for a bin that caches looks at one bin in turn. If it is as it was the last time, the
  // thread does not use it, and half of it goes: a program that goes on to other sizes takes its memory
  // along. (As tcmalloc's low-water marks, without a mark on the hot path.)
  static Bin next_to_look_at(PerThread& t) { return t.looked_at = t.looked_at % (kBins - 1) + 1; }
  static bool is_unused(PerThread& t, Bin bin, std::uint16_t fingerprint) {
    const bool same = t.seen[bin] == fingerprint;
    t.seen[bin] = fingerprint;
    return same;
  }
  // The user may say less than the bins have come to.
  static bool is_over(const PerThread&, const Allowance& a, std::size_t bytes) {
    return a.asked != 0 && bytes > a.asked;
  }

  static unsigned purger_rest(unsigned usual, std::uint64_t) { return usual; }
};

}  // namespace hz
