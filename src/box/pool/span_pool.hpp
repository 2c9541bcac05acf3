// SPDX-License-Identifier: Apache-2.0
//
// Hands out the free slots of spans, and takes them back: what a span has free stands in span_table.hpp,
// which spans have some in shelves.hpp. A taker finds a span on the shelf of its processor, or moves one
// there from another shelf of the class, before the heap makes a new one. Called by: the boundary, and what
// returns slots or pages. Cost: a lock that is held for a few dozen instructions a batch; no user memory is
// touched under it.
#pragma once

#include <atomic>
#include <utility>

#include "box/pool/contract.hpp"
#include "box/pool/shelves.hpp"
#include "box/pool/span_table.hpp"
#include "os/lock.hpp"

namespace hz {

// kByPages: slots are carved by whole pages, for a route that knows pages. kShuffles: a span is carved whole
// when it is adopted, and its slots leave it in an unpredictable order.
template <bool kByPages, bool kShuffles = false>
struct BasicSpanPool {
  static constexpr std::uint32_t kMostOwners = 1U << 22;  // as many as there can be threads
  static constexpr bool kWholePages = kByPages;
  static constexpr bool kWholeSpans = kShuffles;
  static constexpr auto& kTables = SpanTable::kTables;
  static constexpr std::size_t kTableBytesPerGranule = SpanTable::kBytesPerGranule;
  static constexpr std::size_t kDenseBytes = SpanTable::Bits::kDenseBytes;
  static constexpr std::size_t kSpreadBelow = kCacheLine;  // 0: neighbours are handed out consecutively

  struct Global {
    SpanTable table;
    Shelves shelves;
  };

  static constexpr auto words() {
    return layout::placed(SpanTable::words(), layout::kNumber, offsetof(Global, table));
  }
  static constexpr auto words_of_span() { return Span::words(); }

  static void open(Global& g, std::uintptr_t base, std::uintptr_t table, std::size_t granules) {
    g.table.open(base, table, granules);
  }

  // With kShuffles the slots are listed in `out`, as those of take() are, and the caller has bound the span's
  // pages.
  static Taken adopt(Global& g, std::uintptr_t span, Bin bin, unsigned owner, bool zeroed, unsigned want = 0,
                     void** out = nullptr) {
    const unsigned here = g.shelves.here();
    const os::Guarded hold(g.shelves.shards[here].of_bin[bin].lock);
    const std::uint32_t row = g.table.row_of(span);
    g.table.spans[row].clear();
    g.table.spans[row].set_place(here, bin);
    g.table.spans[row].owner = owner;
    g.table.spans[row].zeroed = zeroed;
    g.table.spans[row].absent = static_cast<std::uint16_t>(zeroed ? Span::kAllPages : Span::tail_pages(bin));
    if constexpr (kShuffles) g.table.carve_whole(row);
    if (want == 0) return g.shelves.link(g.table, row), Taken{};
    return take_from(g, row, owner, out, want);
  }

  // At least one slot. At most `want`, but with kByPages a page is always carved whole.
  static Taken take(Global& g, Bin bin, unsigned owner, void** out, unsigned want, bool anybodys) {
    const unsigned here = g.shelves.here();
    Shelves::Shelf& own = g.shelves.shards[here].of_bin[bin];
    {
      const os::Guarded hold(own.lock);
      const std::uint32_t row = anybodys ? pick(g, own, bin, owner) : owned(g, own, owner, kOwnLooks);
      if (row != 0) return take_from(g, row, owner, out, want);
    }
    for (std::uint32_t left = g.shelves.used.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      Shelves::Shelf& other = g.shelves.shards[__builtin_ctz(left)].of_bin[bin];
      if (&other == &own || other.first() == 0) continue;
      const os::Guarded lower((&own < &other ? own : other).lock);
      const os::Guarded upper((&own < &other ? other : own).lock);
      const std::uint32_t row = anybodys ? other.first() : owned(g, other, owner, kOwnLooks);
      if (row == 0) continue;
      g.shelves.unlink(g.table, row);
      g.table.spans[row].set_place(here, bin);
      return take_from(g, row, owner, out, want);
    }
    return {};
  }

