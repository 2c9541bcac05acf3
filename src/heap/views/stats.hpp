// SPDX-License-Identifier: Apache-2.0
//
// The numbers: sums what the threads counted and what the heap holds, and writes the one statistics line.
// Called by the direct API, at exit, and when SIGTERM ends the process; locks one thread after the other, so
// the picture is exact when no thread of the program moves.
#pragma once

#include "hakozuna/hakozuna.h"
#include "heap/process/fork.hpp"
#include "heap/settings/stats_line.hpp"

namespace hz {

template <class Line>
struct Stats {
  using S = State<Line>;
  using Thread = typename S::Thread;

  static hz_stats_t read() {
    Patience endless;
    return read(endless);
  }

  static void print(StatsFormat format) {
    os::LongMessage m;
    Patience endless;
    compose(m, format, endless).send();
  }
  static os::LongMessage& compose(os::LongMessage& m) {
    Patience endless;
    return compose(m, StatsFormat::kText, endless);
  }
  // For the end: where the user wants it.
  static void print_last() {
    os::LongMessage m;
    Patience endless;
    compose(m, Start<Line>::options.stats, endless).send_as_statistics();
  }
  // In a signal handler, wherever it interrupted the thread.
  static void print_interrupted() {
    os::LongMessage m;
    Patience short_one = {.milliseconds = kPatience};
    compose(m, Start<Line>::options.stats, short_one).send_as_statistics();
  }

 private:
  static constexpr unsigned kPatience = 100;  // milliseconds, for all locks together

  // The longest wait for locks. A signal handler may wait for a lock of the thread that it interrupted.
  struct Patience {
    unsigned milliseconds = 0;  // 0: no limit
    bool lost = false;

    unsigned now() const { return milliseconds == 0 ? os::Lock::kEndless : lost ? 1 : milliseconds; }
    bool for_source() {
      if (milliseconds == 0 || Line::Source::answers(S::global.source, now())) return true;
      lost = true;
      return false;
    }
  };
  // A lock, if it is to be had in that time.
  struct Look : os::Guarded {
    template <os::Rank kRank>
    Look(os::LockOf<kRank>& lock, Patience& patience) : Look(lock, kRank, patience) {}
    Look(os::Lock& lock, os::Rank rank, Patience& patience)
        : Guarded(S::tls().forking ? nullptr : &lock, rank, patience.now()) {
      patience.lost |= !may_walk();
    }
    bool may_walk() const { return has_lock() || S::tls().forking; }
  };

  static std::uint64_t at(const std::uint64_t* sums, Event event) {
    return sums[static_cast<unsigned>(event)];
  }

  // Returns 0 where it would be less: threads are counted one after the other, and one may go on meanwhile.
  static std::uint64_t difference(const std::uint64_t* sums, Event more, Event less) {
    return at(sums, more) > at(sums, less) ? at(sums, more) - at(sums, less) : 0;
  }

