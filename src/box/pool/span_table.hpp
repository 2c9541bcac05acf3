// SPDX-License-Identifier: Apache-2.0
//
// All spans, each with a bitmap of its free slots, and how slots leave and return to one span. A bit is set
// while the slot is free and here.
// Called by: span_pool.hpp, with the lock of the span's shelf. Cost: a slot costs a multiplication and a bit;
// no user memory is touched.
#pragma once

#include <utility>

#include "base/random.hpp"
#include "base/slot_bits.hpp"
#include "box/pool/contract.hpp"
#include "box/pool/span.hpp"
#include "os/os.hpp"

namespace hz {

struct SpanTable {
  using Bits = SlotBits<std::uint64_t>;
  using Rows = Bits::Rows;

  static constexpr std::size_t kTables[] = {Bits::kSparseBytes, Bits::kWideBytes, Bits::kDenseBytes,
                                            sizeof(Span)};
  static constexpr std::size_t kBytesPerGranule = Bits::kBytesPerGranule + sizeof(Span);

  std::uintptr_t base = 0;
  Span* spans = nullptr;
  Bits bits;

  static constexpr auto words() {
    constexpr std::size_t at = offsetof(SpanTable, bits);
    return layout::Words<9>{layout::Word("pool.spans", offsetof(SpanTable, spans), sizeof(void*)),
                            {"bits.sparse", at + offsetof(Bits, sparse), sizeof(void*)},
                            {"bits.wide", at + offsetof(Bits, wide), sizeof(void*)},
                            {"bits.dense", at + offsetof(Bits, dense), sizeof(void*)},
                            {"bits.sparse_bytes", Bits::kSparseBytes},
                            {"bits.wide_bytes", Bits::kWideBytes},
                            {"bits.dense_bytes", Bits::kDenseBytes},
                            {"bits.last_wide", Bits::kLastWide},
                            {"bits.last_dense", Bits::kLastDense}};
  }

  void open(std::uintptr_t arena, std::uintptr_t table, std::size_t granules) {
    base = arena;
    spans = static_cast<Span*>(pointer(bits.open(table, granules)));
  }

  // --- addresses

  std::uint32_t row_of(std::uintptr_t address) const {
    return static_cast<std::uint32_t>((address - base) >> kGranuleShift);
  }
  std::uintptr_t at(std::uint32_t row) const {
    return row == 0 ? 0 : base + (std::uintptr_t{row} << kGranuleShift);
  }
  Rows bits_in(std::uint32_t row) const { return bits.of(spans[row].bin()); }

  struct Place {
    std::uint32_t row;
    unsigned index;
    std::uint64_t bit() const { return std::uint64_t{1} << (index % 64); }
  };
  HZ_INLINE Place place_of(Bin bin, const void* slot) const {
    return {row_of(address(slot)), slot_index(bin, offset(slot))};
  }
  static unsigned offset(const void* slot) { return static_cast<unsigned>(address(slot) & (kGranule - 1)); }

  // --- slots that return

  // Sets the bit of slot `index`, which lies in `word`. Returns false if it is set already, or if the slot
  // was never handed out.
  HZ_INLINE static bool set_bit(std::uint64_t& word, const Span& span, unsigned index) {
    if (index >= span.carved || (word >> index % 64 & 1) != 0) return false;
    word |= std::uint64_t{1} << index % 64;
    return true;
  }

  // --- slots that leave

