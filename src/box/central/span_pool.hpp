// SPDX-License-Identifier: Apache-2.0
//
// Spans and the slots that are at home in them. A span's descriptor and its bitmap stand in tables beside the arena,
// one row per granule, so no byte of it lies in or beside user memory. One lock per class, held for a few dozen
// instructions; no user memory is touched under it.
//
//   carved <= slots of the class              slots below `carved` were handed out at least once
//   home == number of bits in the bitmap      a bit: the slot is free and here
//   in the list of its class  <=>  home > 0 or carved < slots
//   home == carved            =>  nobody holds a slot: the span leaves the pool
#pragma once

#include "base/slot_bits.hpp"
#include "box/central/contract.hpp"
#include "os/lock.hpp"

namespace hz {

// kPages: slots are carved by whole pages, for a route that knows pages.
template <bool kPages>
struct BasicSpanPool {
  struct Span {
    std::uint32_t next, previous;  // granule numbers; 0 ends the list
    std::uint16_t carved, home;
    std::uint32_t owner : 22;  // as many as there can be threads
    std::uint32_t bin : 8;
    bool listed : 1, zeroed : 1;
  };

  static constexpr std::uint32_t kAnyOwner = (1U << 22) - 1;
  static_assert(sizeof(Span) == 16);

  static constexpr std::size_t kSpreadBelow = kCacheLine;  // 0: neighbours come out in a row
  static constexpr unsigned kLooks = 4;
  using Bits = SlotBits<std::uint64_t>;
  static constexpr std::size_t kDenseBytes = Bits::kFarBytes;
  static constexpr std::size_t kShadows[] = {Bits::kNearBytes, Bits::kFarBytes, sizeof(Span)};
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
    g.spans[row].owner = owner & kAnyOwner;
    g.spans[row].zeroed = zeroed;
    link(g, row);
  }

  // At least one and at most `want` slots; with kPages, a page is always carved whole: room for kPage / kMinAlign.
  static Taken take(Global& g, Bin bin, unsigned owner, void** out, unsigned want) {
    const os::Guarded hold(g.of_bin[bin].lock);
    Taken taken;
    const std::uint32_t row = pick(g, bin, owner);
    if (row == 0) return taken;
    Span& span = g.spans[row];
    taken.span = g.base + (std::uintptr_t{row} << kGranuleShift);
    const bool rebind = span.owner != owner && span.carved != 0;
    span.owner = owner & kAnyOwner;
    if (span.home != 0) {
      take_home(g, row, taken, out, want);
    } else {
      carve(span, taken, out, want);
    }
    taken.end = span.carved * bin_size(bin);
    if (rebind) {
      taken.first_page = 0;
      taken.pages = static_cast<unsigned>((span.carved - 1) * bin_size(bin) >> kPageShift) + 1;
    }
    if (span.home == 0 && span.carved == bin_slots(bin)) unlink(g, row);
    check(g, row);
    return taken;
  }

  // Returns `count` slots of one class to their spans. `emptied` has room for `count` addresses; the rejected slots are
  // moved to the front of `rejected`, which may be `slots` itself.
  static Given give(Global& g, Bin bin, void* const* slots, unsigned count, std::uintptr_t* emptied, void** rejected) {
    const os::Guarded hold(g.of_bin[bin].lock);
    Given given;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t row = row_of(g, address(slots[i]));
      Span& span = g.spans[row];
      const unsigned index = slot_index(bin, static_cast<unsigned>(address(slots[i]) & (kGranule - 1)));
      std::uint64_t& word = g.bits.word(row, index / 64);
      const std::uint64_t bit = std::uint64_t{1} << (index % 64);
      if (span.bin != bin || index >= span.carved || (word & bit) != 0) {
        rejected[given.rejected++] = slots[i];
        continue;
      }
      word |= bit;
      ++given.kept;
      if (++span.home == span.carved) {
        if (span.listed) unlink(g, row);
        forget(g, row);
        emptied[given.emptied++] = g.base + (std::uintptr_t{row} << kGranuleShift);
      } else {
        if (!span.listed) link(g, row);
        check(g, row);
      }
    }
    return given;
  }

  // For diagnosis only: a span may change the moment after.
  static Bin bin_at(const Global& g, std::uintptr_t start, std::uintptr_t at) {
    const Span& span = g.spans[row_of(g, start)];
    return span.bin != 0 && at - start < span.carved * bin_size(span.bin) ? span.bin : 0;
  }

 private:
  static std::uint32_t row_of(const Global& g, std::uintptr_t at) {
    return static_cast<std::uint32_t>((at - g.base) >> kGranuleShift);
  }

  // Of the spans that had slots last, one that this owner had before, if there is one: small slots share lines of the
  // cache and pages with their neighbours.
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
    for (unsigned w = 0; span.home != 0 && taken.slots < want; ++w) {
      std::uint64_t& word = g.bits.word(row, w);
      while (word != 0 && taken.slots < want) {
        const unsigned index = w * 64 + static_cast<unsigned>(__builtin_ctzll(word));
        word &= word - 1;
        --span.home;
        out[taken.slots++] = pointer(taken.span + index * size);
      }
    }
  }

  static void carve(Span& span, Taken& taken, void** out, unsigned want) {
    const std::size_t size = bin_size(span.bin);
    const unsigned begin = span.carved;
    const unsigned end = carve_end(span, want);
    // Slots that share a line of the cache are far from each other in the batch: of what a thread allocates in a row it
    // may give one to each of several threads, and those would share the line, too.
    const std::size_t apart = size >= kSpreadBelow ? 1 : (kCacheLine - (size & -size) + size - 1) / size + 1;
    for (std::size_t first = begin; first < begin + apart; ++first)
      for (std::size_t at = first; at < end; at += apart) out[taken.slots++] = pointer(taken.span + at * size);
    span.carved = static_cast<std::uint16_t>(end);
    taken.first_page = static_cast<unsigned>(begin * size >> kPageShift);
    taken.pages = static_cast<unsigned>((end - 1) * size >> kPageShift) + 1 - taken.first_page;
    taken.fresh = true;
    taken.zeroed = span.zeroed;
  }

  // With kPages, slots below a page are carved by whole pages, so that every slot which starts in a page known to the
  // route has been handed out. Larger ones one by one while the memory is untouched: the user may never touch it.
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
      const std::size_t whole = end & ~(kCacheLine / (size & -size) - 1);  // a line for two threads would cost both
      if (whole > span.carved && end < slots) end = whole;
    }
    return end < slots ? static_cast<unsigned>(end) : slots;
  }

  static void check(Global& g, std::uint32_t row) {
    if constexpr (kDebug) {
      const Span& span = g.spans[row];
      unsigned bits = 0;
      for (std::size_t w = 0; w < Bits::kWords; ++w)
        bits += static_cast<unsigned>(__builtin_popcountll(g.bits.word(row, w)));
      hz::check(bits == span.home && span.home <= span.carved && span.carved <= bin_slots(span.bin));
      hz::check(span.listed == (span.home != 0 || span.carved != bin_slots(span.bin)));
    }
  }

  static void forget(Global& g, std::uint32_t row) {
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
