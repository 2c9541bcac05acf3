// SPDX-License-Identifier: Apache-2.0
//
// A region: 4 MiB of address space, and what is written down about it. Its first granule holds the notes;
// each of the other 63 is free, or belongs to a span: one granule cut into slots of one class, or a run of
// granules that is one slot. Free slots are zero bits of a bitmap, and nothing is ever written into free
// memory. Plain data under the lock of heap.hpp.
//
//   region   | notes | granule 1 | granule 2 | ...                                       | granule 63 |
//   notes    used: a bit per granule   dirty: a bit per granule   spans[64]   taken[64]: a bit per slot
#pragma once

#include "base/size_classes.hpp"
#include "box/guard/contract.hpp"
#include "heap/one_lock/table.hpp"

namespace hz::one_lock {

// Not inlined: it has several callers, and the code should be small.
HZ_SLOW inline std::size_t slot_size(Bin bin) { return size_of_bin(bin); }

inline constexpr unsigned kGranules = kRegion / kGranule;  // as many as a word has bits

// A member of a circular list whose head is a member, too.
struct Link {
  Link* next = this;
  Link* previous = this;

  bool alone() const { return next == this; }
  void insert(Link& after) {
    next = after.next;
    previous = &after;
    next->previous = after.next = this;
  }
  // Of a head: all members of another list go to the end of this one.
  void adopt(Link& other) {
    if (other.alone()) return;
    previous->next = other.next;
    other.next->previous = previous;
    other.previous->next = this;
    previous = other.previous;
    other.next = other.previous = &other;
  }
  void remove() {
    next->previous = previous;
    previous->next = next;
    next = previous = this;
  }
};

// What stands about a span, in the place of its first granule. It stays when the span is gone, until another
// one begins there: it tells a second free from a wild pointer.
struct Span : Link {             // of its class, while it has a free slot
  std::uint32_t slot_bytes = 0;  // 0: none ever began here
  std::uint16_t slots = 0, used = 0;
  std::uint16_t carved = 0;  // slots beyond were never handed out
  std::uint8_t bin = 0;
  std::uint8_t first_word = 0;  // of its bitmap; those before are full
  bool zeroed = false;          // slots beyond `carved` read as zero
};

// What lies at an address.
struct Found {
  Fault why;          // it is no live block; kNone: it is one
  Bin bin;            // 0: unknown
  std::size_t bytes;  // usable, of a slot, or of a live huge block
  Span* span;         // of a slot
  unsigned slot;

  static Found nothing(Fault why, Bin bin = 0) { return {why, bin, 0, nullptr, 0}; }
};

struct Region : Link {      // of the regions with free granules
  std::uint64_t used = 1;   // by granule; the notes are one
  std::uint64_t dirty = 0;  // of those not in use: it has pages
  // Of a granule that has pages: its first ones, which may have memory. The last of a span that was not used
  // to its end has fewer than all.
  std::uint8_t backed[kGranules];
  Span spans[kGranules];
  std::uint64_t taken[kGranules][kGranule / kMinAlign / 64];  // fresh memory is zero already

  static Region& of(std::uintptr_t at) { return *static_cast<Region*>(pointer(at & ~(kRegion - 1))); }
  void* at(unsigned granule, std::size_t offset) {
    return pointer(address(this) + (std::size_t{granule} << kGranuleShift) + offset);
  }
  static unsigned granule_of(std::uintptr_t at) {
    return static_cast<unsigned>(at >> kGranuleShift) & (kGranules - 1);
  }
  unsigned number_of(const Span& span) const { return static_cast<unsigned>(&span - spans); }
  static unsigned granules_of(const Span& span) {
    return static_cast<unsigned>((std::size_t{span.slot_bytes} * span.slots + kGranule - 1) >> kGranuleShift);
  }

  // Slots that are taken, by their bits.
  unsigned count(const Span& span) const {
    unsigned all = 0;
    for (const std::uint64_t word : taken[number_of(span)])
      all += static_cast<unsigned>(__builtin_popcountll(word));
    return all;
  }

  bool empty() const { return used == 1; }
  bool full() const { return used == ~std::uint64_t{0}; }

