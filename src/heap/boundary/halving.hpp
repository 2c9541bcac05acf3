// SPDX-License-Identifier: Apache-2.0
//
// Giving back without a purger: a thread that sees its live bytes halved returns what it caches, and goes on
// with the sweep that a purger would make. Called by the boundary at each crossing of a free, with the
// thread's lock held; costs a load where there is a purger.
#pragma once

#include "heap/exchange/reclaim.hpp"
#include "heap/spans/discard.hpp"

namespace hz {

template <class Line>
struct Halving {
  using S = State<Line>;
  using Spans = SpanReturn<Line>;
  using R = Reclaim<Line>;
  using Thread = typename S::Thread;
  using Exchange = typename Line::Exchange;
  using Retain = typename Line::Retain;

  // Returns true if a purger takes back what threads cache.
  static bool has_help() { return S::global.aided.load(std::memory_order_relaxed); }

  // Returns the thread's cache to its spans if its live bytes have halved since that happened last, so that
  // the last block that is freed leaves little behind. Only where no purger can do it (there is none, or no
  // barrier on all threads), only while much is cached or free in spans, and not in a process that was always
  // small. There a thread that frees for others sees no live bytes, and would empty its cache at each flush.
  // Lock: the caller holds the thread's lock. Called at each crossing of a free.
  static bool give_up_if_halved(Thread& t) {
    if (HZ_LIKELY(has_help())) return false;
    const std::size_t live = noted(t);
    // Its caches are not bounded by its live bytes either (Capacities::is_bounded).
    if (Retain::was_always_small(S::global.retain)) return false;
    const bool has_halved = live <= t.level / 2;
    if (!has_halved && !t.shrinks) return false;
    t.shrinks =
        Retain::idle_bytes(S::global.retain) > Retain::little(S::global.retain) || Spans::has_slack(t);
    if (!has_halved || !t.shrinks) return false;
    return halved(t, live), true;
  }
  // Goes on with a sweep over all spans, or begins one, as the purger does (heap/process/purger.hpp), where
  // there is none. Lock: the caller holds the thread's lock.
  static void sweep_if_due(Thread& t) {
    if (HZ_LIKELY(Retain::has_purger(S::global.retain)) || !Spans::has_slack(t)) return;
    if (Discard<Line>::is_due(os::milliseconds())) sweep(t);
  }
  // Raises the thread's level to its live bytes, and returns those.
  static std::size_t noted(Thread& t) {
    const std::size_t live = live_bytes(t);
    if (live > t.level) t.level = live, t.shrinks = false;
    return live;
  }

 private:
  // Bins count as half full. A thread that only frees blocks of others counts those of the process.
  static std::size_t live_bytes(const Thread& t) {
    if (t.taken <= 0) return Retain::live_bytes(t.retain);
    const auto taken = static_cast<std::size_t>(t.taken);
    const std::size_t cached = t.capacity_bytes / 2 + Exchange::outbox_bytes(t.exchange);
    return taken > cached ? taken - cached : 0;
  }
  // Then purges, and discards free pages of spans, as far as it is paid for (box/retain).
  HZ_SLOW static void halved(Thread& t, std::size_t live) {
    t.level = live;
    R::give_up(t, true);
    R::leave(t);
    Retain::bins_shrunk(t.retain, t.capacity_bytes);
    t.capacity_bytes = 0;
    Retain::fold(S::global.retain, t.retain);
    Spans::purge_if_due(t);
    if (Retain::has_purger(S::global.retain)) return;
    // While more than one slot in eight is out, few pages are free.
    const std::size_t in_spans = S::held().in_spans, spans = Retain::span_bytes(S::global.retain);
    if (in_spans >= spans / 8 * 7)
      discard(in_spans, [&](std::size_t paid) { return Discard<Line>::all(t, paid); });
  }
  HZ_SLOW static void sweep(Thread& t) {
    discard(S::held().in_spans, [&](std::size_t) { return Discard<Line>::go_on(t, os::milliseconds()); });
  }
  // Discards no page that the user lets stay.
  static void discard(std::size_t in_spans, auto pages) {
    const std::size_t paid = Retain::paid_for(S::global.retain);
    if (paid == 0 || Retain::unneeded(S::global.retain, in_spans, true).dirty == 0) return;
    Retain::purged(S::global.retain, pages(paid));
  }
};

}  // namespace hz
