// SPDX-License-Identifier: Apache-2.0
//
// A look at all slots and runs when the process exits: a write beside a block that was never freed is found
// here. Called once, by heap/process/exit_check.hpp for a line with seals; costs a read of every slot, of 256
// MiB at most.
//
// Other threads may still run: as there, nothing is waited for long.
#pragma once

#include "heap/process/exit_check.hpp"

namespace hz {

template <class Line>
struct ExitLook {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Front = typename Line::Front;
  using Source = typename Line::Source;

  static void run() {
    Forks<Line>::notice_process();
    if (!ExitCheck<Line>::may_look()) return;
    const typename Faults<Line>::Telling telling;
    for (unsigned i = 0; i < kPatience && !looked_at_all(); ++i) os::give_way();
  }

 private:
  static constexpr unsigned kPatience = ExitCheck<Line>::kPatience;
  static constexpr std::size_t kMostLooked = 256 * kMiB;

  // Holds the locks of all that could end a span meanwhile: the purger, and threads that share a state.
  static bool looked_at_all() {
    const typename S::TryHold list(S::global.threads_lock);
    if (!list.held) return false;
    const typename S::TryHold shared(S::shared.lock);
    if (!shared.held) return false;
    const typename S::TryHold purger(S::purger_state.lock, os::Rank::kPurger);
    if (!purger.held) return false;
    const unsigned others = S::global.thread_count.load(std::memory_order_relaxed) -
                            (S::tls().heap != nullptr && S::tls().heap != &S::shared ? 1 : 0);
    if (others == 0 && Source::answers(S::global.source, kPatience)) look_at_rows();
    return true;
  }
  static void look_at_rows() {
    constexpr std::size_t kAtOnce = 1024;
    std::size_t left = kMostLooked >> kGranuleShift, from = 0;
    for (Rows rows;
         left != 0 && (rows = Source::rows_from(S::global.source, from, kAtOnce), rows.begin != rows.end);
         from = rows.end) {
      for (std::size_t row = rows.begin; row < rows.end && left != 0; ++row)
        left -= look_at_row(Source::base(S::global.source) + (row << kGranuleShift));
    }
  }
  // Returns the number of spans and runs that it looked at.
  static unsigned look_at_row(std::uintptr_t at) {
    const Block<Line> found = classify<Line>(pointer(at));
    Fault fault = Fault::kNone;
    const void* place = pointer(at);
    switch (found.kind) {
      case Kind::kNothing:
      case Kind::kExtension:
      case Kind::kInHeap: return 0;
      case Kind::kSlot: place = looked_at(at, found.bin, fault); break;
      case Kind::kRun:
        if (!Line::Guard::is_run_sealed(place)) fault = Fault::kOutOfBounds;
        break;
    }
    if (fault != Fault::kNone) Faults<Line>::note(fault, place, found.bin);
    return 1;
  }

  // A free slot that is in no list may be one at which a signal handler interrupted this thread, before its
  // seal was whole, or before it was clear.
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
};

}  // namespace hz
