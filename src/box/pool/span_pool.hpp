// SPDX-License-Identifier: Apache-2.0
//
// Spans and the slots that are free in them. A span's descriptor and its bitmap stand in tables beside the
// arena, one row per granule, so no byte of it lies in or beside user memory. One lock per class, held for a
// few dozen instructions; no user memory is touched under it.
//
//   carved <= slots of the class              slots below `carved` were handed out at least once
//   free == number of bits in the bitmap      a bit: the slot is free and here
//   in the list of its class  <=>  free > 0 or carved < slots
//   free == carved            =>  nobody holds a slot: the span leaves the pool
#pragma once

#include "base/slot_bits.hpp"
#include "box/pool/contract.hpp"
#include "os/lock.hpp"

namespace hz {

// kPages: slots are carved by whole pages, for a route that knows pages.
template <bool kPages>
struct BasicSpanPool {
  struct Span {
    std::uint32_t next, previous;  // granule numbers; 0 ends the list
    std::uint16_t carved, free;
    std::uint32_t owner : 22;  // kOwnerBits: as many as there can be threads
    std::uint32_t bin : 8;
    bool listed : 1, zeroed : 1;
  };

  static constexpr unsigned kOwnerBits = 22;
  static constexpr std::uint32_t kMostOwners = 1U << kOwnerBits;
  static constexpr bool kWholePages = kPages;
  static_assert(kBins <= (1U << 8));
  static_assert(sizeof(Span) == 16);

  static constexpr std::size_t kSpreadBelow = kCacheLine;  // 0: neighbours come out in a row
  static constexpr unsigned kLooks = 4;
  using Bits = SlotBits<std::uint64_t>;
  static constexpr std::size_t kDenseBytes = Bits::kFarBytes;
  static constexpr std::size_t kTables[] = {Bits::kNearBytes, Bits::kFarBytes, sizeof(Span)};
  static constexpr std::size_t kTableBytesPerGranule = Bits::kNearBytes + Bits::kFarBytes + sizeof(Span);

  struct Global {
    std::uintptr_t base = 0;
    Span* spans = nullptr;
    Bits bits;
    struct alignas(64) Shelf {
      os::Lock lock;
      std::uint32_t first = 0;
    };
    Shelf of_bin[kBins];
  };

  static void open(Global& g, std::uintptr_t base, std::uintptr_t table, std::size_t granules) {
    g.base = base;
    g.bits.open(table, granules);
    g.spans = static_cast<Span*>(pointer(table + granules * (Bits::kNearBytes + Bits::kFarBytes)));
  }

  static void adopt(Global& g, std::uintptr_t span, Bin bin, unsigned owner, bool zeroed) {
    const os::Guarded hold(g.of_bin[bin].lock);
    const std::uint32_t row = row_of(g, span);
    g.spans[row] = {};
    g.spans[row].bin = static_cast<std::uint8_t>(bin);
    g.spans[row].owner = owner & (kMostOwners - 1);
    g.spans[row].zeroed = zeroed;
    link(g, row);
  }

  // At least one slot. At most `want`, but with kPages a page is always carved whole.
  static Taken take(Global& g, Bin bin, unsigned owner, void** out, unsigned want) {
    const os::Guarded hold(g.of_bin[bin].lock);
    Taken taken;
    const std::uint32_t row = pick(g, bin, owner);
    if (row == 0) return taken;
    Span& span = g.spans[row];
    taken.span = g.base + (std::uintptr_t{row} << kGranuleShift);
    const bool rebind = span.owner != owner && span.carved != 0;
    span.owner = owner & (kMostOwners - 1);
    if (span.free != 0) {
      take_home(g, row, taken, out, want);
    } else {
      carve(span, taken, want);
    }
    taken.end = span.carved * bin_size(bin);
    if (rebind) {
      taken.first_page = 0;
      taken.pages = static_cast<unsigned>((span.carved - 1) * bin_size(bin) >> kPageShift) + 1;
    }
    if (span.free == 0 && span.carved == bin_slots(bin)) unlink(g, row);
    check(g, row);
    return taken;
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
    const os::Guarded hold(g.of_bin[bin].lock);
    Given given;
    std::uint32_t emptied = 0;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t row = row_of(g, address(slots[i]));
      Span& span = g.spans[row];
      if (!set_bit(g, bin, slots[i])) {
        slots[given.rejected++] = slots[i];
        continue;
      }
      ++given.kept;
      if (++span.free == span.carved) {
        if (span.listed) unlink(g, row);
        remove(g, row);
        span.next = emptied;
        emptied = row;
      } else {
        if (!span.listed) link(g, row);
        check(g, row);
      }
    }
    given.emptied = at(g, emptied);
    return given;
  }
  static std::uintptr_t next_emptied(const Global& g, std::uintptr_t span) {
    return at(g, g.spans[row_of(g, span)].next);
  }

  // Of `count` slots of one class that somebody holds, those that can be out of their spans, each once, come
  // to the front; how many. Slots stand as if free while the others are looked at.
  static unsigned sift(Global& g, Bin bin, void** slots, unsigned count) {
    const os::Guarded hold(g.of_bin[bin].lock);
    for (unsigned i = 0; i < count;) {
      if (HZ_LIKELY(set_bit(g, bin, slots[i]))) {
        ++i;
      } else {
        void* const wrong = slots[i];
        slots[i] = slots[--count];
        slots[count] = wrong;
      }
    }
    for (unsigned i = 0; i < count; ++i) {
      const Place place = place_of(g, bin, slots[i]);
      g.bits.word(place.row, place.index / 64) &= ~place.bit();
    }
    return count;
  }

