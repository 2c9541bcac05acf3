// SPDX-License-Identifier: Apache-2.0
//
// Spans with free slots, by class: a slot from one, a slot back, and the beginning and end of a span. Growth
// past a limit is paid with free pages first. Called by every malloc and free of a slot; costs a bit of a
// word. Lock: the caller holds HeapLock. What takes a Hold may open it, so its callers check again.
#pragma once

#include "heap/one_lock/regions.hpp"

namespace hz::one_lock {

struct Spans {
  static inline constinit Link with_free_slots[kBins];
  // The same of the process that this one is a fork of, for a child. A slot between blocks of both costs a
  // copy of its page, so these are used when a limit, or the system, allows no new span.
  static inline constinit Link inherited[kBins];
  static inline constinit std::size_t empty = 0;  // of these, spans of which no slot is taken

  static void open() {
    for (Link* lists : {with_free_slots, inherited})
      for (Bin bin = 0; bin < kBins; ++bin) ::new (&lists[bin]) Link;  // gcc 12 leaves them zero
  }
  // Called at the first allocation of a child. Touches no span that has blocks: its page would be copied. So
  // the ends of the new lists do not know their heads yet.
  static void inherit() {
    end_empty();
    for (Bin bin = 0; bin < kBins; ++bin) {
      if (!use_inherited(bin)) continue;
      inherited[bin].next = with_free_slots[bin].next;
      inherited[bin].previous = with_free_slots[bin].previous;
      ::new (&with_free_slots[bin]) Link;
    }
  }

  // Returns a slot of the class, nullptr if memory is unavailable. `multiple`: its number of granules from
  // the region's start is one of that, a power of two; above 1 only for slots that are all of their span.
  // `zeroed`: it reads as zero.
  HZ_INLINE static void* take(Bin bin, std::size_t multiple, bool& zeroed) {
    Link& spans = with_free_slots[bin];
    if (spans.alone() && !begin_one(bin, multiple)) return nullptr;
    Span& span = *static_cast<Span*>(spans.next);
    if (span.used == 0) --empty;
    void* slot = Region::of(address(&span)).take(span, zeroed);
    if (span.used == span.slots) span.remove();
    return slot;
  }
  // Frees the slot that was found.
  HZ_INLINE static void put(const Found& found) {
    Span& span = *found.span;
    Region& region = Region::of(address(&span));
    if (span.used == span.slots) span.insert(with_free_slots[found.bin]);
    region.put(span, found.slot);
    if (span.used == 0) has_emptied(region, span);
  }
  static void end_empty() {
    if (empty == 0) return;
    for (Link& spans : with_free_slots) {
      if (spans.alone()) continue;
      Span& last = *static_cast<Span*>(spans.previous);  // it stayed alone, and others came before it
      if (last.used == 0) end(Region::of(address(&last)), last);
    }
  }

  // Pays with free pages if growth by `more` bytes passes the soft limit. Returns true if it does.
  static bool pay(std::size_t more) {
    const std::size_t next = Account::held_bytes() + more;
    if (HZ_LIKELY(next <= Account::limits.soft)) return false;
    os::probe::limit(os::probe::Limit::kSoft, more);
    const std::size_t due = next - Account::limits.soft;
    end_empty();
    Regions::purge(due < Account::dirty_bytes ? Account::dirty_bytes - due : 0);
    return true;
  }
  // Returns all free pages. Returns true if the caller should try again: some have gone, or are about to by
  // another thread.
  static bool reclaim(unsigned& rounds) {
    end_empty();
    if (Regions::purge(0)) return true;
    if (Regions::leaving == 0 || ++rounds > kMostRounds) return false;
    HeapLock::give_way();
    return true;
  }

 private:
  static constexpr unsigned kMostRounds = 1000;  // the system may refuse what others try

