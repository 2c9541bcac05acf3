// SPDX-License-Identifier: Apache-2.0
//
// Says what lies at an address: the one answer for all slow paths, which switch over its kinds. (The hot
// paths compare tags.) Called with any address; costs the route's look-up, and where that finds nothing the
// addresses of extensions.
#pragma once

#include "heap/state/state.hpp"

namespace hz {

enum class Kind : std::uint8_t {
  kNothing,    // nothing of ours was handed out there
  kExtension,  // outside of the arena, an extension's: with a block or without
  kSlot,       // a granule, or page, of slots
  kRun,        // a granule of a run: of a huge block, or of a sample of the heap profile
  kInHeap,     // a chunk of a first-class heap
};

template <class Line>
struct Block {
  using Route = typename Line::Route;
  using Tag = typename Route::Tag;

  Tag tag;
  Bin bin;
  Kind kind;
};

// Returns the kind that a bin stands for. Requires: a tag that is not 0.
HZ_INLINE constexpr Kind kind_of_bin(Bin bin) {
  return bin <= kLastBin ? Kind::kSlot : bin == kHugeBin ? Kind::kRun : Kind::kInHeap;
}

template <class Line>
HZ_INLINE Block<Line> classify(const void* at) {
  using Route = typename Line::Route;
  const typename Route::Tag tag = Route::find(State<Line>::global.route, address(at));
  const Bin bin = Route::bin(tag);
  if (HZ_LIKELY(tag != 0)) return {tag, bin, kind_of_bin(bin)};
  return {tag, bin, Extensions::has(at) ? Kind::kExtension : Kind::kNothing};
}

}  // namespace hz
