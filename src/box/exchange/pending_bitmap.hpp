// SPDX-License-Identifier: Apache-2.0
//
// A remote free sets the slot's bit in its span's pending bitmap; the first bit puts the span, once, into its
// owner's queue. No outbox: the owner can have the slot from then on. Used by hz5 and hz8. The depot has
// slots that are all of their span: the thread that has one owns the span. Smaller slots would change hands,
// and their span would not change its owner with them. Deferring costs one fetch_or, and one compare-and-swap
// for the first bit; collecting costs an exchange per 64 slots of a queued span.
//
// The mark of a span, so that no wake-up is lost:
//
//   idle -> queued          by the thread that set a bit and found it idle: pushes the span
//   queued -> draining      by the thread that took the queue, before it reads the bits
//   draining -> dirty       by a thread that set a bit meanwhile
//   draining -> idle, dirty -> queued   by the drainer: in the second case it pushes the span again
//
// A freeing thread sets a bit, then reads the mark. A draining thread sets the mark, then reads the words,
// and skips those that are zero. Each writes one word and then reads the other, which release and acquire do
// not order: both writes and both reads are sequentially consistent. So one of the two sees the other. The
// same holds for a push and the flag `waiting`. On x86-64 that costs an exchange for a store once a drained
// span, and nothing where a slot is freed.
//
// The queues of an owner are open while a thread carries it. A head counts these lives: it is odd while open,
// and a thread that saw it open pushes by compare-and-swap, so nothing reaches a queue after it was closed.
// Spans for an owner that is gone go to the orphans' queue, which has no owner and is always open. Source of
// the idea: the pending bitmaps of mesh and of the published hz8.
#pragma once

#include "base/plain_word.hpp"
#include "base/slot_array.hpp"
#include "base/slot_bits.hpp"
#include "box/exchange/magazine_depot.hpp"

namespace hz {

template <class Line>
struct PendingBitmap : MagazineDepot<Line> {
  static constexpr unsigned kOwners = Line::kOwners;
  static constexpr unsigned kOrphans = kOwners;
  static constexpr bool kUntold = true;

  enum Mark : std::uint16_t { kIdle = 0, kQueued, kDraining, kDirty };

  struct Entry {
    std::atomic<std::uint32_t> next;  // granule number; 0 ends the queue
    std::atomic<std::uint16_t> bin;   // of the slots that are pending
    std::atomic<std::uint16_t> mark;
  };
  using Bits = SlotBits<std::atomic<std::uint64_t>>;
  static constexpr std::size_t kDenseBytes = Bits::kDenseBytes;
  static constexpr std::size_t kTables[] = {Bits::kSparseBytes, Bits::kWideBytes, Bits::kDenseBytes,
                                            sizeof(Entry)};
  static constexpr unsigned kLasting = 1;  // the entries may be in a queue
  static constexpr std::size_t kTableBytesPerGranule = Bits::kBytesPerGranule + sizeof(Entry);

  using Head = std::atomic<std::uint64_t>;  // life << 32 | granule number
  struct Global : MagazineDepot<Line>::Global {
    std::uintptr_t base = 0;
    Bits bits;
    Entry* entries = nullptr;
    struct alignas(64) Shelf {
      Head of_bin[kBins];
    };
    Shelf of_owner[kOwners + 1];
    unsigned owners = 0;  // those that ever lived are below it; under the lock of the list of threads
    alignas(64) std::atomic<bool> waiting{false};  // something was queued since it was last asked
  };
  struct PerThread {
    Global* global = nullptr;
    OwnerWord<std::uint32_t> pushing;  // the granule that this thread is putting into a queue: see finish()
    Bin other = 0;                     // see next_bin()
    unsigned budget = 0;               // see budget()
    std::size_t sent = 0, sends = 0;   // see help_due()
  };

  static void open(Global& g, std::uintptr_t base, std::uintptr_t table, std::size_t granules) {
    g.base = base;
    g.entries = static_cast<Entry*>(pointer(g.bits.open(table, granules)));
  }
  static void join(PerThread& t, Global& g) { t.global = &g; }

