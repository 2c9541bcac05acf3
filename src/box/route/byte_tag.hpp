// SPDX-License-Identifier: Apache-2.0
//
// Route by byte tags: one byte per 64 KiB granule at the arena's start, the class of what starts there, 0 where nothing
// does. Used by hakozuna. No owner, so a slot belongs to whoever frees it; a cache line of tags covers 4 MiB of heap.
// A lookup is one subtraction, one compare and one load, and its answer is the bin as it stands: what has no bin gets
// one that admits nothing.
#pragma once

#include <atomic>

#include "base/plain_word.hpp"
#include "box/route/contract.hpp"

namespace hz {

struct ByteTag {
  using Tag = std::uint64_t;  // a byte of the table, widened: it serves as an index without a further instruction

  static constexpr bool kOwned = false;
  static constexpr std::size_t kTableBytesPerGranule = 1;
  static_assert(kHugeBin < 256);

  struct Global {
    // Before open() every address falls outside: base is out of any address's reach and there are no granules.
    OnceWord<std::uintptr_t> base{std::uintptr_t{1} << 63};
    OnceWord<std::uintptr_t> granules{0};
  };
  struct PerThread {};

  static void open(Global& g, std::uintptr_t base, std::size_t bytes) {
    g.base.set(base);
    g.granules.set(bytes >> kGranuleShift);
  }

  HZ_INLINE static Tag find(const Global& g, std::uintptr_t at) {
    const std::uintptr_t base = g.base.get();
    const std::uintptr_t granule = (at - base) >> kGranuleShift;
    if (HZ_UNLIKELY(granule >= g.granules.get())) return 0;
    return table(base)[granule].load(std::memory_order_relaxed);
  }
  HZ_INLINE static bool covers(const Global& g, std::uintptr_t at) {
    return (at - g.base.get()) >> kGranuleShift < g.granules.get();
  }

  static void bind(Global& g, std::uintptr_t at, std::size_t bytes, Bin bin, unsigned /*owner*/) {
    fill(g, at, bytes, static_cast<std::uint8_t>(bin));
  }
  static void clear(Global& g, std::uintptr_t at, std::size_t bytes) { fill(g, at, bytes, 0); }

  HZ_INLINE static Bin bin(Tag tag) { return tag; }
  HZ_INLINE static unsigned owner(Tag) { return 0; }

  static void join(PerThread&, unsigned /*owner*/) {}
  HZ_INLINE static Tag local_bin(Tag tag, const PerThread&) { return tag; }

 private:
  HZ_INLINE static std::atomic<std::uint8_t>* table(std::uintptr_t base) {
    return reinterpret_cast<std::atomic<std::uint8_t>*>(base);
  }

  // Any part of a granule stands for all of it. The block's hand-over to the user orders these stores. What is there
  // already is not written again: every free reads these lines.
  static void fill(Global& g, std::uintptr_t at, std::size_t bytes, std::uint8_t tag) {
    const std::uintptr_t base = g.base.get();
    const std::uintptr_t end = (at - base + bytes + kGranule - 1) >> kGranuleShift;
    for (std::uintptr_t granule = (at - base) >> kGranuleShift; granule < end; ++granule) {
      if (std::atomic<std::uint8_t>& known = table(base)[granule]; known.load(std::memory_order_relaxed) != tag)
        known.store(tag, std::memory_order_relaxed);
    }
  }
};

}  // namespace hz