  // Each of its steps opens the lock. So it starts over after each, and ends when another thread has freed a
  // slot of the class meanwhile.
  HZ_SLOW static bool begin_one(Bin bin, std::size_t multiple) {
    const unsigned count = static_cast<unsigned>((slot_size(bin) + kGranule - 1) >> kGranuleShift);
    const std::size_t bytes = std::size_t{count} << kGranuleShift;
    unsigned rounds = 0;
    for (bool paid = false; with_free_slots[bin].alone();) {
      Region* region = Regions::with_free(count, multiple);
      const unsigned first = region == nullptr ? 1 : region->find_free(count, multiple);
      const std::uint64_t run = Region::mask(first, count);
      const std::uint64_t dirty = region == nullptr ? 0 : run & region->dirty;
      const std::size_t more = dirty == 0 ? bytes : bytes - Regions::bytes_of(dirty);
      if (HZ_UNLIKELY(more > Account::room())) {
        if (use_inherited(bin)) return true;
        if (!paid && pay(more)) {
          paid = true;
          continue;
        }
        if (!Account::has_room(more)) {
          if (!reclaim(rounds)) return false;
          continue;
        }
      }
      if (region != nullptr) {
        Regions::acquire(*region, run);
        ++Account::begun;
        os::probe::span_acquired(address(region->at(first, 0)), bytes);
        Span& span = region->begin(first, bin, dirty == 0);
        cut_tail(*region, span);
        ++empty;
        span.insert(with_free_slots[bin]);
      } else if (!Regions::map() && !use_inherited(bin) && !reclaim(rounds)) {
        return false;
      }
    }
    return true;
  }
  // Of each class one empty span stays: a program that allocates and frees one block in turn would begin and
  // end it each time.
  HZ_SLOW static void has_emptied(Region& region, Span& span) {
    ++empty;
    const Link& spans = with_free_slots[span.bin];
    if (spans.next == &span && spans.previous == &span && span.slots != 1) return;
    settle(inherited[span.bin]);
    end(region, span);
  }
  // Returns true if there are spans with free slots.
  static bool use_inherited(Bin bin) {
    settle(inherited[bin]);
    with_free_slots[bin].adopt(inherited[bin]);
    return !with_free_slots[bin].alone();
  }
  static void settle(Link& list) {
    if (list.next->previous != &list) list.next->previous = list.previous->next = &list;
  }
  static void end(Region& region, Span& span) {
    span.remove();
    --empty;
    ++Account::ended;
    const unsigned first = region.number_of(span), count = Region::granules_of(span);
    Account::used_bytes += tail_of(span);
    os::probe::span_retired(address(region.at(first, 0)), std::size_t{count} << kGranuleShift);
    Regions::release(region, Region::mask(first, count), true);
  }
  // Behind its last slot a span has no memory, and counts for none. The lock is open while the system works:
  // the span is in use already, and in no list yet.
  HZ_INLINE static void cut_tail(Region& region, const Span& span) {
    const std::size_t tail = tail_of(span), end = std::size_t{Region::granules_of(span)} << kGranuleShift;
    const unsigned first = region.number_of(span), last = first + Region::granules_of(span) - 1;
    Account::used_bytes -= tail;
    const bool had = !span.zeroed && region.backed[last] > kPagesPerGranule - (tail >> kPageShift);
    for (unsigned i = first; i < last; ++i) region.backed[i] = kPagesPerGranule;
    region.backed[last] = static_cast<std::uint8_t>(kPagesPerGranule - (tail >> kPageShift));
    if (had && HeapLock::meanwhile([&] { return os::purge(region.at(first, end - tail), tail); })) {
      Account::purged_bytes += tail;
      ++Account::purges;
    }
  }
  static std::size_t tail_of(const Span& span) {
    const std::size_t used = std::size_t{span.slot_bytes} * span.slots;
    return align_up(used, kGranule) - align_up(used, os::page_bytes());
  }
};

}  // namespace hz::one_lock