  static constexpr bool holds(Bin bin) { return bin_slots(bin) == 1; }
  static constexpr bool moves_span(Bin bin) { return holds(bin); }
  static bool waits(const Global& g, unsigned owner, Bin bin) {
    return queued(g, owner, bin) || (holds(bin) && MagazineDepot<Line>::waits(g, owner, bin));
  }

  // --- the owner's life; under the lock of the list of threads

  static void carried(Global& g, unsigned owner) {
    if (owner >= g.owners) g.owners = owner + 1;
    step_life(g, owner, true);
  }
  // What waits in them stays, and can be collected.
  static void left(Global& g, unsigned owner) { step_life(g, owner, false); }

  // --- a stranger's side

  HZ_INLINE static bool admit(PerThread& t, unsigned /*owner*/, Bin) { return t.global != nullptr; }

  // The slot is claimed, so its span lives, and has this class, until a thread collects the bit.
  static std::size_t defer(PerThread& t, unsigned owner, Bin bin, void* slot) {
    Global& g = *t.global;
    const std::uint32_t row = row_of(g, slot);
    const unsigned index = slot_index(bin, static_cast<std::uint16_t>(address(slot)));
    Entry& entry = g.entries[row];
    // In the order of the bit and the mark: a draining thread learns from it how many words there are.
    if (entry.bin.load(std::memory_order_seq_cst) != bin)
      entry.bin.store(static_cast<std::uint16_t>(bin), std::memory_order_seq_cst);
    t.pushing.put(row);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Release: a collecting thread sees the program's writes, and the class. In the order of drain(): either
    // that thread finds the bit, or we see its mark, draining or later.
    g.bits.of(bin)
        .word(row, index / 64)
        .fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_seq_cst);
    if (announce(entry)) push(g, owner, bin, row);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t.pushing.put(0);
    return bin_size(bin);
  }

  // --- the owner's side

  // At most `want`; what is left stays queued. Any thread.
  static unsigned collect(Global& g, unsigned owner, Bin bin, unsigned want, SlotArray& out) {
    std::uint32_t row = detach(queue(g, owner, bin));
    while (row != 0 && out.count < want) {
      const std::uint32_t next = g.entries[row].next.load(std::memory_order_relaxed);
      drain(g, owner, bin, row, out, want);
      row = next;
    }
    if (row != 0) give_back(g, owner, bin, row);
    return 0;
  }

  // Some of what strangers sent, beyond what the owner wants, goes on, so that spans come to be empty and
  // other threads have it: of this class, of another one, and of spans whose owner is gone.
  static bool backlog(const Global& g, PerThread& t, unsigned owner, Bin bin, unsigned n, Backlog& some) {
    if (n == 0) some = {owner, bin, budget(g, t, owner, bin)};
    if (n == 1) some = passed_on(g, owner, next_bin(t));
    if (n == 2) some = passed_on(g, kOrphans, bin);
    return n < 3;
  }
  // How many slots the owner should collect beyond what its bin wants: twice as many each time that some are
  // left.
  static unsigned budget(const Global& g, PerThread& t, unsigned owner, Bin bin) {
    if (!queued(g, owner, bin)) return t.budget = 0;
    return t.budget = t.budget == 0 ? kFirstBudget : t.budget < kMostBudget ? 2 * t.budget : kMostBudget;
  }
  // The same for strangers: an owner may not come back for long. So what waits is at most so much for each
  // thread that sends, whatever owners do; and a look at a queue of every class is not for a few slots.
  HZ_INLINE static bool help_due(PerThread& t, Bin bin) {
    t.sent += bin_size(bin);
    return ++t.sends >= kLeastSends && t.sent >= Line::kSentBytes;
  }
  static void helped(PerThread& t) { t.sent = t.sends = 0; }

  // Another class each time, so that a queue which its owner never misses in is looked at as well.
  static Bin next_bin(PerThread& t) { return t.other = t.other % kLastBin + 1; }

  // Whether anything was queued since the last call.
  static bool something_waits(Global& g) {
    // In the order of the look at the queues that follows: see note_waiting().
    return g.waiting.load(std::memory_order_relaxed) && g.waiting.exchange(false, std::memory_order_seq_cst);
  }

