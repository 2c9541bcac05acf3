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

  static void run() {
    if constexpr (!Line::Guard::kProves) {
      Forks<Line>::notice_process();
      if (!may_look()) return;
      const typename Faults<Line>::Telling telling;
      for (unsigned i = 0; i < kPatience && !took_from_others(); ++i) os::give_way();
      if (S::tls().heap != nullptr && S::tls().heap != &S::shared) look_at(*S::tls().heap);
      look_at(S::shared);
    }
    MitigationOf<Line>::look_at_exit();
  }

  static constexpr unsigned kPatience = 100;
  // Returns false in the child of a fork, and where this thread has locks already.
  static bool may_look() {
    return Start<Line>::is_open() && !os::is_forked() && !FaultReport::is_ending() && !S::tls().forking &&
           S::tls().inside == 0;
  }

 private:
  static void look_at(Thread& t) {
    for (unsigned i = 0; i < kPatience && !emptied(t); ++i) os::give_way();
  }

  // A thread that is at the boundary keeps what it has.
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
