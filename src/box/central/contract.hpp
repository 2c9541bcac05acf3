// SPDX-License-Identifier: Apache-2.0
//
// Role: where do slots wait that no thread caches? Two kinds, because a slot waits either loose or at home:
// a central keeps batches of loose slots per (owner, class), quick to give and take; a pool keeps slots in their spans,
// knows which spans are empty, and is where double frees meet at the latest.
#pragma once

#include <concepts>

#include "base/size_classes.hpp"

namespace hz {

template <class C>
concept CentralContract = requires(typename C::Global& g, const typename C::Global& seen, unsigned owner, Bin bin,
                                   typename C::Bundle& bundle, unsigned want) {
  { C::give(g, owner, bin, bundle) } -> std::same_as<void>;              // what it has no room for stays in the bundle
  { C::take(g, owner, bin, want) } -> std::same_as<typename C::Bundle>;  // about `want`: whole batches
  { C::metadata_bytes(seen) } -> std::same_as<std::size_t>;
  { C::shrink(g) } -> std::same_as<void>;  // memory of its own that it does not need goes back
};

// Slots taken from one span. The route must learn of the pages [first_page, first_page + pages) before a slot is handed
// out: they were carved now, or the span has changed its owner.
struct Taken {
  std::uintptr_t span = 0;  // address of its first granule
  unsigned slots = 0;
  unsigned first_page = 0, pages = 0;
  std::size_t end = 0;  // of the slots ever carved, in bytes from the span's start
  bool fresh = false;   // carved now: no slot was ever handed out
  bool zeroed = false;  // and they read as zero
};

// What became of slots given back to their spans.
struct Given {
  unsigned kept = 0;
  unsigned emptied = 0;   // spans without a slot outside, no longer the pool's: to be retired
  unsigned rejected = 0;  // slots that were home already, or were never handed out
};

template <class P>
concept PoolContract = requires(typename P::Global& g, Bin bin, unsigned owner, void** slots, unsigned want,
                                std::uintptr_t span, std::uintptr_t* spans, bool zeroed) {
  { P::kTableBytesPerGranule } -> std::convertible_to<std::size_t>;
  { P::open(g, span, span, want) } -> std::same_as<void>;           // arena's base, table, granules
  { P::adopt(g, span, bin, owner, zeroed) } -> std::same_as<void>;  // a new span, nothing carved yet
  { P::take(g, bin, owner, slots, want) } -> std::same_as<Taken>;   // from one span; no slots if there is none
  { P::give(g, bin, slots, want, spans, slots) } -> std::same_as<Given>;
  { P::bin_at(g, span, span) } -> std::same_as<Bin>;  // span, address: of the slot there, 0 if none
};

}  // namespace hz
