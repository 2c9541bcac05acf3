// SPDX-License-Identifier: Apache-2.0
//
// Outbox of the scale lane: one array of (owner, class, slot) for all destinations, 8 bytes an entry, so a
// thread's state stays small however many owners there are. A drain groups it in one pass through a small
// table: entries that meet their parcel join it, a parcel whose place is needed leaves early. Deferring costs
// one store and one compare.
#pragma once

#include <array>

#include "base/free_list.hpp"
#include "base/plain_word.hpp"
#include "box/exchange/contract.hpp"

namespace hz {

// The number of slots of a full parcel of a class: a collecting thread takes whole parcels. A spare class
// counts with the least size that it can have, so that its parcels may hold up to twice kParcelBytes.
template <class Line, class Number>
consteval std::array<Number, kBins> full_parcels() {
  std::array<Number, kBins> full{};
  for (Bin bin = 1; bin < kBins; ++bin) {
    const std::size_t slots = (Line::kParcelBytes + bin_size(bin) - 1) / bin_size(bin);
    full[bin] = static_cast<Number>(slots < Line::kParcelSlots ? slots : Line::kParcelSlots);
  }
  return full;
}

template <class Line>
struct SparseRing {
  static constexpr unsigned kOwners = Line::kOwners;
  static constexpr unsigned kEntries = Line::kOutboxEntries;

  // slot in the low 48 bits, class and owner above it
  using Entry = std::uint64_t;
  static constexpr unsigned kBinShift = 48, kOwnerShift = 56;
  static_assert(kOwners <= 256 && kBins <= 256);

  struct PerThread {
    unsigned count = 0;
    OwnerWord<std::size_t> bytes;
    Entry entries[kEntries] = {};
  };

  static constexpr auto words() {
    return layout::Words<1>{layout::Word("thread.outbox", offsetof(PerThread, bytes), sizeof(std::size_t))};
  }

  HZ_INLINE static bool admit(PerThread& t, unsigned /*owner*/, Bin /*bin*/) {
    return t.count != kEntries && t.bytes.peek() < Line::kOutboxBytes;
  }

  HZ_INLINE static void defer(PerThread& t, unsigned owner, Bin bin, void* slot) {
    t.entries[t.count] = Entry{owner} << kOwnerShift | Entry{bin} << kBinShift | address(slot);
    // The entry before its count: a fork may copy the thread's state between the two.
    std::atomic_signal_fence(std::memory_order_release);
    ++t.count;
    t.bytes.add(bin_size(bin));
  }

  static std::size_t outbox_bytes(const PerThread& t) { return t.bytes.peek(); }

  // An open parcel needs no more room than an entry: its slots are linked in a ring, and its entry names the
  // last of them. So it lies where an entry was that has left, and a drain asks little of the stack.
  class Drain {
   public:
    Drain(PerThread& thread, bool /*everything: a full ring is drained whole*/)
        : thread_(thread), left_(thread.count), end_(thread.entries + thread.count) {}

    bool next(Parcel<Chain>& out) {
      for (unsigned left = left_; left != 0;) {
        const Entry entry = thread_.entries[--left];
        Parcelled& parcel = parcels_[place_of(entry)];
        if (parcel == 0) {
          parcel = static_cast<Parcelled>(++opened_);
          begin(parcel, entry);
        } else if ((open(parcel) ^ entry) >> kBinShift == 0 && count_of(parcel) < kFull[bin_of(entry)]) {
          join(parcel, entry);
        } else {
          close(parcel, out);
          begin(parcel, entry);
          left_ = left;
          return true;
        }
      }
      left_ = 0;
      if (opened_ != 0) {
        const Entry entry = *(end_ - opened_--);
        return close(parcels_[place_of(entry)], out), true;
      }
      thread_.count = 0;
      thread_.bytes.set(0);
      return false;
    }

   private:
    static constexpr unsigned kPlaces = 128;
    // A parcel's number, from 1, and above it how many slots it has. Not of bytes: a store to one might
    // change anything, and all would be read again.
    using Parcelled = std::uint16_t;
    static constexpr unsigned kNumberBits = 8;
    static_assert(kPlaces < (1U << kNumberBits) && Line::kParcelSlots < (1U << (16 - kNumberBits)));

    static constexpr auto kFull = full_parcels<Line, Parcelled>();

    static unsigned place_of(Entry entry) {
      return (owner_of(entry) * kBins + static_cast<unsigned>(bin_of(entry))) % kPlaces;
    }
    static unsigned owner_of(Entry entry) { return static_cast<unsigned>(entry >> kOwnerShift); }
    static Bin bin_of(Entry entry) { return entry >> kBinShift & 0xFF; }
    static FreeSlot* slot_of(Entry entry) {
      return static_cast<FreeSlot*>(pointer(entry & ((Entry{1} << kBinShift) - 1)));
    }

    // As many entries have left as parcels were opened, so there is room.
    static unsigned number_of(Parcelled parcel) { return parcel & ((1U << kNumberBits) - 1); }
    static unsigned count_of(Parcelled parcel) { return parcel >> kNumberBits; }
    Entry& open(Parcelled parcel) const { return *(end_ - number_of(parcel)); }
    void begin(Parcelled& parcel, Entry entry) {
      open(parcel) = entry;
      slot_of(entry)->next = slot_of(entry);
      parcel = static_cast<Parcelled>(number_of(parcel) | 1U << kNumberBits);
    }
    void join(Parcelled& parcel, Entry entry) {
      FreeSlot* last = slot_of(open(parcel));
      FreeSlot* slot = slot_of(entry);
      slot->next = last->next;
      last->next = slot;
      parcel = static_cast<Parcelled>(parcel + (1U << kNumberBits));
    }
    void close(Parcelled parcel, Parcel<Chain>& out) {
      const Entry entry = open(parcel);
      FreeSlot* last = slot_of(entry);
      out = {owner_of(entry), bin_of(entry), {last->next, last, count_of(parcel)}};
    }
    PerThread& thread_;
    unsigned left_, opened_ = 0;
    Entry* end_;
    Parcelled parcels_[kPlaces] = {};  // the one that is open at a place; 0: none
  };
};

}  // namespace hz