  // In the child of a fork, before it has other threads: `t` was cut off, maybe between marking a span and
  // queueing it. The span may be in the queue of a class that it had before.
  static void finish(Global& g, PerThread& t) {
    const std::uint32_t row = t.pushing.peek();
    if (row == 0) return;
    t.pushing.set(0);
    Entry& entry = g.entries[row];
    if (announce(entry) || !is_queued(g, row))
      push(g, kOrphans, entry.bin.load(std::memory_order_relaxed), row);
  }

 private:
  static constexpr std::size_t kLeastSends = 16;
  static constexpr unsigned kFirstBudget = 16, kMostBudget = 4096, kPassedOn = 256;

  // Relaxed: a hint; what it misses, the next miss or the purger finds.
  static bool queued(const Global& g, unsigned owner, Bin bin) {
    return row_of(g.of_owner[owner].of_bin[bin].load(std::memory_order_relaxed)) != 0;
  }
  static Backlog passed_on(const Global& g, unsigned owner, Bin bin) {
    return {owner, bin, queued(g, owner, bin) ? kPassedOn : 0};
  }

  static std::uint32_t row_of(std::uint64_t head) { return static_cast<std::uint32_t>(head); }
  static std::uint32_t row_of(const Global& g, const void* slot) {
    return static_cast<std::uint32_t>((address(slot) - g.base) >> kGranuleShift);
  }
  static Head& queue(Global& g, unsigned owner, Bin bin) { return g.of_owner[owner].of_bin[bin]; }
  static bool is_open(std::uint64_t head) { return (head >> 32 & 1) != 0; }
  static std::uint64_t with_row(std::uint64_t head, std::uint32_t row) {
    return (head & ~std::uint64_t{UINT32_MAX}) | row;
  }

  static void step_life(Global& g, unsigned owner, bool open) {
    for (Head& head : g.of_owner[owner].of_bin) {
      std::uint64_t seen = head.load(std::memory_order_relaxed);
      // Relaxed: the order of lives in each head is all there is to see.
      while (is_open(seen) != open &&
             !head.compare_exchange_weak(seen, seen + (std::uint64_t{1} << 32), std::memory_order_relaxed)) {
      }
    }
  }

  // After a bit was set: whether the span has to be pushed by us.
  static bool announce(Entry& entry) {
    // In the order of drain(), also where the exchange fails and shows another mark.
    std::uint16_t mark = entry.mark.load(std::memory_order_seq_cst);
    for (;;) {
      if (mark == kQueued || mark == kDirty) return false;
      const std::uint16_t next = mark == kIdle ? kQueued : kDirty;
      // Release: a draining thread sees the bit. Acquire: a pushing thread sees that the last drain is over.
      if (entry.mark.compare_exchange_weak(mark, next, std::memory_order_seq_cst)) return next == kQueued;
    }
  }

  static void push(Global& g, unsigned owner, Bin bin, std::uint32_t row) {
    for (;;) {
      std::uint64_t seen = 0;
      Head& head = open_queue(g, owner, bin, seen);
      g.entries[row].next.store(row_of(seen), std::memory_order_relaxed);
      // Release: the entry is whole for the thread that takes the queue. In the order of note_waiting().
      if (head.compare_exchange_weak(seen, with_row(seen, row), std::memory_order_seq_cst,
                                     std::memory_order_relaxed))
        break;
    }
    note_waiting(g);
  }

  // The owner's queue as `seen`, or, if no thread carries the owner, the orphans'.
  static Head& open_queue(Global& g, unsigned owner, Bin bin, std::uint64_t& seen) {
    seen = queue(g, owner, bin).load(std::memory_order_relaxed);
    if (owner == kOrphans || is_open(seen)) return queue(g, owner, bin);
    seen = queue(g, kOrphans, bin).load(std::memory_order_relaxed);
    return queue(g, kOrphans, bin);
  }

  // After a push. Sequentially consistent, as are the push, something_waits() and detach(): either we see
  // that the flag is down and raise it, or the thread that took it down sees our push.
  static void note_waiting(Global& g) {
    if (!g.waiting.load(std::memory_order_seq_cst)) g.waiting.store(true, std::memory_order_relaxed);
  }

