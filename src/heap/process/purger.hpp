// SPDX-License-Identifier: Apache-2.0
//
// The purger: a background thread that finishes what the boundary cannot, because nobody crosses it: the
// caches of idle threads return to their spans, peaks decay, free pages go back to the system, those between
// living blocks as well. It sleeps
// while every thread is idle and nothing is left to do, and ends when the heap is small. Costs a look at
// every thread's heads and counts a tick.
//
// Where it starts: in malloc, of a process that has threads, when the heap is worth it, whoever allocates;
// never in free, because the C library frees under the lock that a new thread needs. A process that never had
// a thread gets none: it may ask the system for what only such a process may have, and its forks copy all of
// it. There, memory goes back as it is freed (Boundary::give_up_if_halved, box/retain).
#pragma once

#include "heap/process/revoke.hpp"
#include "heap/spans/discard.hpp"

namespace hz {

template <class Line>
struct Purger {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Hold = typename S::Hold;
  using Crossing = typename S::Crossing;
  using Policy = typename Line::Policy;
  using Retain = typename Line::Retain;
  using Background = typename Line::Background;
  using Source = typename Line::Source;

  // From malloc's slow path, without a lock. Control's thread is born there, too.
  static void start_if_worth() {
    if (HZ_UNLIKELY(Control::is_missing()) && may_start()) Control::start();
    if (HZ_LIKELY(there_is_one()) || !Background::worth(least_held())) return;
    if (os::may_have_threads() || S::global.thread_count.load(std::memory_order_relaxed) >= 2) start();
  }

 private:
  static inline constinit bool gave = false;       // the purger's own: memory came back in this tick
  static constexpr unsigned kRevokedPerTick = 16;  // bounds the time for which no thread can begin or end
  static constexpr std::size_t kLooksPerTick = 1024, kLooksAtOnce = 128;  // granules

  // One scan of all granules for free pages in spans. Owned by the purger.
  struct Sweep {
    std::uint64_t began = 0;  // milliseconds
    std::size_t at = 0;       // granule
    bool ended = true;
    bool again = true;  // another one may find more
    typename Discard<Line>::Refusals refusals{};
  };
  static inline constinit Sweep sweep{};

  // Without a lock; what is free in spans does not count, nor what is dirty and may stay in any case.
  static std::size_t least_held() {
    typename S::Global& g = S::global;
    return Retain::out_bytes(g.retain) +
           Retain::unneeded(g.retain, Source::dirty_bytes(g.source), true).dirty;
  }

  static bool there_is_one() { return S::global.purger.load(std::memory_order_relaxed) != S::kNoPurger; }

  static bool may_start() { return !S::tls().forking && S::tls().heap != &S::shared; }

  HZ_COLD static void start() {
    typename S::Global& g = S::global;
    if (!Start<Line>::options.background || !may_start()) return;
    if (os::milliseconds() < g.purger_not_before.load(std::memory_order_relaxed)) return;
    if (!os::is_noted_process()) return;
    std::uint32_t expected = S::kNoPurger;
    // Acquire: pairs with ended().
    if (!g.purger.compare_exchange_strong(expected, S::kPurgerRuns, std::memory_order_acquire,
                                          std::memory_order_relaxed))
      return;
    if (os::start_thread(kThread)) return;
    g.purger_not_before.store(os::milliseconds() + Background::kRetryMilliseconds, std::memory_order_relaxed);
    g.purger.store(S::kNoPurger, std::memory_order_relaxed);
  }

  static void run() {
    S::tls().heap = &S::shared;  // what the C library allocates for this thread
    bool barrier = os::barrier_on_all_threads();
    announce(true, barrier);
    sweep = {};
    unsigned quiet_ticks = 0;
    std::uint64_t in_vain_for = 0;  // microseconds, at the last tick
    for (unsigned number = 1;; ++number) {
      os::wait_at_most(word(), S::kPurgerRuns,
                       Policy::purger_rest(Background::kTickMilliseconds, in_vain_for));
      const std::uint64_t began = os::microseconds();
      gave = false;
      quiet_ticks = tick(number) ? quiet_ticks + 1 : 0;
      in_vain_for = gave ? 0 : os::microseconds() - began;
      const bool at_rest = Background::at_rest(quiet_ticks);
      if (ended(at_rest, barrier)) return;
      if (!at_rest) continue;
      quiet_ticks = 0;
      sweep = {};
      if (sleep()) continue;
      barrier = false;  // somebody forbade it meanwhile
      announce(true, barrier);
    }
  }

  static constexpr os::OwnThread kThread = {&run, "hz-purger"};

  static const std::uint32_t* word() { return reinterpret_cast<const std::uint32_t*>(&S::global.purger); }