  // Slots below a line of the cache are not handed out in a row.
  static Carved carved(const Taken& taken, Bin bin) {
    const std::size_t size = bin_size(bin);
    const std::size_t apart = size >= kSpreadBelow ? 1 : (kCacheLine - (size & -size) + size - 1) / size + 1;
    return {taken, size, static_cast<unsigned>(apart)};
  }

  // Returns `count` slots of one class to their spans. Those that come to be empty are the caller's, in a
  // list.
  static Given give(Global& g, Bin bin, void** slots, unsigned count) {
    Given given;
    std::uint32_t emptied = 0;
    const auto came = [&](Span& span, std::uint32_t row, unsigned slots_of_it) HZ_ALWAYS_INLINE {
      span.in_use = true;
      span.free = static_cast<std::uint16_t>(span.free + slots_of_it);
      if (span.free == span.carved && !span.claimed) {
        if (span.listed) g.shelves.unlink(g.table, row);
        g.table.end(row);
        span.next = emptied;
        emptied = row;
      } else {
        if (!span.listed && !span.claimed) g.shelves.link(g.table, row);
        g.table.check(row);
      }
    };
    const auto wrong = [&](void* slot) { slots[given.rejected++] = slot; };
    set_bits(
        g, bin, slots, count, [](void*&) {}, came, wrong, [](auto) {});
    given.kept = count - given.rejected;
    given.emptied = g.table.at(emptied);
    return given;
  }
  static std::uintptr_t next_emptied(const Global& g, std::uintptr_t span) {
    return g.table.at(g.table.spans[g.table.row_of(span)].next);
  }

  // Returns the bytes of an empty span of class `bin` that have no memory, but for its tail. Requires: the
  // caller has the span from give() or settle_pages(), and has not released it: the next owner of its run
  // clears the descriptor.
  static std::size_t absent_bytes(const Global& g, std::uintptr_t span, Bin bin) {
    const unsigned absent = g.table.spans[g.table.row_of(span)].absent & ~Span::tail_pages(bin);
    return static_cast<std::size_t>(__builtin_popcount(absent)) * kPage;
  }

  // Moves those of the caller's `count` slots of one class that can be out of their spans, each once, to the
  // front, and returns their number. Slots stand as if free while the others are checked.
  static unsigned sift(Global& g, Bin bin, void** slots, unsigned count) {
    unsigned good = 0, kept = 0;
    const auto home = [&](void*& slot) HZ_ALWAYS_INLINE { std::swap(slots[good++], slot); };
    const auto leave = [&](const SpanTable::Rows& bits) {
      for (; kept < good; ++kept) {
        const SpanTable::Place place = g.table.place_of(bin, slots[kept]);
        bits.word(place.row, place.index / 64) &= ~place.bit();
      }
    };
    set_bits(
        g, bin, slots, count, home, [](Span&, std::uint32_t, unsigned) {}, [](void*) {}, leave);
    return good;
  }

  // Of a few spans that have free slots, the one with the most slots out comes first on its shelf. A block
  // that moves there makes its old span emptier than the new one in any case: so moves come to an end, but
  // for those of a thread that changes its processor before it allocates.
  static bool prefer_fuller(Global& g, Bin bin, std::uintptr_t span, unsigned owner, bool anybodys) {
    const std::uint32_t row = g.table.row_of(span);
    const SlotsOut out = slots_out(g, row);
    const auto outdoes = [&](Shelves::Shelf& shelf) {
      const os::Guarded hold(shelf.lock);
      const std::uint32_t best = fullest(g, shelf, owner, anybodys);
      if (best == 0) return false;
      g.shelves.unlink(g.table, best);
      g.shelves.link(g.table, best);
      const unsigned most = g.table.spans[best].slots_out();
      return best != row && (most > out.count || (most == out.count && best < row));
    };
    Shelves::Shelf& own = g.shelves.shards[g.shelves.here()].of_bin[bin];
    if (out.bin != bin) return false;
    if (own.first() != 0) return outdoes(own);
    for (std::uint32_t left = g.shelves.used.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      Shelves::Shelf& other = g.shelves.shards[__builtin_ctz(left)].of_bin[bin];
      if (other.first() != 0) return outdoes(other);
    }
    return false;
  }

