// SPDX-License-Identifier: Apache-2.0
//
// Role: where are free slots that lie in their spans? A pool knows which spans have some and which are empty,
// and is where double frees meet at the latest.
#pragma once

#include <concepts>

#include "base/size_classes.hpp"

namespace hz {

// Slots taken from one span. The route must learn of the pages [first_page, first_page + pages) before a slot
// is handed out: they were carved now, or the span has changed its owner.
struct Taken {
  std::uintptr_t span = 0;  // address of its first granule
  unsigned slots = 0;
  unsigned first_page = 0, pages = 0;
  std::size_t end = 0;  // of the slots ever carved, in bytes from the span's start
  unsigned begin = 0;   // the first slot of those that were carved now, which follow each other
  bool fresh = false;   // carved now: no slot was ever handed out, and they are not listed; see Carved
  bool zeroed = false;  // and they read as zero
};

// Names the slots that were carved, one after the other. Neighbours in memory do not follow each other if
// they share a line: of what a thread allocates in a row it may give one to each of several threads, and
// those would share the line, too. So the span is walked in rows of slots that lie `apart` from each other.
class Carved {
 public:
  Carved(const Taken& taken, std::size_t size, unsigned apart)
      : span_(taken.span),
        size_(size),
        step_(apart * size),
        apart_(apart),
        left_(taken.slots),
        last_(taken.begin + taken.slots - 1) {
    enter(taken.begin + (left_ < apart ? left_ : apart) - 1);
  }
  unsigned left() const { return left_; }

  // In the order in which a bin takes them: the one to hand out first, which is the lowest, comes last.
  void* next() {
    --left_;
    void* slot = pointer(at_);
    if (at_ != begin_) {
      at_ -= step_;
    } else {
      enter(row_ - 1);
    }
    return slot;
  }

 private:
  void enter(unsigned row) {
    row_ = row;
    begin_ = span_ + row * size_;
    at_ = begin_ + (last_ - row) / apart_ * step_;
  }

  std::uintptr_t span_;
  std::size_t size_, step_;
  unsigned apart_, left_, last_;
  unsigned row_ = 0;                   // the number of its first slot
  std::uintptr_t begin_ = 0, at_ = 0;  // that slot, and the next one
};

// What became of slots given back to their spans.
struct Given {
  unsigned kept = 0;
  std::uintptr_t emptied = 0;  // a span without a slot outside, no longer the pool's, to be retired; 0: none
  unsigned rejected = 0;       // slots that were free there already, or were never handed out
};

// Pages of a span into which no slot reaches that is out: a bit each.
struct FreePages {
  std::uintptr_t span = 0;  // 0: there are none
  Bin bin = 0;
  unsigned pages = 0;
  bool in_use = false;  // the span was skipped: it was used since the call before
};

// What of a span is out.
struct SlotsOut {
  Bin bin = 0;  // 0: there is no span
  unsigned count = 0;
};

// The same, slot by slot.
struct OutOfSpan {
  Bin bin = 0;         // 0: there is no span
  unsigned slots = 0;  // of the span that were ever handed out
  std::uint64_t bits[kGranule / kMinAlign / 64] = {};
};

template <class P>
concept PoolContract = requires(typename P::Global& g, const typename P::Global& seen, Bin bin,
                                unsigned owner, void** slots, unsigned want, std::uintptr_t span,
                                const Taken& taken, bool zeroed, const FreePages& pages, OutOfSpan& out) {
  { P::kMostOwners } -> std::convertible_to<unsigned>;  // that it tells apart
  { P::kWholePages } -> std::convertible_to<bool>;      // slots below a page are carved by whole pages
  { P::kWholeSpans } -> std::convertible_to<bool>;      // all slots, when a span is adopted: none is fresh
  { P::kTableBytesPerGranule } -> std::convertible_to<std::size_t>;
  { P::open(g, span, span, want) } -> std::same_as<void>;  // arena's base, table, granules
  // A new span, nothing carved yet; `want` slots of it at once. In one step: if a thread adopted a span and
  // then found slots elsewhere, the span would stay for good, because no thread would return its last slot.
  // Where spans are carved whole, they are listed as those of take() are.
  { P::adopt(g, span, bin, owner, zeroed, want, slots) } -> std::same_as<Taken>;
  // From one span; no slots if there is none. Those that were free are listed, at most `want`, the first to
  // hand out last. Last argument: spans of any owner; otherwise one that this owner had last, if a short
  // search finds one.
  { P::take(g, bin, owner, slots, want, zeroed) } -> std::same_as<Taken>;
  { P::carved(taken, bin) } -> std::same_as<Carved>;
  { P::give(g, bin, slots, want) } -> std::same_as<Given>;  // what is rejected comes to the front of `slots`
  // How many of the slots, which come to the front, can be out of their spans: carved, not free there, each
  // but once.
  { P::sift(g, bin, slots, want) } -> std::same_as<unsigned>;
  // After one in `Given`; 0: that was the last
  { P::next_emptied(seen, span) } -> std::same_as<std::uintptr_t>;
  { P::absent_bytes(seen, span, bin) } -> std::same_as<std::size_t>;  // of such a one, without memory
  // Whether a fuller span than this one has free slots of the class: the next take() is from there. Last
  // argument: as that of take().
  { P::prefer_fuller(g, bin, span, owner, zeroed) } -> std::same_as<bool>;
  // Of the span in a row; those whose memory went already and that no slot was taken from since do not count.
  // No thread gets a slot of the span until settle_pages(). Last argument: skips the span if slots were taken
  // from it, or returned to it, since the call before.
  { P::claim_pages(g, span, zeroed) } -> std::same_as<FreePages>;
  // Those of them that are named have no memory now. The span, if it is empty: no longer the pool's, to be
  // retired
  { P::settle_pages(g, pages) } -> std::same_as<std::uintptr_t>;
  { P::bin_at(g, span, span) } -> std::same_as<Bin>;  // span, address: of the slot there, 0 if none
  // Of the span in a row, for statistics: its class, 0 if there is none; and how many of its slots are out
  { P::bin_in(seen, span) } -> std::same_as<Bin>;
  { P::slots_out(g, span) } -> std::same_as<SlotsOut>;
  { P::note_slots_out(g, span, out) } -> std::same_as<void>;  // of the span at that address
};

}  // namespace hz