  static void announce(bool purger, bool barrier) {
    Retain::set_purger(S::global.retain, purger);
    S::global.aided.store(purger && barrier, std::memory_order_relaxed);
  }

  // Whether there was nothing to do.
  static bool tick(unsigned number) {
    bool idle = false;
    const typename Faults<Line>::Telling telling;
    {
      const Hold list(S::global.threads_lock);
      const bool still = Background::is_still(ticks_unchanged());
      if (!still && !Background::tidies(number)) return false;
      fold_books();
      idle = take_back(still);
      Threads<Line>::release_spares();
    }
    return tidy(idle);
  }

  // What the crossings of others would do in time, while nobody crosses; whether nothing was left. `idle`:
  // all threads are, so that what waits in the exchange waits for nobody. In steps, each under the lock of
  // `purger_state`, which a fork waits for.
  static bool tidy(bool idle) {
    Thread& t = S::purger_state;
    if (Policy::watches()) {  // threads that stand still tell nothing
      const Crossing crossing(t);
      S::set_bounds(os::microseconds());
    }
    Retain::rest(S::global.retain, idle);
    const Unneeded unneeded = Retain::unneeded(S::global.retain, Source::dirty_bytes(S::global.source), idle);
    if (Line::Exchange::something_waits(S::shelves.exchange)) {
      flush(t, Retain::out_bytes(S::global.retain));
    } else if (unneeded.waiting != 0) {
      flush(t, unneeded.waiting);
    } else {
      trim(t);
    }
    const bool purged = purge(t, dirty_to_keep(t, unneeded.dirty));
    const bool discarded = discard(t, idle);
    return idle && !purged && !discarded && Retain::at_rest(S::global.retain);
  }

  static std::size_t dirty_to_keep(Thread& t, std::size_t unneeded) {
    const Crossing crossing(t);
    const std::size_t dirty = Source::dirty_bytes(S::global.source);
    const std::size_t target = Retain::dirty_target(S::global.retain, t.retain);
    const std::size_t needed = dirty > unneeded ? dirty - unneeded : 0;
    const bool due = dirty > Retain::dirty_limit(S::global.retain, t.retain);
    return due && target < needed ? target : needed;
  }

  // Of what waits in the exchange, so many bytes return to their spans: no more, or busy threads would fill
  // the lists again for ever.
  static void flush(Thread& t, std::size_t bytes) {
    const unsigned end = S::global.owners.end();
    for (unsigned owner = 0; owner < end && bytes != 0; ++owner) flush_owner(t, owner, bytes);
    flush_owner(t, Line::Exchange::kOrphans, bytes);
    const Crossing crossing(t);
    TransferCache<Line>::shrink();
  }
  static void flush_owner(Thread& t, unsigned owner, std::size_t& bytes) {
    for (Bin bin = 1; bin < kBins; ++bin) {
      for (std::size_t gone = 1; gone != 0 && bytes != 0; bytes -= gone < bytes ? gone : bytes) {
        const Crossing crossing(t);
        gone = TransferCache<Line>::flush_some(t, owner, bin);
      }
    }
  }

  // Until no more waits than may.
  static void trim(Thread& t) {
    for (bool some = true; some;) {
      some = false;
      for (unsigned at = 0; at < TransferCache<Line>::lists(); at += TransferCache<Line>::kLooks) {
        const Crossing crossing(t);
        some |= TransferCache<Line>::trim(t) != 0;
      }
    }
  }

  // Down to `keep` dirty bytes; whether anything went.
  static bool purge(Thread& t, std::size_t keep) {
    for (bool any = false;; any = true) {
      const Crossing crossing(t);
      if (SpanReturn<Line>::purge(t, keep, SpanReturn<Line>::kPurgedAtOnce) == 0) return any;
      gave = true;
    }
  }

  // Returns the bytes of spans that no thread has as slots.
  static std::size_t free_in_spans() {
    const std::size_t spans = Retain::span_bytes(S::global.retain), out = Retain::out_bytes(S::global.retain),
                      huge = S::global.huge_bytes.load(std::memory_order_relaxed);
    const std::size_t slots = out > huge ? out - huge : 0;
    return spans > slots ? spans - slots : 0;
  }

  // Continues a sweep over all spans, or begins one. Purges the free pages of spans that no thread used since
  // the sweep before. Begins one sweep after the other where memory is tight, and none while free slots are
  // within the floor. Returns true if another sweep may find more.
  static bool discard(Thread& t, bool idle) {
    using D = Discard<Line>;
    if (!D::possible() || Retain::unneeded(S::global.retain, free_in_spans(), true).dirty == 0) return false;
    sweep.again |= !idle;
    const std::uint64_t now = os::milliseconds();
    if (sweep.ended) {
      const bool due = Policy::looks() != 0 || now - sweep.began >= D::kSweepMilliseconds;
      if (!sweep.again || !due) return sweep.again;
      sweep = {.began = now, .ended = false, .again = !idle};
    }
    for (std::size_t looked = 0; looked < kLooksPerTick && !sweep.ended; looked += kLooksAtOnce) {
      const Crossing crossing(t);
      const typename D::Found found = D::some(t, sweep.at, kLooksAtOnce, D::Which::kUnused);
      sweep.at = found.next;
      sweep.refusals.note(found);
      sweep.ended = found.next == 0 || sweep.refusals.are_many();  // the next sweep asks again
      sweep.again |= found.in_use;
      gave |= found.bytes != 0;
    }
    return !sweep.ended || sweep.again;
  }

