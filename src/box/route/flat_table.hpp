// SPDX-License-Identifier: Apache-2.0
//
// What the routes by flat table share: a table of one word per piece of 1 << kShift bytes, which lies at the
// start of the arena that it describes, and the tag that names an owner and a bin. A look-up is one
// subtraction, one compare and one load; the compare keeps it inside of what of the table can be read.
#pragma once

#include <atomic>

#include "base/plain_word.hpp"
#include "box/route/contract.hpp"

namespace hz {

template <unsigned kShift, class Word>
struct FlatTable {
  static constexpr std::uintptr_t kPiece = std::uintptr_t{1} << kShift;
  static constexpr std::size_t kTableBytesPerGranule = (kGranule >> kShift) * sizeof(Word);

  struct Global {
    // Before open() every address falls outside: base is out of any address's reach and there are no pieces.
    OnceWord<std::uintptr_t> base{std::uintptr_t{1} << 63};
    OnceWord<std::uintptr_t> pieces{0};
  };

  static void open(Global& g, std::uintptr_t base, std::size_t bytes) {
    g.base.set(base);
    g.pieces.set(bytes >> kShift);
  }
  // The arena has grown. A thread can ask about an address in there only after this.
  static void cover(Global& g, std::size_t bytes) { g.pieces.set(bytes >> kShift); }
  HZ_INLINE static bool covers(const Global& g, std::uintptr_t at) {
    return (at - g.base.get()) >> kShift < g.pieces.get();
  }

 protected:
  // Any address: what `read` makes of its word, 0 outside of the arena.
  template <class Read>
  HZ_INLINE static std::uint64_t look(const Global& g, std::uintptr_t at, Read read) {
    const std::uintptr_t base = g.base.get();
    const std::uintptr_t piece = (at - base) >> kShift;
    if (HZ_UNLIKELY(piece >= g.pieces.get())) return 0;
    return read(reinterpret_cast<const std::atomic<Word>*>(base)[piece].load(std::memory_order_relaxed));
  }

  // visit(word, start of its piece), for every piece that has a part in the range. What a visitor stores is
  // ordered by the block's hand-over to the user.
  template <class Visit>
  static void for_each(Global& g, std::uintptr_t at, std::size_t bytes, Visit visit) {
    const std::uintptr_t base = g.base.get();
    auto* word = reinterpret_cast<std::atomic<Word>*>(base) + ((at - base) >> kShift);
    for (std::uintptr_t piece = at & ~(kPiece - 1); piece < at + bytes; piece += kPiece)
      visit(*word++, piece);
  }
};

// tag == (owner + 1) << 8 | bin: "is it mine, and of which class" is one exclusive-or and one compare.
struct OwnerAndBin {
  using Tag = std::uint64_t;  // widened: it serves as an index without a further instruction

  static constexpr bool kOwned = true;
  static constexpr unsigned kBinBits = 8;
  static_assert(kHeapBin < (1U << kBinBits));

  // That a tag of so many bits can name: owner + 1 is not 0 and fits.
  static constexpr unsigned most_owners(unsigned tag_bits) {
    return tag_bits - kBinBits >= 32 ? ~0U : (1U << (tag_bits - kBinBits)) - 1;
  }

  struct PerThread {
    Tag mine = ~Tag{0};  // matches no tag until the thread joins an owner
  };

  HZ_INLINE static Tag tag(unsigned owner, Bin bin) { return (Tag{owner} + 1) << kBinBits | bin; }
  HZ_INLINE static Bin bin(Tag tag) { return static_cast<Bin>(tag & ((1U << kBinBits) - 1)); }
  HZ_INLINE static unsigned owner(Tag tag) { return static_cast<unsigned>(tag >> kBinBits) - 1; }

  static void join(PerThread& thread, unsigned owner) { thread.mine = tag(owner, 0); }
  HZ_INLINE static Tag local_bin(Tag tag, const PerThread& thread) { return tag ^ thread.mine; }
};

}  // namespace hz