  static FreePages claim_pages(Global& g, std::size_t row, bool unused_only) {
    FreePages claimed;
    Span& span = g.table.spans[row];
    const auto number = static_cast<std::uint32_t>(row);
    g.shelves.with_shelf(span, [&](Bin bin) {
      if (is_large(bin) || !span.listed || span.carved == 0) return;
      if (unused_only && std::exchange(span.in_use, false)) return void(claimed.in_use = true);
      if (span.slots_out() * bin_size(bin) > kGranule - kPage) return;
      claimed.pages = g.table.free_pages(number);
      if (claimed.pages == 0) return;
      claimed.span = g.table.at(number);
      claimed.bin = bin;
      span.claimed = true;
      g.shelves.unlink(g.table, number);
    });
    return claimed;
  }
  static std::uintptr_t settle_pages(Global& g, const FreePages& claimed) {
    const std::uint32_t row = g.table.row_of(claimed.span);
    Span& span = g.table.spans[row];
    bool emptied = false;
    g.shelves.with_shelf(span, [&](Bin) {
      span.claimed = false;
      span.absent = static_cast<std::uint16_t>(span.absent | claimed.pages);
      emptied = span.free == span.carved;
      emptied ? g.table.end(row) : g.shelves.link_last(g.table, row);
    });
    return emptied ? claimed.span : 0;
  }

  // In a child that another thread's change was cut off in: the classes whose locks were held count their
  // slots again, and so do spans that were claimed. `for_each_row` visits all granules that were ever used.
  template <class ForEachRow>
  static void make_whole(Global& g, ForEachRow for_each_row) {
    bool cut[kBins] = {};
    g.shelves.lose(cut);
    for_each_row([&](std::size_t granule) {
      const auto row = static_cast<std::uint32_t>(granule);
      Span& span = g.table.spans[row];
      if (!cut[span.bin()] && !span.claimed) return;
      span.claimed = span.listed = false;
      span.free = static_cast<std::uint16_t>(g.table.count_free(row));
      if (span.may_give()) g.shelves.link(g.table, row);
    });
  }

  // Without a lock: the span may end the moment after.
  static Bin bin_in(const Global& g, std::size_t row) { return g.table.spans[row].bin(); }
  static SlotsOut slots_out(Global& g, std::size_t row) {
    SlotsOut out;
    const Span& span = g.table.spans[row];
    g.shelves.with_shelf(span, [&](Bin bin) { out = {bin, span.slots_out()}; });
    return out;
  }

  static void note_slots_out(Global& g, std::uintptr_t at, OutOfSpan& out) {
    const std::uint32_t row = g.table.row_of(at);
    const Span& span = g.table.spans[row];
    g.shelves.with_shelf(span, [&](Bin bin) {
      out.bin = bin;
      out.slots = span.carved;
      for (unsigned w = 0; w * 64 < out.slots; ++w) out.bits[w] = ~g.table.bits.of(bin).word(row, w);
    });
  }

  // For diagnosis only, as below: whether the slot is free and here.
  static bool holds(Global& g, Bin bin, const void* slot) {
    const SpanTable::Place place = g.table.place_of(bin, slot);
    return (g.table.bits.of(bin).word(place.row, place.index / 64) & place.bit()) != 0;
  }
  // For diagnosis only: a span may change the moment after. One look at its class, which is what is returned.
  static Bin bin_at(const Global& g, std::uintptr_t start, std::uintptr_t at) {
    const volatile Span& span = g.table.spans[g.table.row_of(start)];
    const Bin bin = span.place.load(std::memory_order_relaxed) & 0xff;
    return at - start < span.carved * bin_size(bin) ? bin : 0;
  }

 private:
  static constexpr unsigned kLooks = 4, kOwnLooks = 16;