  static std::uint64_t mask(unsigned first, unsigned count) {
    return (~std::uint64_t{0} >> (kGranules - count)) << first;
  }
  // The first of `count` neighbours that are all in `set`, at a multiple of a power of two; 0 if there are
  // none.
  static unsigned find_run(std::uint64_t set, unsigned count, std::size_t multiple) {
    for (unsigned have = 1; have < count;) {  // a bit stands for `have` neighbours from there on
      const unsigned more = count - have < have ? count - have : have;
      set &= set >> more;
      have += more;
    }
    set &= ~std::uint64_t{0} / ((std::uint64_t{1} << multiple) - 1);
    return set == 0 ? 0 : static_cast<unsigned>(__builtin_ctzll(set));
  }
  // So many free granules; those that have pages first. 0 if there are none.
  unsigned find_free(unsigned count, std::size_t multiple) const {
    const unsigned found = find_run(dirty, count, multiple);
    return found != 0 ? found : find_run(~used, count, multiple);
  }

  // A span of the class begins in free granules.
  Span& begin(unsigned granule, Bin bin, bool zeroed) {
    Span& span = spans[granule];
    span.slot_bytes = static_cast<std::uint32_t>(slot_size(bin));
    span.slots = static_cast<std::uint16_t>(span.slot_bytes < kGranule ? kGranule / span.slot_bytes : 1);
    span.used = span.carved = 0;
    span.bin = static_cast<std::uint8_t>(bin);
    span.first_word = 0;
    span.zeroed = zeroed;
    return span;
  }

  // A slot of a span that has one; the lowest, so that what is live draws together.
  void* take(Span& span, bool& zeroed) {
    std::uint64_t* const words = taken[number_of(span)];
    while (~words[span.first_word] == 0) ++span.first_word;
    std::uint64_t& word = words[span.first_word];
    const unsigned slot = span.first_word * 64U + static_cast<unsigned>(__builtin_ctzll(~word));
    word |= word + 1;
    ++span.used;
    zeroed = span.zeroed && slot >= span.carved;
    if (slot >= span.carved) span.carved = static_cast<std::uint16_t>(slot + 1);
    return at(number_of(span), std::size_t{slot} * span.slot_bytes);
  }
  void put(Span& span, unsigned slot) {
    taken[number_of(span)][slot / 64] &= ~(std::uint64_t{1} << slot % 64);
    if (slot / 64 < span.first_word) span.first_word = static_cast<std::uint8_t>(slot / 64);
    --span.used;
  }

  // What lies at an address of this region.
  Found find(std::uintptr_t address_) {
    unsigned granule = granule_of(address_);
    const bool in_use = (used >> granule & 1) != 0;
    // Inside of a run its first granule counts; the notes of the others are of spans long gone.
    if (in_use && granule != 0) granule = first_of_run(granule);
    Span& span = spans[granule];
    if (granule == 0 || span.slot_bytes == 0) return Found::nothing(Fault::kNotAllocated);
    const std::size_t offset = address_ - address(at(granule, 0));
    const auto slot = static_cast<unsigned>(offset / span.slot_bytes);
    if (slot >= span.slots || slot >= span.carved) return Found::nothing(Fault::kNotAllocated);
    const Fault why = offset % span.slot_bytes != 0                       ? Fault::kInterior
                      : (taken[granule][slot / 64] >> slot % 64 & 1) == 0 ? Fault::kDoubleFree
                                                                          : Fault::kNone;
    return {why, span.bin, span.slot_bytes, &span, slot};
  }

 private:
  unsigned first_of_run(unsigned granule) const {
    for (unsigned first = granule; first != 0; --first) {
      const Span& span = spans[first];
      if (span.used != 0 && granule - first < granules_of(span)) return first;
    }
    return granule;
  }
};
static_assert(sizeof(Region) <= kGranule, "the notes fit into the first granule");
// The largest class of slots: the last one is as long as a region, and so it is no class here.
inline constexpr std::size_t kLongest = size_of_bin(kLastBin - 1);
static_assert(kLongest <= kRegion - kGranule, "a span fits behind the notes");

}  // namespace hz::one_lock
