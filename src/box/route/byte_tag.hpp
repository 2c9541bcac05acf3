// SPDX-License-Identifier: Apache-2.0
//
// Route by byte tags: one byte per 64 KiB granule at the arena's start, the class of what starts there, 0
// where nothing does. Used by hakozuna. No owner, so a slot belongs to the thread that frees it; a cache line
// of tags covers 4 MiB of heap. The answer of a look-up is the bin as it stands: what has no bin gets one
// that admits nothing.
#pragma once

#include "box/route/flat_table.hpp"

namespace hz {

struct ByteTag : FlatTable<kGranuleShift, std::uint8_t> {
  using Tag =
      std::uint64_t;  // a byte of the table, widened: it serves as an index without a further instruction

  static constexpr bool kOwned = false;
  static constexpr unsigned kMostOwners = 0;
  static constexpr bool kByPages = false;
  static_assert(kHeapBin < 256);

  struct PerThread {};

  HZ_INLINE static Tag find(const Global& g, std::uintptr_t at) {
    return look(g, at, [](Tag tag) { return tag; });
  }

  // Any part of a granule stands for all of it.
  static void bind(Global& g, std::uintptr_t at, std::size_t bytes, Bin bin, unsigned /*owner*/) {
    fill(g, at, bytes, static_cast<std::uint8_t>(bin));
  }
  static void clear(Global& g, std::uintptr_t at, std::size_t bytes) { fill(g, at, bytes, 0); }

  HZ_INLINE static Bin bin(Tag tag) { return tag; }
  HZ_INLINE static unsigned owner(Tag) { return 0; }

  static void join(PerThread&, unsigned /*owner*/) {}
  HZ_INLINE static Tag local_bin(Tag tag, const PerThread&) { return tag; }

 private:
  // What is there already is not written again: every free reads these lines.
  static void fill(Global& g, std::uintptr_t at, std::size_t bytes, std::uint8_t tag) {
    for_each(g, at, bytes, [tag](std::atomic<std::uint8_t>& known, std::uintptr_t) {
      if (known.load(std::memory_order_relaxed) != tag) known.store(tag, std::memory_order_relaxed);
    });
  }
};

}  // namespace hz
