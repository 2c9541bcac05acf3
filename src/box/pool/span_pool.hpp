// SPDX-License-Identifier: Apache-2.0
//
// Spans and the slots that are free in them. A span's descriptor and its bitmap stand in tables beside the
// arena, one row per granule, so no byte of it lies in or beside user memory. A shelf for each class and
// processor, with a lock that is held for a few dozen instructions; no user memory is touched under it. Who
// takes finds a span on the shelf of its processor, or moves one there from another shelf of the class,
// before there is a new one.
//
//   carved <= slots of the class              slots below `carved` were handed out at least once
//   free == number of bits in the bitmap      a bit: the slot is free and here
//   in the list of its shelf  <=>  (free > 0 or carved < slots) and not claimed; those whose pages were
//                                  discarded come last, so that slots that have memory go out first
//   a span's shelf changes with the locks of both shelves held
//   free == carved            =>  nobody holds a slot: the span leaves the pool, or is claimed
//   a bit in `absent`         =>  the page was never touched, or was discarded, and no slot that reaches into
//   it
//                                 was handed out since: it has no memory, but for what huge pages bring
#pragma once

#include <atomic>
#include <utility>

#include "base/random.hpp"
#include "base/slot_bits.hpp"
#include "box/pool/contract.hpp"
#include "os/lock.hpp"
#include "os/os.hpp"

namespace hz {

// kByPages: slots are carved by whole pages, for a route that knows pages. kShuffles: a span is carved whole
// when it is adopted, and its slots leave it in no order that could be told beforehand.
template <bool kByPages, bool kShuffles = false>
struct BasicSpanPool {
  struct Span {
    std::uint32_t next, previous;  // granule numbers; 0 ends the list
    std::uint16_t carved, free;
    std::uint32_t owner;
    std::uint16_t absent;  // a bit a page
    // Its shard and its bin, in one word: read without a lock, to find the shelf, and with that shelf's lock
    // it stays.
    std::atomic<std::uint16_t> place;
    bool listed, zeroed, claimed;
    bool in_use;  // slots were taken from it, or returned, since claim_pages()
  };

  static constexpr std::uint32_t kMostOwners = 1U << 22;  // as many as there can be threads
  static constexpr unsigned kShards = 16;                 // on machines with more processors some share one
  static constexpr bool kWholePages = kByPages;
  static constexpr bool kWholeSpans = kShuffles;
  static_assert(kBins <= (1U << 8));
  static_assert(sizeof(Span) == 24);
  static constexpr unsigned kPages = kGranule >> kPageShift, kAllPages = (1U << kPages) - 1;
  static_assert(kPages <= 16, "a bit for each in `absent`");

  static constexpr std::size_t kSpreadBelow = kCacheLine;  // 0: neighbours come out in a row
  static constexpr unsigned kLooks = 4, kOwnLooks = 16;
  using Bits = SlotBits<std::uint64_t>;
  using Rows = typename Bits::Rows;
  static constexpr std::size_t kDenseBytes = Bits::kDenseBytes;
  static constexpr std::size_t kTables[] = {Bits::kSparseBytes, Bits::kWideBytes, Bits::kDenseBytes,
                                            sizeof(Span)};
  static constexpr std::size_t kTableBytesPerGranule = Bits::kBytesPerGranule + sizeof(Span);

  struct Global {
    std::uintptr_t base = 0;
    Span* spans = nullptr;
    Bits bits;
    struct alignas(32) Shelf {
      os::Lock lock;
      std::atomic<std::uint32_t> first{0};  // granule number; written with the lock, else a hint
      std::uint32_t last = 0;
    };
    struct alignas(64) Shard {
      Shelf of_bin[kBins];
    };
    Shard shards[kShards];
    alignas(64) std::atomic<std::uint32_t> used{0};  // a bit for each shard that ever had a span, set before
  };
  using Shelf = typename Global::Shelf;

