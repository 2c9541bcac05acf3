// SPDX-License-Identifier: Apache-2.0
//
// A shelf for each class and processor: a lock, and a list of the spans that have slots to give. Spans whose
// pages were discarded stand last, so that slots that have memory go out first.
// Called by: span_pool.hpp. Cost: a lock is held for a few dozen instructions.
//
//   in the list of its shelf  <=>  the span may give slots and is not claimed
//   a span's shelf changes with the locks of both shelves held, the lower address first
#pragma once

#include <atomic>

#include "box/pool/span_table.hpp"
#include "os/lock.hpp"
#include "os/os.hpp"

namespace hz {

struct Shelves {
  static constexpr unsigned kShards = 16;  // on machines with more processors some share one

  struct alignas(32) Shelf {
    os::LockOf<os::Rank::kShelf> lock;
    std::atomic<std::uint32_t> head{0};  // granule number; written with the lock, else a hint
    std::uint32_t last = 0;

    std::uint32_t first() const { return head.load(std::memory_order_relaxed); }
    void set_first(std::uint32_t row) { head.store(row, std::memory_order_relaxed); }
  };
  struct alignas(64) Shard {
    Shelf of_bin[kBins];
  };
  Shard shards[kShards];
  alignas(64) std::atomic<std::uint32_t> used{0};  // a bit for each shard that ever had a span, set before

  // Returns the shard of this processor.
  unsigned here() {
    const unsigned shard = os::current_cpu() % kShards;
    const std::uint32_t mine = 1U << shard;
    if ((used.load(std::memory_order_relaxed) & mine) == 0) used.fetch_or(mine, std::memory_order_relaxed);
    return shard;
  }
  Shelf& of(const Span& span) { return shards[span.shard()].of_bin[span.bin()]; }

  // Calls `visit` with the class of a span, and the lock of its shelf held; not if no span begins there.
  void with_shelf(const Span& span, auto visit) {
    for (;;) {
      const std::uint16_t place = span.place.load(std::memory_order_relaxed);
      const Bin bin = place & 0xff;
      if (bin == 0) return;
      const os::Guarded hold(shards[place >> 8].of_bin[bin].lock);
      // A thread that moves a span to this shelf, or from it, needs the lock.
      if (span.place.load(std::memory_order_relaxed) == place) return visit(bin);
    }
  }

  void link(const SpanTable& table, std::uint32_t row) {
    Span& span = table.spans[row];
    Shelf& own = of(span);
    span.next = own.first();
    span.previous = 0;
    (span.next != 0 ? table.spans[span.next].previous : own.last) = row;
    own.set_first(row);
    span.listed = true;
    table.check(row);
  }
  void link_last(const SpanTable& table, std::uint32_t row) {
    Span& span = table.spans[row];
    Shelf& own = of(span);
    if (own.last == 0) return link(table, row);
    span.next = 0;
    span.previous = own.last;
    table.spans[own.last].next = row;
    own.last = row;
    span.listed = true;
    table.check(row);
  }
  void unlink(const SpanTable& table, std::uint32_t row) {
    Span& span = table.spans[row];
    Shelf& own = of(span);
    (span.next != 0 ? table.spans[span.next].previous : own.last) = span.previous;
    if (span.previous != 0) {
      table.spans[span.previous].next = span.next;
    } else {
      own.set_first(span.next);
    }
    span.listed = false;
  }

  // Empties the shelves of every class of which a lock was held, in the child of a fork. Returns those in
  // `cut`.
  void lose(bool (&cut)[kBins]) {
    for (Shard& shard : shards)
      for (Bin bin = 1; bin < kBins; ++bin) cut[bin] |= shard.of_bin[bin].lock.reset();
    for (Shard& shard : shards)
      for (Bin bin = 1; bin < kBins; ++bin)
        if (cut[bin]) shard.of_bin[bin].set_first(0), shard.of_bin[bin].last = 0;
  }
};

}  // namespace hz