  // What could not be locked in time is counted as it is seen, or, a list, not at all.
  static hz_stats_t read(Patience& patience) {
    typename S::Global& g = S::global;
    std::uint64_t sums[kEvents] = {};
    std::size_t cached = 0;
    std::size_t threads = 0;
    hz_stats_t out = {};
    {
      // The purger takes caches back with the list's lock, and puts back, with that of its own state, what
      // waits.
      const Look list(g.threads_lock, patience);
      if (list.may_walk()) {
        for (Thread* t = g.threads; t != nullptr; t = t->next, ++threads)
          add_locked(*t, sums, cached, patience);
        for (Thread* t = g.orphans; t != nullptr; t = t->next) add_locked(*t, sums, cached, patience);
      }
      const Look shared(S::shared.lock, patience);
      add(S::shared, shared, sums, cached);
      const Look keeper(S::purger_state.lock, os::Rank::kPurger, patience);
      add(S::purger_state, keeper, sums, cached);
      cached += Line::Retain::waiting_bytes(g.retain);
      out.bytes_held = Line::Retain::out_bytes(g.retain);
      out.bytes_peak = Line::Retain::peak_bytes(g.retain);
      out.bytes_dirty = Line::Source::dirty_bytes(g.source);
      out.bytes_metadata = sizeof(typename S::Global) + sizeof(typename S::Shelves) + g.thread_memory +
                           g.owners.chunk_bytes() + S::shelves.heaps.chunk_bytes() +
                           Line::Exchange::metadata_bytes(S::shelves.exchange);
    }
    out.bytes_metadata += Sampling::metadata().load(std::memory_order_relaxed);
    cached += difference(sums, Event::kBytesSent, Event::kBytesCollected);
    out.counting = g.counting.load(std::memory_order_relaxed) ? 1 : 0;
    out.alloc_small = at(sums, Event::kAllocSmall);
    out.alloc_medium = at(sums, Event::kAllocMedium);
    out.alloc_large = at(sums, Event::kAllocLarge);
    out.free_small = at(sums, Event::kFreeSmall);
    out.free_medium = at(sums, Event::kFreeMedium);
    out.free_large = at(sums, Event::kFreeLarge);
    out.refills = at(sums, Event::kRefill);
    out.flushes = at(sums, Event::kFlush);
    out.remote_sent = at(sums, Event::kRemoteSent);
    out.remote_collected = at(sums, Event::kRemoteCollected);
    out.remote_waiting = difference(sums, Event::kRemoteSent, Event::kRemoteCollected);
    out.spans_acquired = at(sums, Event::kSpanAcquired);
    out.spans_retired = at(sums, Event::kSpanRetired);
    out.purges = at(sums, Event::kPurge);
    out.bytes_purged = at(sums, Event::kPurgedBytes);
    out.bytes_cached = cached;
    // Counted where operations are counted: then held == live + cached is a proof and not a definition.
    const std::uint64_t counted = difference(sums, Event::kBytesAllocated, Event::kBytesFreed);
    const std::size_t known = out.bytes_held > cached ? out.bytes_held - cached : 0;
    out.bytes_live = out.counting != 0 ? counted : known;
    if (g.open.load(std::memory_order_relaxed) && patience.for_source())
      out.bytes_metadata +=
          (Line::Source::reached_bytes(g.source) >> kGranuleShift) * Tables<Line>::kUsualBytesPerGranule;
    out.threads = threads;
    out.revocations = at(sums, Event::kRevoked);
    out.remote_refused = at(sums, Event::kRemoteRefused);
    out.classes_dealt = classes.dealt();
    const Decisions decisions = Line::Policy::decisions();
    out.policy_tight = decisions.tight ? 1 : 0;
    out.policy_turns = decisions.turns;
    out.preset_moves = decisions.moves;
    return out;
  }

  static os::LongMessage& compose(os::LongMessage& m, StatsFormat format, Patience& patience) {
    const hz_stats_t s = read(patience);
    return compose_stats(m, Line::kName, s, format, patience.lost);
  }

  static void add_locked(Thread& t, std::uint64_t* sums, std::size_t& cached, Patience& patience) {
    const Look hold(t.lock, patience);
    add(t, hold, sums, cached);
  }
  static void add(Thread& t, const Look& hold, std::uint64_t* sums, std::size_t& cached) {
    if (hold.may_walk()) Line::Retain::fold(S::global.retain, t.retain);
    Line::Observe::add_to(t.observe, sums);
    cached += Line::Exchange::outbox_bytes(t.exchange);
    for (Bin bin = 1; bin < kBins; ++bin) {
      cached += Line::Front::count(t.front, bin) * bin_size(bin);
      if constexpr (FrontOfQuarantine<typename Line::Front>)
        cached += Line::Front::waiting(t.front, bin) * bin_size(bin);
      if (const auto* quota = t.quota.peek_first())
        cached += Line::Front::count(quota->front, bin) * bin_size(bin);
    }
  }
};

}  // namespace hz