  static constexpr auto words() {
    constexpr std::size_t bits = offsetof(Global, bits);
    return layout::Words<9>{layout::Word("pool.spans", offsetof(Global, spans), sizeof(void*)),
                            {"bits.sparse", bits + offsetof(Bits, sparse), sizeof(void*)},
                            {"bits.wide", bits + offsetof(Bits, wide), sizeof(void*)},
                            {"bits.dense", bits + offsetof(Bits, dense), sizeof(void*)},
                            {"bits.sparse_bytes", Bits::kSparseBytes},
                            {"bits.wide_bytes", Bits::kWideBytes},
                            {"bits.dense_bytes", Bits::kDenseBytes},
                            {"bits.last_wide", Bits::kLastWide},
                            {"bits.last_dense", Bits::kLastDense}};
  }
  // The low byte of `place` is the class; 0: the granule begins no span.
  static constexpr auto words_of_span() {
    return layout::Words<6>{layout::Word("span.bytes", sizeof(Span)),
                            {"span.page", kPage},
                            {"span.absent", offsetof(Span, absent), sizeof(std::uint16_t)},
                            {"span.carved", offsetof(Span, carved), sizeof(std::uint16_t)},
                            {"span.free", offsetof(Span, free), sizeof(std::uint16_t)},
                            {"span.place", offsetof(Span, place), sizeof(std::uint16_t)}};
  }

  static void open(Global& g, std::uintptr_t base, std::uintptr_t table, std::size_t granules) {
    g.base = base;
    g.spans = static_cast<Span*>(pointer(g.bits.open(table, granules)));
  }

  // With kShuffles the slots are listed in `out`, as those of take() are, and the caller has bound the span's
  // pages.
  static Taken adopt(Global& g, std::uintptr_t span, Bin bin, unsigned owner, bool zeroed, unsigned want = 0,
                     void** out = nullptr) {
    const unsigned here = this_shard(g);
    const os::Guarded hold(g.shards[here].of_bin[bin].lock);
    const std::uint32_t row = row_of(g, span);
    clear(g.spans[row]);
    set_place(g.spans[row], here, bin);
    g.spans[row].owner = owner;
    g.spans[row].zeroed = zeroed;
    g.spans[row].absent = static_cast<std::uint16_t>(zeroed ? kAllPages : tail_pages(bin));
    if constexpr (kShuffles) carve_whole(g, row);
    if (want == 0) return link(g, row), Taken{};
    return take_from(g, row, owner, out, want);
  }