  // Sets the bits of slots of one class, shelf by shelf. Calls `home` for each slot whose bit it set, `came`
  // for those in a row that lie in one span, `wrong` for each slot that cannot be allocated from a span of
  // the class, and `leave` before it unlocks a shelf. `home` and `wrong` may write to the slots visited so
  // far. An allocated slot keeps its span alive, but the span may move to another shelf meanwhile; so the
  // pass checks the span's place again under the lock. Cost: a third of what the library costs in a program
  // that frees all of its blocks; so all is inlined.
  HZ_INLINE static void set_bits(Global& g, Bin bin, void** slots, unsigned count, auto home, auto came,
                                 auto wrong, auto leave) {
    const std::uintptr_t base = g.table.base;
    Span* const spans = g.table.spans;
    const SpanTable::Rows bits = g.table.bits.of(bin);
    const SlotIndex index(bin);
    for (void **slot = slots, **const all = slots + count; slot != all;) {
      const unsigned shard = spans[g.table.row_of(address(*slot))].shard();
      const auto here = static_cast<std::uint16_t>(shard << 8 | bin);
      const os::Guarded hold(g.shelves.shards[shard].of_bin[bin].lock);
      for (void** end = all; slot != end;) {
        const std::size_t row = (address(*slot) - base) >> kGranuleShift;
        Span& span = spans[row];
        const std::uint16_t place = span.place.load(std::memory_order_relaxed);
        if (HZ_UNLIKELY(place != here) && place >> 8 != shard) {
          std::swap(*slot, *--end);
          continue;
        }
        if (HZ_UNLIKELY(place != here)) {
          wrong(*slot++);
          continue;
        }
        unsigned good = 0;
        do {
          const unsigned number = index.of(SpanTable::offset(*slot));
          if (HZ_LIKELY(SpanTable::set_bit(bits.word(row, number / 64), span, number))) {
            home(*slot);
            ++good;
          } else {
            wrong(*slot);
          }
        } while (++slot != end && (address(*slot) - base) >> kGranuleShift == row);
        if (HZ_LIKELY(good != 0)) came(span, static_cast<std::uint32_t>(row), good);
      }
      leave(bits);
    }
  }

  // Of the spans that had slots last, one that this owner had before, if there is one: small slots share
  // lines of the cache and pages with their neighbours.
  static std::uint32_t pick(const Global& g, const Shelves::Shelf& own, Bin bin, unsigned owner) {
    const std::uint32_t row = bin_size(bin) >= kPage ? 0 : owned(g, own, owner, kLooks);
    return row != 0 ? row : own.first();
  }
  static std::uint32_t owned(const Global& g, const Shelves::Shelf& shelf, unsigned owner, unsigned most) {
    std::uint32_t row = shelf.first();
    for (unsigned looks = 0; row != 0 && looks < most; ++looks, row = g.table.spans[row].next) {
      if (g.table.spans[row].owner == owner) return row;
    }
    return 0;
  }

  // Of the first few of a shelf; of the owner's if it has any there, for take() prefers those.
  static std::uint32_t fullest(const Global& g, const Shelves::Shelf& shelf, unsigned owner, bool anybodys) {
    std::uint32_t best = 0;
    bool is_own = false;
    unsigned most = 0;
    for (std::uint32_t row = shelf.first(), looks = 0; row != 0 && looks < kOwnLooks;
         ++looks, row = g.table.spans[row].next) {
      const Span& span = g.table.spans[row];
      const bool own = span.owner == owner;
      const unsigned out = span.slots_out();
      if (own < is_own || (!own && !anybodys) || (own == is_own && best != 0 && out <= most)) continue;
      best = row, is_own = own, most = out;
    }
    return best;
  }

  // With the lock of the span's shelf, on which it may have come without being in the list yet.
  static Taken take_from(Global& g, std::uint32_t row, unsigned owner, void** out, unsigned want) {
    Taken taken;
    Span& span = g.table.spans[row];
    taken.span = g.table.base + (std::uintptr_t{row} << kGranuleShift);
    const bool rebind = span.owner != owner && span.carved != 0;
    span.owner = owner;
    span.in_use = true;
    if (span.free != 0) {
      kShuffles ? g.table.take_random(row, taken, out, want) : g.table.take_lowest(row, taken, out, want);
    } else {
      SpanTable::carve<kByPages>(span, taken, want);
    }
    taken.end = span.carved * bin_size(span.bin());
    if (rebind) {
      taken.first_page = 0;
      taken.pages = static_cast<unsigned>((span.carved - 1) * bin_size(span.bin()) >> kPageShift) + 1;
    }
    if (span.listed && !span.may_give()) g.shelves.unlink(g.table, row);
    if (!span.listed && span.may_give()) g.shelves.link(g.table, row);
    g.table.check(row);
    return taken;
  }
};

using SpanPool = BasicSpanPool<true>;

}  // namespace hz
