// SPDX-License-Identifier: Apache-2.0
//
// The purger: a background thread that finishes what the boundary cannot, because nobody crosses it: the caches of idle
// threads go home, peaks are forgotten, free pages go back to the system. It sleeps while every thread is idle and
// nothing is left to do, and ends when the heap is small. Costs a look at every thread's heads and counts a tick.
//
// Where it starts: a process with threads gets one in malloc, when the heap is worth it; never in free, because the C
// library frees under the lock that a new thread needs. A process that never had a thread is left alone (it may ask the
// system for what only such a process may have) until memory is stuck, and then gets one in free: while it grows, what
// earlier blocks left behind is no sign of anything.
#pragma once

#include "heap/revoke.hpp"

namespace hz {

template <class Line>
struct Purger {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Hold = typename S::Hold;
  using B = Boundary<Line>;
  using Retain = typename Line::Retain;
  using Background = typename Line::Background;
  using Source = typename Line::Source;

  // From malloc's slow path, without a lock.
  static void start_if_worth() {
    if (HZ_LIKELY(!Background::worth(least_held())) || there_is_one()) return;
    const bool threads = S::global.thread_count.load(std::memory_order_relaxed) >= 2;
    if (threads || (!os::never_had_threads() && stuck())) start();
  }
  // From that of free.
  static void start_if_stuck() {
    if (!there_is_one() && os::never_had_threads() && stuck()) start();
  }

 private:
  static constexpr unsigned kRevokedPerTick = 16;  // bounds the time for which no thread can begin or end

  // Without a lock; what is free in spans does not count.
  static std::size_t least_held() {
    return Retain::out_bytes(S::global.retain) + Source::dirty_bytes(S::global.source);
  }

  static bool there_is_one() { return S::global.purger.load(std::memory_order_relaxed) != S::kNoPurger; }

  static bool stuck() {
    return Background::stuck(Source::held_bytes(S::global.source), Retain::busy_bytes(S::global.retain));
  }

  HZ_COLD static void start() {
    typename S::Global& g = S::global;
    if (!Threads<Line>::options.background || S::tls.forking || S::tls.heap == &S::shared) return;
    if (os::milliseconds() < g.purger_not_before.load(std::memory_order_relaxed)) return;
    std::uint32_t expected = S::kNoPurger;
    if (!g.purger.compare_exchange_strong(expected, S::kPurgerRuns, std::memory_order_relaxed)) return;
    if (os::start_thread(&run, "hz-purger")) return;
    g.purger_not_before.store(os::milliseconds() + Background::kRetryMilliseconds, std::memory_order_relaxed);
    g.purger.store(S::kNoPurger, std::memory_order_relaxed);
  }

  static void run() {
    S::tls.heap = &S::shared;  // what the C library allocates for this thread
    unsigned quiet_ticks = 0;
    for (unsigned number = 1;; ++number) {
      os::wait_at_most(word(), S::kPurgerRuns, Background::kTickMilliseconds);
      quiet_ticks = tick(number) ? quiet_ticks + 1 : 0;
      const bool at_rest = Background::at_rest(quiet_ticks);
      if (ended(at_rest)) return;
      if (!at_rest) continue;
      sleep();
      quiet_ticks = 0;
    }
  }

  static const std::uint32_t* word() { return reinterpret_cast<const std::uint32_t*>(&S::global.purger); }

  // Whether there was nothing to do.
  static bool tick(unsigned number) {
    bool idle = false;
    {
      const Hold list(S::global.threads_lock);
      const bool still = Background::is_still(ticks_unchanged());
      if (!still && !Background::tidies(number)) return false;
      idle = take_back(still);
    }
    const Hold hold(S::shared.lock);
    return B::tidy(S::shared, idle);
  }

  // Takes back what idle threads cache, and, when the heap has shrunk, what busy ones do: much of it may be of sizes
  // that they no longer use. Whether all threads are idle. Where there is no barrier they keep it. With the list's
  // lock.
  static bool take_back(bool still) {
    bool idle = true;
    unsigned looked = 0;
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) {
      if (t->revoked.peek()) continue;
      const bool busy = !still && !Background::is_idle(t->same);
      if (busy) idle = false;
      if (busy && !has_outgrown(*t)) continue;
      if (++looked <= kRevokedPerTick && Revocation<Line>::revoke(*t)) t->highest = 0;
    }
    return idle && looked <= kRevokedPerTick;
  }

  // Of every thread, noted in its `same`; the least of them is returned.
  static unsigned ticks_unchanged() {
    unsigned least = ~0U;
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) {
      if (t->revoked.peek()) continue;
      const std::uint64_t now = Line::Front::signature(t->front) + Line::Remote::outbox_bytes(t->remote);
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
  static bool ended(bool at_rest) {
    const Hold list(S::global.threads_lock);
    if (S::global.threads != nullptr && (!at_rest || Background::worth(least_held()))) return false;
    S::global.purger.store(S::kNoPurger, std::memory_order_relaxed);
    return true;
  }

  // Until a thread comes back or is born, or the last one ends. Whoever comes back before the barrier is seen here;
  // whoever comes later sees that we sleep.
  static void sleep() {
    std::atomic<std::uint32_t>& purger = S::global.purger;
    purger.store(S::kPurgerSleeps, std::memory_order_relaxed);
    if (!os::barrier_on_all_threads() || !all_sleep()) purger.store(S::kPurgerRuns, std::memory_order_relaxed);
    while (purger.load(std::memory_order_relaxed) == S::kPurgerSleeps) os::wait_on(word(), S::kPurgerSleeps);
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
