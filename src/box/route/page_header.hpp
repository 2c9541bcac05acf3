// SPDX-License-Identifier: Apache-2.0
//
// Route by page headers: masking an address gives its 64 KiB page, and each page has a header of one word
// that names owner and class, and how far slots of it were handed out. Used by hz4. The headers of all pages
// stand side by side at the arena's start and not in the pages: one cache line of them serves 512 KiB of
// heap, a block may fill its page or begin at its start, and no user memory is ever read as a header. The
// arena's range is compared first, so that a pointer that is not ours is never followed.
//
//   header == tag << 16 | reach     reach: the last byte of the page where a known slot may start
//   header == 0                     nothing here was ever handed out
//
// A look-up has one compare more than that of other flat tables. Eight bytes of headers a page.
#pragma once

#include "box/route/flat_table.hpp"

namespace hz {

struct PageHeader : FlatTable<kGranuleShift, std::uint64_t>, OwnerAndBin {
  using Header = std::uint64_t;
  static constexpr unsigned kReachBits = kGranuleShift;
  static constexpr unsigned kMostOwners = most_owners(64 - kReachBits);
  static constexpr bool kByPages = false;

  HZ_INLINE static Tag find(const Global& g, std::uintptr_t at) {
    return look(g, at, [at](Header header) {
      if (HZ_UNLIKELY(static_cast<std::uint16_t>(header) < static_cast<std::uint16_t>(at))) return Tag{0};
      return header >> kReachBits;
    });
  }

  // Slots become known from a page's start on, never with a gap. Two threads may bind parts of one page at
  // once, in any order: the reach only grows, and the owner is either's.
  static void bind(Global& g, std::uintptr_t at, std::size_t bytes, Bin bin, unsigned owner) {
    const std::uintptr_t last = at + bytes - 1;
    for_each(g, at, bytes, [&](std::atomic<Header>& header, std::uintptr_t page) {
      const std::size_t reach = last - page < kGranule ? last - page : kGranule - 1;
      extend(header, tag(owner, bin) << kReachBits, reach);
    });
  }
  static void clear(Global& g, std::uintptr_t at, std::size_t bytes) {
    for_each(g, at, bytes,
             [](std::atomic<Header>& header, std::uintptr_t) { header.store(0, std::memory_order_relaxed); });
  }

 private:
  static void extend(std::atomic<Header>& header, Header named, std::size_t reach) {
    Header seen = header.load(std::memory_order_relaxed);
    Header next = 0;
    do {
      const std::size_t known = seen & ((Header{1} << kReachBits) - 1);
      next = named | (known > reach ? known : reach);
    } while (!header.compare_exchange_weak(seen, next, std::memory_order_relaxed));
  }
};

}  // namespace hz