  // At least one slot. At most `want`, but with kByPages a page is always carved whole.
  static Taken take(Global& g, Bin bin, unsigned owner, void** out, unsigned want, bool anybodys) {
    const unsigned here = this_shard(g);
    Shelf& own = g.shards[here].of_bin[bin];
    {
      const os::Guarded hold(own.lock);
      const std::uint32_t row = anybodys ? pick(g, own, bin, owner) : owned(g, own, owner, kOwnLooks);
      if (row != 0) return take_from(g, row, owner, out, want);
    }
    for (std::uint32_t left = g.used.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      Shelf& other = g.shards[__builtin_ctz(left)].of_bin[bin];
      if (&other == &own || first(other) == 0) continue;
      const os::Guarded lower((&own < &other ? own : other).lock);
      const os::Guarded upper((&own < &other ? other : own).lock);
      const std::uint32_t row = anybodys ? first(other) : owned(g, other, owner, kOwnLooks);
      if (row == 0) continue;
      unlink(g, row);
      set_place(g.spans[row], here, bin);
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
    const auto home = [&](void*&, Span& span, std::uint32_t row) HZ_ALWAYS_INLINE {
      span.in_use = true;
      if (++span.free == span.carved && !span.claimed) {
        if (span.listed) unlink(g, row);
        remove(g, row);
        span.next = emptied;
        emptied = row;
      } else {
        if (!span.listed && !span.claimed) link(g, row);
        check(g, row);
      }
    };
    const auto wrong = [&](void* slot) { slots[given.rejected++] = slot; };
    set_bits(g, bin, slots, count, home, wrong, [](auto) {});
    given.kept = count - given.rejected;
    given.emptied = at(g, emptied);
    return given;
  }
  static std::uintptr_t next_emptied(const Global& g, std::uintptr_t span) {
    return at(g, g.spans[row_of(g, span)].next);
  }

  // Returns the bytes of an empty span that have no memory. Requires: the caller has the span from give() or
  // settle_pages(), and has not released it: the next owner of its run clears the descriptor.
  static std::size_t absent_bytes(const Global& g, std::uintptr_t span) {
    return static_cast<std::size_t>(__builtin_popcount(g.spans[row_of(g, span)].absent)) * kPage;
  }

  // Of `count` slots of one class that somebody holds, those that can be out of their spans, each once, come
  // to the front; how many. Slots stand as if free while the others are looked at.
  static unsigned sift(Global& g, Bin bin, void** slots, unsigned count) {
    unsigned good = 0, kept = 0;
    const auto home = [&](void*& slot, Span&, std::uint32_t)
                          HZ_ALWAYS_INLINE { std::swap(slots[good++], slot); };
    const auto leave = [&](const Rows& bits) {
      for (; kept < good; ++kept) {
        const Place place = place_of(g, bin, slots[kept]);
        bits.word(place.row, place.index / 64) &= ~place.bit();
      }
    };
    set_bits(
        g, bin, slots, count, home, [](void*) {}, leave);
    return good;
  }

  // Of a few spans that have free slots, the one with the most slots out comes first on its shelf. A block
  // that moves there makes its old span emptier than the new one in any case: so moves come to an end, but
  // for those of a thread that changes its processor before it allocates.
  static bool prefer_fuller(Global& g, Bin bin, std::uintptr_t span, unsigned owner, bool anybodys) {
    const std::uint32_t row = row_of(g, span);
    const SlotsOut out = slots_out(g, row);
    const auto outdoes = [&](Shelf& shelf) {
      const os::Guarded hold(shelf.lock);
      const std::uint32_t best = fullest(g, shelf, owner, anybodys);
      if (best == 0) return false;
      unlink(g, best);
      link(g, best);
      const unsigned most = slots_out(g.spans[best]);
      return best != row && (most > out.count || (most == out.count && best < row));
    };
    Shelf& own = g.shards[this_shard(g)].of_bin[bin];
    if (out.bin != bin) return false;
    if (first(own) != 0) return outdoes(own);
    for (std::uint32_t left = g.used.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
      Shelf& other = g.shards[__builtin_ctz(left)].of_bin[bin];
      if (first(other) != 0) return outdoes(other);
    }
    return false;
  }

  static FreePages claim_pages(Global& g, std::size_t row, bool unused_only) {
    FreePages claimed;
    Span& span = g.spans[row];
    const auto number = static_cast<std::uint32_t>(row);
    with_shelf(g, span, [&](Bin bin) {
      if (is_large(bin) || !span.listed || span.carved == 0) return;
      if (unused_only && std::exchange(span.in_use, false)) return void(claimed.in_use = true);
      if (slots_out(span) * bin_size(bin) > kGranule - kPage) return;
      claimed.pages = free_pages(g, number);
      if (claimed.pages == 0) return;
      claimed.span = at(g, number);
      claimed.bin = bin;
      span.claimed = true;
      unlink(g, number);
    });
    return claimed;
  }
  static std::uintptr_t settle_pages(Global& g, const FreePages& claimed) {
    const std::uint32_t row = row_of(g, claimed.span);
    Span& span = g.spans[row];
    bool emptied = false;
    with_shelf(g, span, [&](Bin) {
      span.claimed = false;
      span.absent = static_cast<std::uint16_t>(span.absent | claimed.pages);
      emptied = span.free == span.carved;
      emptied ? remove(g, row) : link_last(g, row);
    });
    return emptied ? claimed.span : 0;
  }

  // In a child that another thread's change was cut off in: the classes whose locks were held count their
  // slots again, and so do spans that were claimed. `for_each_row` visits all granules that were ever used.
  template <class ForEachRow>
  static void make_whole(Global& g, ForEachRow for_each_row) {
    bool cut[kBins] = {};
    for (auto& shard : g.shards)
      for (Bin bin = 1; bin < kBins; ++bin) cut[bin] |= shard.of_bin[bin].lock.reset();
    for (Bin bin = 1; bin < kBins; ++bin) {
      for (auto& shard : g.shards)
        if (cut[bin]) set_first(shard.of_bin[bin], 0), shard.of_bin[bin].last = 0;
    }
    for_each_row([&](std::size_t row) {
      Span& span = g.spans[row];
      if (!cut[bin_of(span)] && !span.claimed) return;
      span.claimed = false;
      count_again(g, static_cast<std::uint32_t>(row));
    });
  }

  // Without a lock: the span may end the moment after.
  static Bin bin_in(const Global& g, std::size_t row) { return bin_of(g.spans[row]); }
  static SlotsOut slots_out(Global& g, std::size_t row) {
    SlotsOut out;
    const Span& span = g.spans[row];
    with_shelf(g, span, [&](Bin bin) { out = {bin, slots_out(span)}; });
    return out;
  }

  static void note_slots_out(Global& g, std::uintptr_t at, OutOfSpan& out) {
    const std::uint32_t row = row_of(g, at);
    const Span& span = g.spans[row];
    with_shelf(g, span, [&](Bin bin) {
      out.bin = bin;
      out.slots = span.carved;
      for (unsigned w = 0; w * 64 < out.slots; ++w) out.bits[w] = ~g.bits.of(bin).word(row, w);
    });
  }

  // For diagnosis only, as below: whether the slot is free and here.
  static bool holds(Global& g, Bin bin, const void* slot) {
    const Place place = place_of(g, bin, slot);
    return (g.bits.of(bin).word(place.row, place.index / 64) & place.bit()) != 0;
  }
  // For diagnosis only: a span may change the moment after. One look at its class, which is what is returned.
  static Bin bin_at(const Global& g, std::uintptr_t start, std::uintptr_t at) {
    const volatile Span& span = g.spans[row_of(g, start)];
    const Bin bin = span.place.load(std::memory_order_relaxed) & 0xff;
    return at - start < span.carved * bin_size(bin) ? bin : 0;
  }

 private:
  static std::uint32_t row_of(const Global& g, std::uintptr_t at) {
    return static_cast<std::uint32_t>((at - g.base) >> kGranuleShift);
  }
  static std::uintptr_t at(const Global& g, std::uint32_t row) {
    return row == 0 ? 0 : g.base + (std::uintptr_t{row} << kGranuleShift);
  }

  struct Place {
    std::uint32_t row;
    unsigned index;
    std::uint64_t bit() const { return std::uint64_t{1} << (index % 64); }
  };
  HZ_INLINE static Place place_of(const Global& g, Bin bin, const void* slot) {
    return {row_of(g, address(slot)), slot_index(bin, offset(slot))};
  }
  static unsigned offset(const void* slot) { return static_cast<unsigned>(address(slot) & (kGranule - 1)); }
  // Sets the bit of slot `index`, which lies in `word`. Returns false if it is set already, or if nothing was
  // carved there.
  HZ_INLINE static bool set_bit(std::uint64_t& word, const Span& span, unsigned index) {
    if (index >= span.carved || (word >> index % 64 & 1) != 0) return false;
    word |= std::uint64_t{1} << index % 64;
    return true;
  }

  // With the lock of the shelf of a span in use; if it has none, it is not visited.
  static void with_shelf(Global& g, const Span& span, auto visit) {
    for (;;) {
      const std::uint16_t place = span.place.load(std::memory_order_relaxed);
      const Bin bin = place & 0xff;
      if (bin == 0) return;
      const os::Guarded hold(g.shards[place >> 8].of_bin[bin].lock);
      // Whoever comes to this shelf, or leaves it, needs the lock.
      if (span.place.load(std::memory_order_relaxed) == place) return visit(bin);
    }
  }
  // The pages that have memory and into which no slot reaches that is out.
  static unsigned free_pages(const Global& g, std::uint32_t row) {
    const Span& span = g.spans[row];
    const Bin bin = bin_of(span);
    const SlotIndex index(bin);
    const Rows bits = g.bits.of(bin);
    unsigned pages = 0;
    for (unsigned left = kAllPages & ~unsigned{span.absent}; left != 0; left &= left - 1) {
      const unsigned begin = static_cast<unsigned>(__builtin_ctz(left)) << kPageShift;
      const unsigned last = index.of(begin + kPage - 1);
      if (are_home(bits, row, index.of(begin), last < span.carved ? last + 1 : span.carved))
        pages |= left & -left;
    }
    return pages;
  }
  static bool are_home(const Rows& bits, std::uint32_t row, unsigned begin, unsigned end) {
    for (unsigned i = begin, next = 0; i < end; i = next) {
      next = (i / 64 + 1) * 64 < end ? (i / 64 + 1) * 64 : end;
      const std::uint64_t slots = ~std::uint64_t{0} >> (64 - (next - i)) << (i % 64);
      if ((bits.word(row, i / 64) & slots) != slots) return false;
    }
    return true;
  }

  // This processor's.
  static unsigned this_shard(Global& g) {
    const unsigned here = os::current_cpu() % kShards;
    const std::uint32_t mine = 1U << here;
    if ((g.used.load(std::memory_order_relaxed) & mine) == 0)
      g.used.fetch_or(mine, std::memory_order_relaxed);
    return here;
  }
  static unsigned shard_of(const Span& span) { return span.place.load(std::memory_order_relaxed) >> 8; }
  static Bin bin_of(const Span& span) { return span.place.load(std::memory_order_relaxed) & 0xff; }
  static Rows bits_in(const Global& g, std::uint32_t row) { return g.bits.of(bin_of(g.spans[row])); }
  static void set_place(Span& span, unsigned shard, Bin bin) {
    span.place.store(static_cast<std::uint16_t>(shard << 8 | bin), std::memory_order_relaxed);
  }
  static Shelf& shelf_of(Global& g, const Span& span) {
    return g.shards[shard_of(span)].of_bin[bin_of(span)];
  }
  static std::uint32_t first(const Shelf& shelf) { return shelf.first.load(std::memory_order_relaxed); }
  static void set_first(Shelf& shelf, std::uint32_t row) {
    shelf.first.store(row, std::memory_order_relaxed);
  }
  // Clears all but the shard, which other threads read, and the absent pages, which absent_bytes() reads.
  static void clear(Span& span) {
    span.next = span.previous = 0;
    span.carved = span.free = 0;
    span.owner = 0;
    set_place(span, shard_of(span), 0);
    span.listed = span.zeroed = span.claimed = span.in_use = false;
  }

  // Sets the bits of slots of one class, shelf by shelf. Calls `home` for each slot whose bit it set, `wrong`
  // for each slot that cannot be allocated from a span of the class, and `leave` before it unlocks a shelf.
  // `home` and `wrong` may write to the slots visited so far. An allocated slot keeps its span alive, but the
  // span may move to another shelf meanwhile; so the pass checks the span's place again under the lock.
  // Cost: a third of what the library costs in a program that frees all of its blocks; so all is inlined.
  HZ_INLINE static void set_bits(Global& g, Bin bin, void** slots, unsigned count, auto home, auto wrong,
                                 auto leave) {
    const std::uintptr_t base = g.base;
    Span* const spans = g.spans;
    const Rows bits = g.bits.of(bin);
    const SlotIndex index(bin);
    for (void **slot = slots, **const all = slots + count; slot != all;) {
      const unsigned shard = shard_of(spans[row_of(g, address(*slot))]);
      const auto here = static_cast<std::uint16_t>(shard << 8 | bin);
      const os::Guarded hold(g.shards[shard].of_bin[bin].lock);
      for (void** end = all; slot != end;) {
        const std::size_t row = (address(*slot) - base) >> kGranuleShift;
        Span& span = spans[row];
        const std::uint16_t place = span.place.load(std::memory_order_relaxed);
        if (HZ_UNLIKELY(place != here) && place >> 8 != shard) {
          std::swap(*slot, *--end);
          continue;
        }
        const unsigned number = index.of(offset(*slot));
        if (HZ_LIKELY(place == here && set_bit(bits.word(row, number / 64), span, number))) {
          home(*slot, span, static_cast<std::uint32_t>(row));
        } else {
          wrong(*slot);
        }
        ++slot;
      }
      leave(bits);
    }
  }

  // Of the spans that had slots last, one that this owner had before, if there is one: small slots share
  // lines of the cache and pages with their neighbours.
  static std::uint32_t pick(const Global& g, const Shelf& own, Bin bin, unsigned owner) {
    const std::uint32_t row = bin_size(bin) >= kPage ? 0 : owned(g, own, owner, kLooks);
    return row != 0 ? row : first(own);
  }
  static std::uint32_t owned(const Global& g, const Shelf& shelf, unsigned owner, unsigned most) {
    std::uint32_t row = first(shelf);
    for (unsigned looks = 0; row != 0 && looks < most; ++looks, row = g.spans[row].next) {
      if (g.spans[row].owner == owner) return row;
    }
    return 0;
  }

  // Of the first few of a shelf; of the owner's if it has any there, for take() prefers those.
  static std::uint32_t fullest(const Global& g, const Shelf& shelf, unsigned owner, bool anybodys) {
    std::uint32_t best = 0;
    bool is_own = false;
    unsigned most = 0;
    for (std::uint32_t row = first(shelf), looks = 0; row != 0 && looks < kOwnLooks;
         ++looks, row = g.spans[row].next) {
      const Span& span = g.spans[row];
      const bool own = span.owner == owner;
      const unsigned out = slots_out(span);
      if (own < is_own || (!own && !anybodys) || (own == is_own && best != 0 && out <= most)) continue;
      best = row, is_own = own, most = out;
    }
    return best;
  }

  static unsigned slots_out(const Span& span) { return unsigned{span.carved} - span.free; }
  static bool may_give(const Span& span) { return span.free != 0 || span.carved != bin_slots(bin_of(span)); }

  // With the lock of the span's shelf, on which it may have come without being in the list yet.
  static Taken take_from(Global& g, std::uint32_t row, unsigned owner, void** out, unsigned want) {
    Taken taken;
    Span& span = g.spans[row];
    taken.span = g.base + (std::uintptr_t{row} << kGranuleShift);
    const bool rebind = span.owner != owner && span.carved != 0;
    span.owner = owner;
    span.in_use = true;
    if (span.free != 0) {
      take_home(g, row, taken, out, want);
    } else {
      carve(span, taken, want);
    }
    taken.end = span.carved * bin_size(bin_of(span));
    if (rebind) {
      taken.first_page = 0;
      taken.pages = static_cast<unsigned>((span.carved - 1) * bin_size(bin_of(span)) >> kPageShift) + 1;
    }
    if (span.listed && !may_give(span)) unlink(g, row);
    if (!span.listed && may_give(span)) link(g, row);
    check(g, row);
    return taken;
  }

  static void carve_whole(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    const unsigned slots = bin_slots(bin_of(span));
    span.carved = span.free = static_cast<std::uint16_t>(slots);
    span.absent = static_cast<std::uint16_t>(tail_pages(bin_of(span)));
    const Rows bits = bits_in(g, row);
    for (unsigned w = 0; w * 64 < slots; ++w)
      bits.word(row, w) = ~std::uint64_t{0} >> (slots - w * 64 < 64 ? 64 - (slots - w * 64) : 0);
  }
  // From words and bits of the map at random, and then in any order.
  static void take_any(Global& g, std::uint32_t row, Taken& taken, void** out, unsigned want) {
    Span& span = g.spans[row];
    Random dice(os::random_word());  // for these slots alone
    const std::size_t size = bin_size(bin_of(span));
    const unsigned words = (bin_slots(bin_of(span)) + 63U) / 64;
    taken.slots = want < span.free ? want : span.free;
    span.free = static_cast<std::uint16_t>(span.free - taken.slots);
    const Rows bits = bits_in(g, row);
    unsigned w = dice.below(words);
    for (unsigned left = taken.slots; left != 0; w = w + 1 < words ? w + 1 : 0) {
      std::uint64_t& word = bits.word(row, w);
      unsigned here = (left + words - 1) / words;  // of each word some
      for (; word != 0 && left != 0 && here != 0; --here) {
        const auto turn = static_cast<unsigned>(dice.next() % 64);
        const std::uint64_t turned = word >> turn | word << (64 - turn) % 64;
        const unsigned bit = (turn + static_cast<unsigned>(__builtin_ctzll(turned))) % 64;
        word &= ~(std::uint64_t{1} << bit);
        out[--left] = pointer(taken.span + (w * 64 + bit) * size);
      }
    }
    for (unsigned i = taken.slots; i > 1; --i) std::swap(out[i - 1], out[dice.below(i)]);
  }

  static void take_home(Global& g, std::uint32_t row, Taken& taken, void** out, unsigned want) {
    if constexpr (kShuffles) return take_any(g, row, taken, out, want);
    Span& span = g.spans[row];
    const std::size_t size = bin_size(bin_of(span));
    taken.slots = want < span.free ? want : span.free;
    span.free = static_cast<std::uint16_t>(span.free - taken.slots);
    const Rows bits = bits_in(g, row);
    unsigned left = taken.slots;
    for (unsigned w = 0; left != 0; ++w) {
      std::uint64_t& word = bits.word(row, w);
      for (; word != 0 && left != 0; word &= word - 1) {
        const unsigned index = w * 64 + static_cast<unsigned>(__builtin_ctzll(word));
        out[--left] = pointer(taken.span + index * size);
      }
    }
    if (HZ_UNLIKELY(span.absent != 0))
      for (unsigned i = 0; i < taken.slots; ++i) touched(span, address(out[i]) - taken.span, size);
  }
  // Slots that are about to be handed out lie there.
  static void touched(Span& span, std::size_t begin, std::size_t bytes) {
    span.absent = static_cast<std::uint16_t>(span.absent & ~pages_of(begin, bytes));
  }
  // A bit for each page that no slot of the class reaches into: the source sees to it that they have no
  // memory.
  static unsigned tail_pages(Bin bin) {
    return is_large(bin) ? 0 : kAllPages & ~pages_of(0, bin_slots(bin) * bin_size(bin));
  }
  // A bit for each page from there.
  static unsigned pages_of(std::size_t begin, std::size_t bytes) {
    const unsigned first = static_cast<unsigned>(begin >> kPageShift);
    const unsigned end = static_cast<unsigned>((begin + bytes - 1) >> kPageShift) + 1;
    return kAllPages >> (kPages - (end < kPages ? end : kPages)) & ~0U << first;
  }

  static void carve(Span& span, Taken& taken, unsigned want) {
    const std::size_t size = bin_size(bin_of(span));
    const unsigned begin = span.carved;
    const unsigned end = carve_end(span, want);
    taken.begin = begin;
    taken.slots = end - begin;
    span.carved = static_cast<std::uint16_t>(end);
    taken.first_page = static_cast<unsigned>(begin * size >> kPageShift);
    taken.pages = static_cast<unsigned>((end - 1) * size >> kPageShift) + 1 - taken.first_page;
    taken.fresh = true;
    taken.zeroed = span.zeroed;
    touched(span, begin * size, (end - begin) * size);
  }

  // With kByPages, slots below a page are carved by whole pages, so that every slot which starts in a page
  // known to the route has been handed out. Larger ones one by one while the memory is untouched: the bins of
  // such lines write into the slots that they keep, and the user may never touch them.
  static unsigned carve_end(const Span& span, unsigned want) {
    const std::size_t size = bin_size(bin_of(span));
    const unsigned slots = bin_slots(bin_of(span));
    std::size_t end = span.carved + (kByPages && size >= kPage && span.zeroed ? 1U : want);
    if (kByPages && size < kPage) {
      const std::size_t begin_bytes = span.carved * size;
      const std::size_t whole = (begin_bytes + want * size) & ~(kPage - 1);
      const std::size_t bytes = whole > begin_bytes ? whole : align_up(begin_bytes + 1, kPage);
      end = (bytes + size - 1) / size;
    } else if (size % kCacheLine != 0) {
      const std::size_t whole =
          end & ~(kCacheLine / (size & -size) - 1);  // a line for two threads would cost both
      if (whole > span.carved && end < slots) end = whole;
    }
    return end < slots ? static_cast<unsigned>(end) : slots;
  }

  static unsigned bits_of(Global& g, std::uint32_t row) {
    const unsigned words = (bin_slots(bin_of(g.spans[row])) + 63U) / 64;
    const Rows bits = bits_in(g, row);
    unsigned set = 0;
    for (unsigned w = 0; w < words; ++w)
      set += static_cast<unsigned>(__builtin_popcountll(bits.word(row, w)));
    return set;
  }
  static void count_again(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    span.free = static_cast<std::uint16_t>(bits_of(g, row));
    span.listed = false;
    if (may_give(span)) link(g, row);
  }

  static void check(Global& g, std::uint32_t row) {
    if constexpr (kDebug) {
      const Span& span = g.spans[row];
      hz::check(bits_of(g, row) == span.free && span.free <= span.carved &&
                span.carved <= bin_slots(bin_of(span)));
      hz::check(span.listed == (may_give(span) && !span.claimed));
    }
  }

  static void remove(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    const unsigned words = (span.carved + 63U) / 64;
    const Rows bits = bits_in(g, row);
    for (unsigned w = 0; w < words; ++w) bits.word(row, w) = 0;
    clear(span);
  }

  static void link(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    Shelf& own = shelf_of(g, span);
    span.next = first(own);
    span.previous = 0;
    (span.next != 0 ? g.spans[span.next].previous : own.last) = row;
    set_first(own, row);
    span.listed = true;
    check(g, row);
  }
  static void link_last(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    Shelf& own = shelf_of(g, span);
    if (own.last == 0) return link(g, row);
    span.next = 0;
    span.previous = own.last;
    g.spans[own.last].next = row;
    own.last = row;
    span.listed = true;
    check(g, row);
  }
  static void unlink(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    Shelf& own = shelf_of(g, span);
    (span.next != 0 ? g.spans[span.next].previous : own.last) = span.previous;
    if (span.previous != 0) {
      g.spans[span.previous].next = span.next;
    } else {
      set_first(own, span.next);
    }
    span.listed = false;
  }
};

using SpanPool = BasicSpanPool<true>;

}  // namespace hz
