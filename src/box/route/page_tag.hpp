// SPDX-License-Identifier: Apache-2.0
//
// Route by flat tags: each word of the table is the tag itself, owner and bin, 0 where no slot starts that
// was ever handed out. As page tags (PTAG32): one 32-bit word per 4 KiB page, 64 bytes of table per granule.
// Used by hz3.
#pragma once

#include "box/route/flat_table.hpp"

namespace hz {

template <unsigned kShift, class Word>
struct FlatTags : FlatTable<kShift, Word>, OwnerAndBin {
  using Table = FlatTable<kShift, Word>;
  using typename Table::Global;
  static constexpr unsigned kMostOwners = most_owners(8 * sizeof(Word));
  static constexpr bool kByPages = kShift == kPageShift;

  HZ_INLINE static Tag find(const Global& g, std::uintptr_t at) {
    return Table::look(g, at, [](Tag tag) { return tag; });
  }

  // A last piece in part counts whole.
  static void bind(Global& g, std::uintptr_t at, std::size_t bytes, Bin bin, unsigned owner) {
    fill(g, at, bytes, tag(owner, bin));
  }
  static void clear(Global& g, std::uintptr_t at, std::size_t bytes) { fill(g, at, bytes, 0); }

 private:
  static void fill(Global& g, std::uintptr_t at, std::size_t bytes, Tag tag) {
    Table::for_each(g, at, bytes, [tag](std::atomic<Word>& word, std::uintptr_t) {
      word.store(static_cast<Word>(tag), std::memory_order_relaxed);
    });
  }
};

using PageTag = FlatTags<kPageShift, std::uint32_t>;

}  // namespace hz
