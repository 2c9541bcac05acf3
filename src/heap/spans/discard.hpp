// SPDX-License-Identifier: Apache-2.0
//
// Discarding: pages of a span into which no slot reaches that is out go back to the system, although the span
// is in use. A span that a few slots hold open costs their pages then, and not 64 KiB. (They still count as
// held.) Called by the purger's ticks, without a purger by a thread whose live bytes have halved, by trim,
// and where the policy says so by the boundary when memory is mapped for a new span, with the thread's lock
// held; costs a look at a bitmap for each span, and a system call for each run of pages. The purger passes
// over spans that were used since it came by last (the clock algorithm): a program at work would touch those
// pages again at once. Source of the idea: PartitionAlloc's "discard unused system pages".
//
// Not where free slots carry marks or seals: a page that comes back reads as zero, and would look written to.
#pragma once

#include "heap/spans/span_return.hpp"

namespace hz {

template <class Line>
struct Discard {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;

  static constexpr bool kPossible = !Line::Guard::kMarks && !MitigationOf<Line>::kKeepsFreeSlots;
  static bool possible() { return kPossible && os::page_bytes() == kPage; }

  enum class Which : bool { kAll, kUnused };
  struct Found {
    std::size_t bytes = 0;  // purged
    bool in_use = false;    // a span was skipped, because it was used since the scan before
    bool refused = false;   // the system refused to purge some pages
    std::size_t next = 0;   // granule to continue from; 0: the scan is complete
  };
  // Steps of a scan in which the system purged nothing, one after the other.
  class Refusals {
   public:
    void note(const Found& found) {
      if (found.bytes != 0) count_ = 0;
      if (found.bytes == 0 && found.refused) ++count_;
    }
    bool are_many() const { return count_ == kMany; }

   private:
    static constexpr unsigned kMany = 3;
    unsigned count_ = 0;
  };

  // Scans up to `granules` granules, beginning with granule `from`, and purges their free pages.
  // Lock: the caller holds the thread's lock.
  static Found some(Thread& t, std::size_t from, std::size_t granules, Which which) {
    if (!possible()) return {};
    const Rows rows = Source::rows_from(S::global.source, from, granules);
    if (rows.begin == rows.end) return {};  // the call before scanned the last ones
    Found found = among(t, rows, which);
    found.next = rows.end;
    if (rows.end - rows.begin < granules) {  // elsewhere
      const Rows others = Source::rows_from(S::global.source, rows.end, 1);
      found.next = others.begin > rows.end ? others.begin : 0;
    }
    return found;
  }
  // Scans the next `granules` granules after those that the call before scanned.
  static void next(Thread& t, std::size_t granules) {
    std::atomic<std::size_t>& cursor = S::global.discard_cursor;
    const std::size_t from = cursor.load(std::memory_order_relaxed);
    cursor.store(some(t, from, granules, Which::kAll).next, std::memory_order_relaxed);
  }
  static constexpr std::uint64_t kSweepMilliseconds = 700;  // from one sweep over all spans to the next

  // Returns true if a sweep without a purger is under way, or due.
  static bool is_due(std::uint64_t now) {
    const bool under_way = S::global.sweep_at.load(std::memory_order_relaxed) != 0;
    return possible() &&
           (under_way || now - S::global.sweep_began.load(std::memory_order_relaxed) >= kSweepMilliseconds);
  }
  // Scans a few granules for it, or begins it; returns the bytes that were purged. Threads that do so at the
  // same time may scan some twice.
  static std::size_t go_on(Thread& t, std::uint64_t now) {
    constexpr std::size_t kAtOnce = 64;
    const std::size_t from = S::global.sweep_at.load(std::memory_order_relaxed);
    if (from == 0) S::global.sweep_began.store(now, std::memory_order_relaxed);
    const Found found = some(t, from, kAtOnce, Which::kUnused);
    S::global.sweep_at.store(found.next, std::memory_order_relaxed);
    return found.bytes;
  }
  // Scans all granules, or until about `most` bytes were purged, or the system refuses again and again, as it
  // does of locked memory; returns the bytes that were purged. A separate frame: test/stack bounds it.
  HZ_SLOW static std::size_t all(Thread& t, std::size_t most = SIZE_MAX) {
    constexpr std::size_t kAtOnce = 64;
    if (!possible()) return 0;
    std::size_t bytes = 0, from = 0;
    Refusals refusals;
    for (Rows rows; bytes < most && !refusals.are_many(); from = rows.end) {
      rows = Source::rows_from(S::global.source, from, kAtOnce);
      if (rows.begin == rows.end) break;
      const Found found = among(t, rows, Which::kAll);
      refusals.note(found);
      bytes += found.bytes;
    }
    return bytes;
  }

  // Returns true while a thread has a span claimed, whose free slots are unavailable for that moment.
  static bool in_flight() { return S::global.discarding.load(std::memory_order_acquire) != 0; }

 private:
  struct InFlight {
    InFlight() { S::global.discarding.fetch_add(1, std::memory_order_relaxed); }
    // Release: a thread that sees that there is none finds the span back in its list.
    ~InFlight() { S::global.discarding.fetch_sub(1, std::memory_order_release); }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
  };

  static Found among(Thread& t, Rows rows, Which which) {
    Found found;
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
      if (Pool::bin_in(S::shelves.pool, row) == 0) continue;
      const InFlight in_flight;
      FreePages claimed = Pool::claim_pages(S::shelves.pool, row, which == Which::kUnused);
      found.in_use |= claimed.in_use;
      if (claimed.span == 0) continue;
      const unsigned free = claimed.pages;
      claimed.pages = discarded(claimed);
      found.refused |= claimed.pages != free;
      found.bytes += static_cast<unsigned>(__builtin_popcount(claimed.pages)) * kPage;
      if (const std::uintptr_t emptied = Pool::settle_pages(S::shelves.pool, claimed))
        SpanReturn<Line>::emptied(t, claimed.bin, emptied);
    }
    SpanReturn<Line>::count_purge(t, found.bytes);
    return found;
  }

  // Run by run; those that the system took.
  static unsigned discarded(const FreePages& claimed) {
    unsigned done = 0;
    for (unsigned left = claimed.pages; left != 0;) {
      const auto first = static_cast<unsigned>(__builtin_ctz(left));
      const auto count = static_cast<unsigned>(__builtin_ctz(~(left >> first)));
      const unsigned run = ((1U << count) - 1) << first;
      if (os::purge(pointer(claimed.span + first * kPage), count * kPage)) done |= run;
      left &= ~run;
    }
    return done;
  }
};

}  // namespace hz
