// SPDX-License-Identifier: Apache-2.0
//
// Route by flat tags, one word per piece of 1 << kShift bytes. As page tags (PTAG32): a flat table at the arena's
// start, one 32-bit word per 4 KiB page: (owner + 1) << 8 | bin, 0 where no slot starts that was ever handed out. Used
// by hz3. A lookup is one subtraction, one compare and one load; "is it mine, and of which class" is one exclusive-or
// and one compare. 64 bytes of table per granule.
#pragma once

#include <atomic>

#include "base/plain_word.hpp"
#include "box/route/contract.hpp"

namespace hz {

template <unsigned kShift, class Word>
struct FlatTags {
  using Tag = std::uint64_t;  // a word of the table, widened: it serves as an index without a further instruction

  static constexpr bool kOwned = true;
  static constexpr std::size_t kTableBytesPerGranule = (kGranule >> kShift) * sizeof(Word);
  static constexpr unsigned kBinBits = 8;
  static_assert(kHugeBin < (1U << kBinBits));

  struct Global {
    // Before open() every address falls outside: base is out of any address's reach and there are no pieces.
    OnceWord<std::uintptr_t> base{std::uintptr_t{1} << 63};
    OnceWord<std::uintptr_t> pieces{0};
  };
  struct PerThread {
    Tag mine = ~Tag{0};  // matches no tag until the thread joins an owner
  };

  static void open(Global& g, std::uintptr_t base, std::size_t bytes) {
    g.base.set(base);
    g.pieces.set(bytes >> kShift);
  }

  HZ_INLINE static Tag find(const Global& g, std::uintptr_t at) {
    const std::uintptr_t base = g.base.get();
    const std::uintptr_t piece = (at - base) >> kShift;
    if (HZ_UNLIKELY(piece >= g.pieces.get())) return 0;
    return table(base)[piece].load(std::memory_order_relaxed);
  }
  HZ_INLINE static bool covers(const Global& g, std::uintptr_t at) {
    return (at - g.base.get()) >> kShift < g.pieces.get();
  }

  static void bind(Global& g, std::uintptr_t at, std::size_t bytes, Bin bin, unsigned owner) {
    fill(g, at, bytes, (static_cast<Tag>(owner) + 1) << kBinBits | bin);
  }
  static void clear(Global& g, std::uintptr_t at, std::size_t bytes) { fill(g, at, bytes, 0); }

  HZ_INLINE static Bin bin(Tag tag) { return static_cast<Bin>(tag & ((1U << kBinBits) - 1)); }
  HZ_INLINE static unsigned owner(Tag tag) { return static_cast<unsigned>(tag >> kBinBits) - 1; }

  static void join(PerThread& thread, unsigned owner) { thread.mine = (static_cast<Tag>(owner) + 1) << kBinBits; }
  HZ_INLINE static Tag local_bin(Tag tag, const PerThread& thread) { return tag ^ thread.mine; }

 private:
  HZ_INLINE static std::atomic<Word>* table(std::uintptr_t base) { return reinterpret_cast<std::atomic<Word>*>(base); }

  // A last piece in part counts whole. The block's hand-over to the user orders these stores.
  static void fill(Global& g, std::uintptr_t at, std::size_t bytes, Tag tag) {
    const std::uintptr_t base = g.base.get();
    const std::uintptr_t first = (at - base) >> kShift;
    const std::uintptr_t end = (at - base + bytes + (std::uintptr_t{1} << kShift) - 1) >> kShift;
    for (std::uintptr_t piece = first; piece < end; ++piece)
      table(base)[piece].store(static_cast<Word>(tag), std::memory_order_relaxed);
  }
};

using PageTag = FlatTags<kPageShift, std::uint32_t>;

}  // namespace hz