  // In a child that another thread's change was cut off in: the classes whose locks were held count their
  // slots again. `for_each_row` visits all granules that were ever used.
  template <class ForEachRow>
  static void make_whole(Global& g, ForEachRow for_each_row) {
    bool cut[kBins] = {}, any = false;
    for (Bin bin = 1; bin < kBins; ++bin) {
      cut[bin] = g.of_bin[bin].lock.reset();
      if (cut[bin]) g.of_bin[bin].first = 0;
      any |= cut[bin];
    }
    if (!any) return;
    for_each_row([&](std::size_t row) {
      if (cut[g.spans[row].bin]) count_again(g, static_cast<std::uint32_t>(row));
    });
  }

  // For diagnosis only: a span may change the moment after. One look at its class, which is what is returned.
  static Bin bin_at(const Global& g, std::uintptr_t start, std::uintptr_t at) {
    const volatile Span& span = g.spans[row_of(g, start)];
    const Bin bin = span.bin;
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
    return {row_of(g, address(slot)), slot_index(bin, static_cast<unsigned>(address(slot) & (kGranule - 1)))};
  }
  // False: it is set, or nothing of the class was carved there.
  HZ_INLINE static bool set_bit(Global& g, Bin bin, const void* slot) {
    const Place place = place_of(g, bin, slot);
    const Span& span = g.spans[place.row];
    std::uint64_t& word = g.bits.word(place.row, place.index / 64);
    if (span.bin != bin || place.index >= span.carved || (word & place.bit()) != 0) return false;
    word |= place.bit();
    return true;
  }

  // Of the spans that had slots last, one that this owner had before, if there is one: small slots share
  // lines of the cache and pages with their neighbours.
  static std::uint32_t pick(const Global& g, Bin bin, unsigned owner) {
    const std::uint32_t first = g.of_bin[bin].first;
    if (bin_size(bin) >= kPage) return first;
    std::uint32_t row = first;
    for (unsigned looks = 0; row != 0 && looks < kLooks; ++looks, row = g.spans[row].next) {
      if (g.spans[row].owner == owner) return row;
    }
    return first;
  }

  static void take_home(Global& g, std::uint32_t row, Taken& taken, void** out, unsigned want) {
    Span& span = g.spans[row];
    const std::size_t size = bin_size(span.bin);
    taken.slots = want < span.free ? want : span.free;
    span.free = static_cast<std::uint16_t>(span.free - taken.slots);
    unsigned left = taken.slots;
    for (unsigned w = 0; left != 0; ++w) {
      std::uint64_t& word = g.bits.word(row, w);
      for (; word != 0 && left != 0; word &= word - 1) {
        const unsigned index = w * 64 + static_cast<unsigned>(__builtin_ctzll(word));
        out[--left] = pointer(taken.span + index * size);
      }
    }
  }

  static void carve(Span& span, Taken& taken, unsigned want) {
    const std::size_t size = bin_size(span.bin);
    const unsigned begin = span.carved;
    const unsigned end = carve_end(span, want);
    taken.begin = begin;
    taken.slots = end - begin;
    span.carved = static_cast<std::uint16_t>(end);
    taken.first_page = static_cast<unsigned>(begin * size >> kPageShift);
    taken.pages = static_cast<unsigned>((end - 1) * size >> kPageShift) + 1 - taken.first_page;
    taken.fresh = true;
    taken.zeroed = span.zeroed;
  }

  // With kPages, slots below a page are carved by whole pages, so that every slot which starts in a page
  // known to the route has been handed out. Larger ones one by one while the memory is untouched: the user
  // may never touch it.
  static unsigned carve_end(const Span& span, unsigned want) {
    const std::size_t size = bin_size(span.bin);
    const unsigned slots = bin_slots(span.bin);
    std::size_t end = span.carved + (size >= kPage && span.zeroed ? 1U : want);
    if (kPages && size < kPage) {
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
    unsigned bits = 0;
    for (std::size_t w = 0; w < Bits::kWords; ++w)
      bits += static_cast<unsigned>(__builtin_popcountll(g.bits.word(row, w)));
    return bits;
  }
  static void count_again(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    span.free = static_cast<std::uint16_t>(bits_of(g, row));
    span.listed = false;
    if (span.free != 0 || span.carved != bin_slots(span.bin)) link(g, row);
    check(g, row);
  }

  static void check(Global& g, std::uint32_t row) {
    if constexpr (kDebug) {
      const Span& span = g.spans[row];
      hz::check(bits_of(g, row) == span.free && span.free <= span.carved &&
                span.carved <= bin_slots(span.bin));
      hz::check(span.listed == (span.free != 0 || span.carved != bin_slots(span.bin)));
    }
  }

  static void remove(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    const unsigned words = (span.carved + 63U) / 64;
    for (unsigned w = 0; w < words; ++w) g.bits.word(row, w) = 0;
    span = {};
  }

  static void link(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    std::uint32_t& first = g.of_bin[span.bin].first;
    span.next = first;
    span.previous = 0;
    if (first != 0) g.spans[first].previous = row;
    first = row;
    span.listed = true;
  }
  static void unlink(Global& g, std::uint32_t row) {
    Span& span = g.spans[row];
    if (span.next != 0) g.spans[span.next].previous = span.previous;
    (span.previous != 0 ? g.spans[span.previous].next : g.of_bin[span.bin].first) = span.next;
    span.listed = false;
  }
};

using SpanPool = BasicSpanPool<true>;

}  // namespace hz
