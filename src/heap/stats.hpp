// SPDX-License-Identifier: Apache-2.0
//
// The numbers: sums what the threads counted and what the heap holds, and writes the one statistics line. Called by the
// direct API and at exit; locks one thread after the other, so the picture is exact when no thread of the program
// moves.
#pragma once

#include "hakozuna/hakozuna.h"
#include "heap/thread.hpp"

namespace hz {

template <class Line>
struct Stats {
  using S = State<Line>;
  using Thread = typename S::Thread;

  static hz_stats_t read() {
    typename S::Global& g = S::global;
    std::uint64_t sums[kEvents] = {};
    std::size_t cached = 0;
    std::size_t threads = 0;
    hz_stats_t out = {};
    {
      // The purger takes caches back with the list's lock, and sends home with that of the shared state what is loose.
      const typename S::Hold hold(g.threads_lock);
      for (Thread* t = g.threads; t != nullptr; t = t->next, ++threads) add_locked(*t, sums, cached);
      for (Thread* t = g.orphans; t != nullptr; t = t->next) add_locked(*t, sums, cached);
      const typename S::Hold shared(S::shared.lock);
      add(S::shared, sums, cached);
      cached += Line::Retain::loose_bytes(g.retain);
      out.bytes_held = Line::Retain::out_bytes(g.retain);
      out.bytes_peak = Line::Retain::peak_bytes(g.retain);
      out.bytes_dirty = Line::Source::dirty_bytes(g.source);
      out.bytes_metadata = sizeof(typename S::Global) + sizeof(typename S::Shelves) + g.thread_memory +
                           g.owners.chunk_bytes() + Line::Central::metadata_bytes(S::shelves.central) +
                           Line::Remote::metadata_bytes(S::shelves.remote);
    }
    if constexpr (Line::Remote::kDirect) cached += at(sums, Event::kBytesSent) - at(sums, Event::kBytesCollected);
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
    out.remote_waiting = out.remote_sent - out.remote_collected;
    out.spans_acquired = at(sums, Event::kSpanAcquired);
    out.spans_retired = at(sums, Event::kSpanRetired);
    out.purges = at(sums, Event::kPurge);
    out.bytes_purged = at(sums, Event::kPurgedBytes);
    out.bytes_cached = cached;
    // Counted where operations are counted: then held == live + cached is a proof and not a definition.
    out.bytes_live = out.counting != 0         ? at(sums, Event::kBytesAllocated) - at(sums, Event::kBytesFreed)
                     : out.bytes_held > cached ? out.bytes_held - cached
                                               : 0;
    if (g.open.load(std::memory_order_relaxed))
      out.bytes_metadata +=
          (Line::Source::reached_bytes(g.source) >> kGranuleShift) * Tables<Line>::kUsualBytesPerGranule;
    out.threads = threads;
    out.revocations = at(sums, Event::kRevoked);
    return out;
  }

  static void print(StatsFormat format) {
    const hz_stats_t s = read();
    const bool json = format == StatsFormat::kJson;
    os::Message m;
    m.text(json ? "{\"hz\":\"stats\",\"line\":\"" : "hz: stats line=").text(Line::kName);
    m.text(json ? "\",\"version\":\"" : " version=").text(HZ_VERSION);
    m.text(json ? "\",\"build\":\"" : " build=").text(kBuildKind).text("/").word(kCompiler).text(json ? "\"" : "");
    const auto* values = reinterpret_cast<const std::uint64_t*>(&s);
    for (std::size_t i = 0; i < kFields; ++i) {
      m.text(json ? ",\"" : " ").text(kNames[i]).text(json ? "\":" : "=").decimal(values[i]);
    }
    m.text(json ? "}\n" : "\n").send();
  }

 private:
  static constexpr std::size_t kFields = sizeof(hz_stats_t) / sizeof(std::uint64_t);
  static constexpr const char* kNames[] = {
      "counting",       "alloc_small",   "alloc_medium",   "alloc_large", "free_small",       "free_medium",
      "free_large",     "refills",       "flushes",        "remote_sent", "remote_collected", "remote_waiting",
      "spans_acquired", "spans_retired", "purges",         "bytes_held",  "bytes_live",       "bytes_cached",
      "bytes_dirty",    "bytes_purged",  "bytes_metadata", "bytes_peak",  "threads",          "revocations"};
  static_assert(sizeof kNames / sizeof kNames[0] == kFields);

  static std::uint64_t at(const std::uint64_t* sums, Event event) { return sums[static_cast<unsigned>(event)]; }

  static void add_locked(Thread& t, std::uint64_t* sums, std::size_t& cached) {
    const typename S::Hold hold(t.lock);
    add(t, sums, cached);
  }
  static void add(const Thread& t, std::uint64_t* sums, std::size_t& cached) {
    Line::Observe::add_to(t.observe, sums);
    cached += Line::Remote::outbox_bytes(t.remote);
    for (Bin bin = 1; bin < kBins; ++bin) cached += Line::Front::count(t.front, bin) * bin_size(bin);
  }
};

}  // namespace hz