  // What threads have counted and not folded: who seldom crosses, never would. Who is at the boundary now
  // does so, or is met at a later tick. With the list's lock.
  static void fold_books() {
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) {
      const typename S::TryHold hold(t->lock);
      if (hold.held) Retain::fold(S::global.retain, t->retain);
    }
  }

  // Takes back what idle threads cache, and what busy ones do when the heap has shrunk, because much of it
  // may be of sizes that they no longer use, or is sparse, because each slot that they cache may be what
  // keeps a span: of those some at each tick, in turn. Whether all threads are idle, and none has to wait for
  // the next tick. Where there is no barrier they keep it. With the list's lock.
  static bool take_back(bool still) {
    typename S::Global& g = S::global;
    const bool aided = g.aided.load(std::memory_order_relaxed);
    const bool sparse = Retain::sparse(g.retain, g.huge_bytes.load(std::memory_order_relaxed));
    const unsigned turns = g.thread_count.load(std::memory_order_relaxed) / kRevokedPerTick + 1;
    unsigned at = g.busy_turn++;
    bool idle = true;
    unsigned revoked = 0;
    for (Thread* t = g.threads; t != nullptr; t = t->next) {
      if (t->revoked.peek()) continue;
      const bool busy = !still && !Background::is_idle(t->same);
      if (busy) idle = false;
      const bool its_turn = sparse && at++ % turns == 0;
      if (!aided || !t->hooked.peek() || (busy && !has_outgrown(*t) && !its_turn)) continue;
      if (revoked == kRevokedPerTick) return false;
      if (Revocation<Line>::revoke(*t)) {
        t->highest = 0;
        ++revoked;
        gave = true;
      }
    }
    return idle;
  }

  // Of every thread, noted in its `same`; the least of them is returned.
  static unsigned ticks_unchanged() {
    unsigned least = ~0U;
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) {
      if (t->revoked.peek()) continue;
      std::uint64_t now = Line::Front::signature(t->front) + Line::Exchange::outbox_bytes(t->exchange);
      // Acquire: pairs with Quotas::begin(), which takes the thread's lock alone.
      if (const auto* quota = t->quota.peek_first()) now += Line::Front::signature(quota->front);
      t->same = now == t->signature ? t->same + 1 : 0;
      t->signature = now;
      if (t->same < least) least = t->same;
    }
    return least;
  }

  static bool has_outgrown(Thread& t) {
    const std::size_t out = Retain::out_bytes(S::global.retain);
    if (out > t.highest) t.highest = out;
    return Background::outgrown(out, t.highest);
  }

  // At once when every thread that used the heap has ended: it must not be what keeps the process alive.
  // Without a barrier it could not sleep, and ends when it would.
  static bool ended(bool at_rest, bool barrier) {
    const Hold list(S::global.threads_lock);
    const bool stays = !at_rest || (barrier && Background::worth(least_held()));
    if (S::global.threads != nullptr && stays) return false;
    announce(false, false);
    // Release: pairs with start(); the next purger attends after this one has left.
    S::global.purger.store(S::kNoPurger, std::memory_order_release);
    return true;
  }

  // Until a thread comes back or is born, or the last one ends. Whoever comes back before the barrier is seen
  // here; whoever comes later sees that we sleep. False without a barrier.
  static bool sleep() {
    std::atomic<std::uint32_t>& purger = S::global.purger;
    purger.store(S::kPurgerSleeps, std::memory_order_relaxed);
    const bool barrier = os::barrier_on_all_threads();
    if (!barrier || !all_sleep()) purger.store(S::kPurgerRuns, std::memory_order_relaxed);
    while (purger.load(std::memory_order_relaxed) == S::kPurgerSleeps) os::wait_on(word(), S::kPurgerSleeps);
    return barrier;
  }

  // Whether there are threads, and all of them revoked.
  static bool all_sleep() {
    const Hold list(S::global.threads_lock);
    if (S::global.threads == nullptr) return false;
    for (const Thread* t = S::global.threads; t != nullptr; t = t->next) {
      if (!t->revoked.peek()) return false;
    }
    return true;
  }
};

}  // namespace hz
