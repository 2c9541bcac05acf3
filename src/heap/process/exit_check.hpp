// SPDX-License-Identifier: Apache-2.0
//
// A check of all that waits free when the process exits, for lines whose guard proves nothing at the free: a
// short program ends before its bins are flushed, and a block that it freed twice is in there twice. Slots
// return to their spans, which is the proof. Called once, after the program's own exit handlers; costs as
// much as a trim that purges nothing.
//
// Other threads may still run, and may stand anywhere, so no lock is waited for: what cannot be had soon is
// not looked at. The caller may be a signal handler that has interrupted a crossing: then nothing is. Nor
// does the child of a fork look: it would copy its parent's pages for that.
#pragma once

#include "heap/process/revoke.hpp"

namespace hz {

template <class Line>
struct ExitCheck {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Front = typename Line::Front;

  static void run() {
    if constexpr (!Line::Guard::kProves) {
      Forks<Line>::notice_process();
      if (!Start<Line>::is_open() || S::global.forks != 0 || FaultReport::is_ending()) return;
      if (S::tls().forking || S::tls().inside != 0) return;  // its locks are ours already
      const typename Faults<Line>::Telling telling;
      for (unsigned i = 0; i < kPatience && !took_from_others(); ++i) os::give_way();
      if (S::tls().heap != nullptr && S::tls().heap != &S::shared) look_at(*S::tls().heap);
      look_at(S::shared);
    }
    if constexpr (Line::Guard::kSealBytes != 0) look_at_all();
  }

 private:
  static constexpr unsigned kPatience = 100;
  static constexpr std::size_t kMostLooked = 256 * kMiB;

  static void look_at_all() {
    Forks<Line>::notice_process();
    if (!Start<Line>::is_open() || S::global.forks != 0 || FaultReport::is_ending()) return;
    if (S::tls().forking || S::tls().inside != 0) return;
    const typename Faults<Line>::Telling telling;
    for (unsigned i = 0; i < kPatience && !looked_at_all(); ++i) os::give_way();
  }
  // Whoever could end a span meanwhile is kept from it: the purger, and who has no state of its own.
  static bool looked_at_all() {
    const typename S::TryHold list(S::global.threads_lock);
    if (!list.held) return false;
    const typename S::TryHold shared(S::shared.lock);
    if (!shared.held) return false;
    const typename S::TryHold purger(S::purger_state.lock);
    if (!purger.held) return false;
    const unsigned others = S::global.thread_count.load(std::memory_order_relaxed) -
                            (S::tls().heap != nullptr && S::tls().heap != &S::shared ? 1 : 0);
    if (others == 0 && Line::Source::answers(S::global.source, kPatience)) look_at_spans();
    return true;
  }
  static void look_at_spans() {
    using Route = typename Line::Route;
    constexpr std::size_t kAtOnce = 1024;
    std::size_t left = kMostLooked >> kGranuleShift, from = 0;
    for (Rows rows; left != 0 &&
                    (rows = Line::Source::rows_from(S::global.source, from, kAtOnce), rows.begin != rows.end);
         from = rows.end) {
      for (std::size_t row = rows.begin; row < rows.end && left != 0; ++row) {
        const std::uintptr_t at = Line::Source::base(S::global.source) + (row << kGranuleShift);
        const Bin bin = Route::bin(Route::find(S::global.route, at));
        if (bin == 0 || bin == kHeapBin) continue;
        --left;
        Fault fault = Fault::kNone;
        const void* const slot = bin != kHugeBin ? looked_at(at, bin, fault) : pointer(at);
        if (bin == kHugeBin && !Line::Guard::is_run_sealed(slot)) fault = Fault::kOutOfBounds;
        if (fault != Fault::kNone) Faults<Line>::note(fault, slot, bin);
      }
    }
  }

  // A free slot that nobody holds may be one that a signal handler has taken this thread's hands off, before
  // its seal was whole, or before it was clear.
  static const void* looked_at(std::uintptr_t span, Bin bin, Fault& fault) {
    return Line::Guard::look(span, bin, fault, [bin](const void* slot) {
      return Line::Pool::holds(S::shelves.pool, bin, slot) || caches(S::shared, bin, slot) ||
             (S::tls().heap != nullptr && caches(*S::tls().heap, bin, slot));
    });
  }
  static bool caches(const Thread& t, Bin bin, const void* slot) {
    const auto* const quota = t.quota.peek();
    return Front::holds(t.front, bin, slot) || (quota != nullptr && Front::holds(quota->front, bin, slot));
  }

  static void look_at(Thread& t) {
    for (unsigned i = 0; i < kPatience && !emptied(t); ++i) os::give_way();
  }

  // Who is at the boundary keeps what it has.
  static bool took_from_others() {
    const typename S::TryHold list(S::global.threads_lock);
    if (!list.held) return false;
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) {
      if (t != S::tls().heap) Revocation<Line>::revoke(*t);
    }
    return true;
  }

  // Of what it caches, and of all that waits in the exchange.
  static bool emptied(Thread& t) {
    const typename S::TryHold hold(t.lock);
    if (!hold.held) return false;
    if (!t.revoked.peek()) Reclaim<Line>::give_up(t, true);
    for (unsigned owner = 0; owner < S::global.owners.end(); ++owner) TransferCache<Line>::flush(t, owner);
    return true;
  }
};

}  // namespace hz
