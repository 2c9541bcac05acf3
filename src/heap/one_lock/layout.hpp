// SPDX-License-Identifier: Apache-2.0
//
// The description of a heap of one lock for readers of the process from outside. It has the names of lines of
// boxes (heap/views/layout.hpp) for the same things. Part of every library by src/export/direct.cpp.
#pragma once

#include "base/layout.hpp"
#include "heap/one_lock/library.hpp"
#include "heap/samples/sampling.hpp"

namespace hz::one_lock {

template <class Line>
struct LayoutOf {
  static constexpr Layout make(const char* release) {
    Layout layout(Line::kName, release, kWords);
    layout.part[kCounts] = &Heap<Line>::counts;
    layout.part[kUsed] = &Account::used_bytes;
    layout.part[kDirty] = &Account::dirty_bytes;
    layout.part[kHugeBytes] = &Account::huge_bytes;
    layout.part[kHugeBlocks] = &Account::huge_blocks;
    layout.part[kRegions] = &Account::regions;
    layout.part[kPurges] = &Account::purges;
    layout.part[kPurged] = &Account::purged_bytes;
    layout.part[kBegun] = &Account::begun;
    layout.part[kEnded] = &Account::ended;
    layout.part[kLimits] = &Account::limits;
    layout.part[kTable] = &Table::leaves;
    layout.part[kExtension] = Extensions::begin_of_words();
    return layout;
  }

 private:
  using Word = layout::Word;

  enum : layout::Part {
    kCounts = 1,
    kUsed,
    kDirty,
    kHugeBytes,
    kHugeBlocks,
    kRegions,
    kPurges,
    kPurged,
    kBegun,
    kEnded,
    kLimits,
    kTable,
    kExtension,
    kOneRegion,  // a pattern, as is the next
    kSite
  };
  static_assert(kSite < Layout::kMostParts);

  static constexpr auto one(layout::Part part, const char* name, std::size_t bytes) {
    return layout::placed(layout::Words<1>{Word(name, 0, bytes)}, part, 0);
  }
  static constexpr auto kOfCounts =
      layout::Words<8>{Word("event.alloc_small", offsetof(Counts, allocs), sizeof(std::uint64_t)),
                       {"event.alloc_medium", offsetof(Counts, allocs) + 8, sizeof(std::uint64_t)},
                       {"event.alloc_large", offsetof(Counts, allocs) + 16, sizeof(std::uint64_t)},
                       {"event.free_small", offsetof(Counts, frees), sizeof(std::uint64_t)},
                       {"event.free_medium", offsetof(Counts, frees) + 8, sizeof(std::uint64_t)},
                       {"event.free_large", offsetof(Counts, frees) + 16, sizeof(std::uint64_t)},
                       {"retain.out", offsetof(Counts, live), sizeof(std::size_t)},
                       {"retain.peak", offsetof(Counts, peak), sizeof(std::size_t)}};
  static constexpr auto kNumbers = layout::Words<7>{
      Word("granule.bytes", kGranule), {"table.spans", unsigned(Table::Kind::kSpans)}, {"dirty.unit", 1},
      {"region.bytes", kRegion},       {"region.notes", Account::kTouchedNotes},       {"huge.notes", kPage},
      {"table.leaf", Table::kLeaf}};
  static constexpr auto kOfRegion =
      layout::Words<7>{Word("region.used", offsetof(Region, used), sizeof(std::uint64_t)),
                       {"region.span", offsetof(Region, spans), sizeof(Span), kGranules},
                       {"span.slot_bytes", offsetof(Span, slot_bytes), sizeof(std::uint32_t)},
                       {"span.slots", offsetof(Span, slots), sizeof(std::uint16_t)},
                       {"span.used", offsetof(Span, used), sizeof(std::uint16_t)},
                       {"span.carved", offsetof(Span, carved), sizeof(std::uint16_t)},
                       {"span.zeroed", offsetof(Span, zeroed), 1}};

  static constexpr auto kWords = layout::joined(
      kNumbers, layout::placed(kOfCounts, kCounts, 0), one(kUsed, "retain.spans", sizeof(std::size_t)),
      one(kDirty, "source.dirty", sizeof(std::size_t)), one(kHugeBytes, "huge.bytes", sizeof(std::size_t)),
      one(kHugeBlocks, "huge.blocks", sizeof(std::size_t)),
      one(kRegions, "region.count", sizeof(std::size_t)), one(kPurges, "event.purges", sizeof(std::uint64_t)),
      one(kPurged, "event.bytes_purged", sizeof(std::uint64_t)),
      one(kBegun, "event.spans_acquired", sizeof(std::uint64_t)),
      one(kEnded, "event.spans_retired", sizeof(std::uint64_t)),
      layout::placed(MemoryLimits::words(), kLimits, 0),
      layout::placed(layout::Words<1>{Word("table.leaves", 0, sizeof(void*), Table::kLeaves)}, kTable, 0),
      layout::placed(kOfRegion, kOneRegion, 0), Extensions::words(kExtension, kSite));
};

}  // namespace hz::one_lock