  // The whole queue, which is ours alone from here on.
  static std::uint32_t detach(Head& head) {
    std::uint64_t seen = head.load(std::memory_order_seq_cst);  // see note_waiting()
    // Acquire: pairs with push.
    while (row_of(seen) != 0 &&
           !head.compare_exchange_weak(seen, with_row(seen, 0), std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
    }
    return row_of(seen);
  }

  // The end of a queue that was detached. What others pushed meanwhile is short, and goes before it. If the
  // queue was closed and searched meanwhile, no thread would find it there.
  static void give_back(Global& g, unsigned owner, Bin bin, std::uint32_t rest) {
    for (;;) {
      std::uint64_t seen = 0;
      Head& head = open_queue(g, owner, bin, seen);
      // Release, and the order of note_waiting(): as in push.
      if (row_of(seen) == 0 &&
          head.compare_exchange_strong(seen, with_row(seen, rest), std::memory_order_seq_cst,
                                       std::memory_order_relaxed))
        return note_waiting(g);
      const std::uint32_t recent = detach(head);
      if (recent == 0) continue;
      std::uint32_t last = recent;
      while (const std::uint32_t next = g.entries[last].next.load(std::memory_order_relaxed)) last = next;
      g.entries[last].next.store(rest, std::memory_order_relaxed);
      rest = recent;
    }
  }

  static void drain(Global& g, unsigned owner, Bin bin, std::uint32_t row, SlotArray& out, unsigned want) {
    Entry& entry = g.entries[row];
    // Before any read of a word, for every thread: a thread that sets a bit after our read sees this mark. An
    // exchange, because a store would wait in this core's store buffer while the reads go ahead.
    entry.mark.exchange(kDraining, std::memory_order_seq_cst);
    // A span may have been queued for a bit that was collected before, and may have another class by now.
    const Bin now = entry.bin.load(std::memory_order_seq_cst);
    const unsigned words = (bin_slots(now) + 63) / 64;
    bool left = false;
    for (unsigned w = 0; w < words && !left; ++w) left = take_word(g, row, w, now, bin, out, want);
    std::uint16_t mark = kDraining;
    // Release: pairs with announce(). Acquire: the thread that made it dirty set a bit before, and the next
    // drain has to find it.
    if (!left &&
        entry.mark.compare_exchange_strong(mark, kIdle, std::memory_order_acq_rel, std::memory_order_acquire))
      return;
    entry.mark.store(kQueued, std::memory_order_relaxed);
    push(g, owner, entry.bin.load(std::memory_order_relaxed), row);
  }

  // Takes bits from word `w` of the table of class `now`, if that is the class that `bin` asks for. Returns
  // true if bits are left: `out` has no room for them, or they are of another class. A pending slot keeps its
  // span, so all bits in that table are of class `now`.
  static bool take_word(Global& g, std::uint32_t row, unsigned w, Bin now, Bin bin, SlotArray& out,
                        unsigned want) {
    std::atomic<std::uint64_t>& word = g.bits.of(now).word(row, w);
    if (word.load(std::memory_order_seq_cst) == 0)
      return false;  // a thread that sets a bit now sees our mark: see drain()
    // Acquire: pairs with defer. Release: a thread that sets a bit after this sees that we are draining.
    std::uint64_t bits = word.exchange(0, std::memory_order_acq_rel);
    const std::uintptr_t span = g.base + (std::uintptr_t{row} << kGranuleShift);
    for (; now == bin && bits != 0 && out.count < want; bits &= bits - 1) {
      const unsigned index = w * 64 + static_cast<unsigned>(__builtin_ctzll(bits));
      out.push(pointer(span + index * bin_size(bin)));
    }
    if (bits != 0) word.fetch_or(bits, std::memory_order_release);  // release: as in defer
    return bits != 0;
  }

  static bool is_queued(Global& g, std::uint32_t row) {
    for (unsigned owner = 0; owner < g.owners; ++owner) {
      if (is_queued(g, owner, row)) return true;
    }
    return is_queued(g, kOrphans, row);
  }
  static bool is_queued(Global& g, unsigned owner, std::uint32_t row) {
    for (const Head& head : g.of_owner[owner].of_bin) {
      for (std::uint32_t at = row_of(head.load(std::memory_order_relaxed)); at != 0;
           at = g.entries[at].next.load(std::memory_order_relaxed)) {
        if (at == row) return true;
      }
    }
    return false;
  }
};

}  // namespace hz
