// SPDX-License-Identifier: Apache-2.0
//
// Route by page headers: masking an address gives its 64 KiB page, and each page has a header of one word that names
// owner and class, and how far slots of it were handed out. Used by hz4. The headers of all pages stand side by side at
// the arena's start and not in the pages: one cache line of them serves 512 KiB of heap, a block may fill its page or
// begin at its start, and no user memory is ever read as a header. The arena's range is compared first, so that a
// pointer that is not ours is never followed.
//
//   header == (owner + 1) << 24 | bin << 16 | reach     reach: the last byte of the page where a known slot may start
//   header == 0                                         nothing here was ever handed out
//
// A lookup is one subtraction, one load and two compares. Eight bytes of headers a page.
#pragma once

#include <atomic>

#include "base/plain_word.hpp"
#include "box/route/contract.hpp"

namespace hz {

struct PageHeader {
  using Header = std::uint64_t;
  using Tag = std::uint64_t;  // a header without its reach: (owner + 1) << 8 | bin

  static constexpr bool kOwned = true;
  static constexpr std::size_t kTableBytesPerGranule = sizeof(Header);
  static constexpr unsigned kReachBits = kGranuleShift, kBinBits = 8;
  static_assert(kHugeBin < (1U << kBinBits));

  struct Global {
    // Before open() every address falls outside: base is out of any address's reach and there are no pages.
    OnceWord<std::uintptr_t> base{std::uintptr_t{1} << 63};
    OnceWord<std::uintptr_t> granules{0};
  };
  struct PerThread {
    Tag mine = ~Tag{0};  // matches no tag until the thread joins an owner
  };

  static void open(Global& g, std::uintptr_t base, std::size_t bytes) {
    g.base.set(base);
    g.granules.set(bytes >> kGranuleShift);
  }

  HZ_INLINE static Tag find(const Global& g, std::uintptr_t at) {
    const std::uintptr_t base = g.base.get();
    const std::uintptr_t granule = (at - base) >> kGranuleShift;
    if (HZ_UNLIKELY(granule >= g.granules.get())) return 0;
    const Header header = headers(base)[granule].load(std::memory_order_relaxed);
    if (HZ_UNLIKELY(static_cast<std::uint16_t>(header) < static_cast<std::uint16_t>(at))) return 0;
    return header >> kReachBits;
  }
  HZ_INLINE static bool covers(const Global& g, std::uintptr_t at) {
    return (at - g.base.get()) >> kGranuleShift < g.granules.get();
  }

  // Slots become known from a page's start on, never with a gap. Two threads may bind parts of one page at once, in any
  // order: the reach only grows, and the owner is either's.
  static void bind(Global& g, std::uintptr_t at, std::size_t bytes, Bin bin, unsigned owner) {
    const std::uintptr_t base = g.base.get();
    const std::uintptr_t last = at + bytes - 1;
    for (std::uintptr_t page = at & ~(kGranule - 1); page <= last; page += kGranule) {
      const std::size_t reach = last - page < kGranule ? last - page : kGranule - 1;
      const Tag tag = (Tag{owner} + 1) << kBinBits | bin;
      extend(headers(base)[(page - base) >> kGranuleShift], tag << kReachBits, reach);
    }
  }
  static void clear(Global& g, std::uintptr_t at, std::size_t bytes) {
    const std::uintptr_t base = g.base.get();
    for (std::uintptr_t page = at; page < at + bytes; page += kGranule)
      headers(base)[(page - base) >> kGranuleShift].store(0, std::memory_order_relaxed);
  }

  HZ_INLINE static Bin bin(Tag tag) { return static_cast<Bin>(tag & ((1U << kBinBits) - 1)); }
  HZ_INLINE static unsigned owner(Tag tag) { return static_cast<unsigned>(tag >> kBinBits) - 1; }

  static void join(PerThread& thread, unsigned owner) { thread.mine = (Tag{owner} + 1) << kBinBits; }
  HZ_INLINE static Tag local_bin(Tag tag, const PerThread& thread) { return tag ^ thread.mine; }

 private:
  // The block's hand-over to the user orders it.
  static void extend(std::atomic<Header>& header, Header named, std::size_t reach) {
    Header seen = header.load(std::memory_order_relaxed);
    Header next = 0;
    do {
      const std::size_t known = seen & ((Header{1} << kReachBits) - 1);
      next = named | (known > reach ? known : reach);
    } while (!header.compare_exchange_weak(seen, next, std::memory_order_relaxed));
  }

  HZ_INLINE static std::atomic<Header>* headers(std::uintptr_t base) {
    return reinterpret_cast<std::atomic<Header>*>(base);
  }
};

}  // namespace hz
