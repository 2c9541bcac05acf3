// SPDX-License-Identifier: Apache-2.0
//
// The descriptor of a span. It stands in a table beside the arena, one row a granule, so no byte of it lies
// in or beside user memory.
// Used by: span_table.hpp, shelves.hpp and span_pool.hpp, with the lock of the span's shelf.
//
//   carved <= slots of the class      slots below `carved` were handed out at least once
//   free == bits in the span's bitmap
//   free == carved                    no slot is out: the span leaves the pool, unless it is claimed
//   a bit in `absent`                 the page was never touched, or was discarded, and no slot that reaches
//                                     into it was handed out since: it has no memory, unless a huge page
//                                     brought some
#pragma once

#include <atomic>

#include "base/layout.hpp"
#include "base/size_classes.hpp"
#include "base/units.hpp"

namespace hz {

struct Span {
  static constexpr unsigned kPages = kGranule >> kPageShift, kAllPages = (1U << kPages) - 1;
  static_assert(kPages <= 16, "a bit for each in `absent`");
  static_assert(kBins <= (1U << 8), "a byte of `place`");

  std::uint32_t next, previous;  // granule numbers; 0 ends the list
  std::uint16_t carved, free;
  std::uint32_t owner;
  std::uint16_t absent;  // a bit a page
  // The shard and the bin. A thread reads it without a lock to find the shelf; it is constant while that
  // shelf's lock is held.
  std::atomic<std::uint16_t> place;
  bool listed, zeroed, claimed;
  bool in_use;  // slots were taken from it, or returned, since claim_pages()

  // The low byte of `place` is the class; 0: the granule begins no span.
  static constexpr auto words() {
    return layout::Words<6>{layout::Word("span.bytes", sizeof(Span)),
                            {"span.page", kPage},
                            {"span.absent", offsetof(Span, absent), sizeof(std::uint16_t)},
                            {"span.carved", offsetof(Span, carved), sizeof(std::uint16_t)},
                            {"span.free", offsetof(Span, free), sizeof(std::uint16_t)},
                            {"span.place", offsetof(Span, place), sizeof(std::uint16_t)}};
  }

  unsigned shard() const { return place.load(std::memory_order_relaxed) >> 8; }
  Bin bin() const { return place.load(std::memory_order_relaxed) & 0xff; }
  void set_place(unsigned shard, Bin bin) {
    place.store(static_cast<std::uint16_t>(shard << 8 | bin), std::memory_order_relaxed);
  }

  unsigned slots_out() const { return unsigned{carved} - free; }
  bool may_give() const { return free != 0 || carved != bin_slots(bin()); }

  // Notes that slots which lie there are about to be handed out.
  void touched(std::size_t begin, std::size_t bytes) {
    absent = static_cast<std::uint16_t>(absent & ~pages_of(begin, bytes));
  }
  // Clears all but the shard, which other threads read, and the absent pages, which absent_bytes() reads.
  void clear() {
    next = previous = 0;
    carved = free = 0;
    owner = 0;
    set_place(shard(), 0);
    listed = zeroed = claimed = in_use = false;
  }

  // Returns a bit for each page that no slot of the class reaches into. The source keeps these without
  // memory.
  static unsigned tail_pages(Bin bin) {
    return is_large(bin) ? 0 : kAllPages & ~pages_of(0, bin_slots(bin) * bin_size(bin));
  }
  // Returns a bit for each page of these bytes.
  static unsigned pages_of(std::size_t begin, std::size_t bytes) {
    const unsigned first = static_cast<unsigned>(begin >> kPageShift);
    const unsigned end = static_cast<unsigned>((begin + bytes - 1) >> kPageShift) + 1;
    return kAllPages >> (kPages - (end < kPages ? end : kPages)) & ~0U << first;
  }
};
static_assert(sizeof(Span) == 24);

}  // namespace hz