  // Moves up to `want` free slots to `out`, the lowest last.
  void take_lowest(std::uint32_t row, Taken& taken, void** out, unsigned want) const {
    Span& span = spans[row];
    const std::size_t size = bin_size(span.bin());
    taken.slots = want < span.free ? want : span.free;
    span.free = static_cast<std::uint16_t>(span.free - taken.slots);
    const Rows rows = bits_in(row);
    unsigned left = taken.slots;
    for (unsigned w = 0; left != 0; ++w) {
      std::uint64_t& word = rows.word(row, w);
      for (; word != 0 && left != 0; word &= word - 1) {
        const unsigned index = w * 64 + static_cast<unsigned>(__builtin_ctzll(word));
        out[--left] = pointer(taken.span + index * size);
      }
    }
    if (HZ_UNLIKELY(span.absent != 0))
      for (unsigned i = 0; i < taken.slots; ++i) span.touched(address(out[i]) - taken.span, size);
  }
  // The same from random words and bits of the map, in a random order.
  void take_random(std::uint32_t row, Taken& taken, void** out, unsigned want) const {
    Span& span = spans[row];
    Random dice(os::random_word());  // for these slots alone
    const std::size_t size = bin_size(span.bin());
    const unsigned words = (bin_slots(span.bin()) + 63U) / 64;
    taken.slots = want < span.free ? want : span.free;
    span.free = static_cast<std::uint16_t>(span.free - taken.slots);
    const Rows rows = bits_in(row);
    unsigned w = dice.below(words);
    for (unsigned left = taken.slots; left != 0; w = w + 1 < words ? w + 1 : 0) {
      std::uint64_t& word = rows.word(row, w);
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

  // Hands out slots for the first time; they are not listed. Slots are carved up to the end of a page or of a
  // cache line: see carve_end().
  template <bool kByPages>
  static void carve(Span& span, Taken& taken, unsigned want) {
    const std::size_t size = bin_size(span.bin());
    const unsigned begin = span.carved;
    const unsigned end = carve_end<kByPages>(span, want);
    taken.begin = begin;
    taken.slots = end - begin;
    span.carved = static_cast<std::uint16_t>(end);
    taken.first_page = static_cast<unsigned>(begin * size >> kPageShift);
    taken.pages = static_cast<unsigned>((end - 1) * size >> kPageShift) + 1 - taken.first_page;
    taken.fresh = true;
    taken.zeroed = span.zeroed;
    span.touched(begin * size, (end - begin) * size);
  }
  // Makes every slot of a new span free.
  void carve_whole(std::uint32_t row) const {
    Span& span = spans[row];
    const unsigned slots = bin_slots(span.bin());
    span.carved = span.free = static_cast<std::uint16_t>(slots);
    span.absent = static_cast<std::uint16_t>(Span::tail_pages(span.bin()));
    const Rows rows = bits_in(row);
    for (unsigned w = 0; w * 64 < slots; ++w)
      rows.word(row, w) = ~std::uint64_t{0} >> (slots - w * 64 < 64 ? 64 - (slots - w * 64) : 0);
  }

  // --- the whole span

  // Returns a bit for each page that has memory and that no allocated slot reaches into.
  unsigned free_pages(std::uint32_t row) const {
    const Span& span = spans[row];
    const Bin bin = span.bin();
    const SlotIndex index(bin);
    const Rows rows = bits.of(bin);
    unsigned pages = 0;
    for (unsigned left = Span::kAllPages & ~unsigned{span.absent}; left != 0; left &= left - 1) {
      const unsigned begin = static_cast<unsigned>(__builtin_ctz(left)) << kPageShift;
      const unsigned last = index.of(begin + kPage - 1);
      if (are_free(rows, row, index.of(begin), last < span.carved ? last + 1 : span.carved))
        pages |= left & -left;
    }
    return pages;
  }
  unsigned count_free(std::uint32_t row) const {
    const unsigned words = (bin_slots(spans[row].bin()) + 63U) / 64;
    const Rows rows = bits_in(row);
    unsigned set = 0;
    for (unsigned w = 0; w < words; ++w)
      set += static_cast<unsigned>(__builtin_popcountll(rows.word(row, w)));
    return set;
  }
  // Ends an empty span: the next owner of its granules finds no bit.
  void end(std::uint32_t row) const {
    Span& span = spans[row];
    const unsigned words = (span.carved + 63U) / 64;
    const Rows rows = bits_in(row);
    for (unsigned w = 0; w < words; ++w) rows.word(row, w) = 0;
    span.clear();
  }
  void check(std::uint32_t row) const {
    if constexpr (kDebug) {
      const Span& span = spans[row];
      hz::check(count_free(row) == span.free && span.free <= span.carved &&
                span.carved <= bin_slots(span.bin()));
      hz::check(span.listed == (span.may_give() && !span.claimed));
    }
  }

 private:
  static bool are_free(const Rows& rows, std::uint32_t row, unsigned begin, unsigned end) {
    for (unsigned i = begin, next = 0; i < end; i = next) {
      next = (i / 64 + 1) * 64 < end ? (i / 64 + 1) * 64 : end;
      const std::uint64_t slots = ~std::uint64_t{0} >> (64 - (next - i)) << (i % 64);
      if ((rows.word(row, i / 64) & slots) != slots) return false;
    }
    return true;
  }

  // With kByPages, slots below a page are carved by whole pages, so that every slot which starts in a page
  // known to the route has been handed out. Larger ones one by one while the memory is untouched: the bins of
  // such lines write into the slots that they keep, and the user may never touch them.
  template <bool kByPages>
  static unsigned carve_end(const Span& span, unsigned want) {
    const std::size_t size = bin_size(span.bin());
    const unsigned slots = bin_slots(span.bin());
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
};

}  // namespace hz
