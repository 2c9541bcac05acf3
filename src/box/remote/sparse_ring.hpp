// SPDX-License-Identifier: Apache-2.0
//
// Outbox of the scale lane: one array of (owner, class, slot) for all destinations, 8 bytes an entry, so a thread's
// state stays small however many owners there are. A sweep groups it in one pass through a small table: entries that
// meet their parcel join it, a parcel whose place is needed leaves early. Deferring costs one store and one compare.
#pragma once

#include <array>

#include "base/plain_word.hpp"
#include "box/remote/stash.hpp"

namespace hz {

// Of how many slots a parcel of a class is full: whoever collects takes whole parcels.
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
  using Stash = OwnerStash<Line::kOwners>;
  using Global = typename Stash::Global;
  using Bundle = Chain;

  static constexpr unsigned kOwners = Line::kOwners;
  static constexpr bool kDirect = false;
  static constexpr std::size_t kEarlyBytes = 0;
  static constexpr bool kLent = false;
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

  HZ_INLINE static bool is_latest(const PerThread&, const void* /*slot*/) { return false; }  // its mark tells
  static void recall(PerThread&, Bin, unsigned /*want*/, Chain&) {}
  static std::size_t outbox_bytes(const PerThread& t) { return t.bytes.peek(); }

  static std::size_t metadata_bytes(const Global&) { return 0; }
  static void shrink(Global&, unsigned /*owners*/) {}
  static void collect(Global& g, unsigned owner, Bin bin, unsigned want, Chain& out) {
    out = Stash::collect(g, owner, bin, want);
  }

  // An open parcel needs no more room than an entry: its slots are linked in a ring, and its entry names the last of
  // them. So it lies where an entry was that has left, and a sweep asks little of the stack.
  class Sweep {
   public:
    Sweep(Global& g, PerThread& thread, unsigned /*sender*/, bool /*everything: a full ring is swept whole*/)
        : g_(g), thread_(thread), left_(thread.count), end_(thread.entries + thread.count) {}

    bool next(Parcel<Chain>& out) {
      for (unsigned left = left_; left != 0;) {
        const Entry entry = thread_.entries[--left];
        Number& number = numbers_[place_of(entry)];
        if (number == 0) {
          number = static_cast<Number>(++opened_);
          begin(number, entry);
        } else if ((open(number) ^ entry) >> kBinShift == 0 && counts_[number - 1] < kFull[bin_of(entry)]) {
          join(number, entry);
        } else {
          close(number, out);
          begin(number, entry);
          left_ = left;
          return true;
        }
      }
      left_ = 0;
      if (opened_ != 0) return close(opened_--, out), true;
      thread_.count = 0;
      thread_.bytes.set(0);
      return false;
    }
    void send(Parcel<Chain>& parcel) { Stash::send(g_, parcel); }

   private:
    static constexpr unsigned kPlaces = 128;
    // Not of bytes: a store to one might change anything, and all would be read again.
    using Number = std::uint16_t;

    static constexpr auto kFull = full_parcels<Line, Number>();

    static unsigned place_of(Entry entry) {
      return (owner_of(entry) * kBins + static_cast<unsigned>(bin_of(entry))) % kPlaces;
    }
    static unsigned owner_of(Entry entry) { return static_cast<unsigned>(entry >> kOwnerShift); }
    static Bin bin_of(Entry entry) { return entry >> kBinShift & 0xFF; }
    static FreeSlot* slot_of(Entry entry) {
      return static_cast<FreeSlot*>(pointer(entry & ((Entry{1} << kBinShift) - 1)));
    }

    // As many entries have left as parcels were opened, so there is room.
    Entry& open(unsigned number) const { return *(end_ - number); }
    void begin(unsigned number, Entry entry) {
      open(number) = entry;
      slot_of(entry)->next = slot_of(entry);
      counts_[number - 1] = 1;
    }
    void join(unsigned number, Entry entry) {
      FreeSlot* last = slot_of(open(number));
      FreeSlot* slot = slot_of(entry);
      slot->next = last->next;
      last->next = slot;
      ++counts_[number - 1];
    }
    void close(unsigned number, Parcel<Chain>& out) {
      const Entry entry = open(number);
      FreeSlot* last = slot_of(entry);
      out = {owner_of(entry), bin_of(entry), {last->next, last, counts_[number - 1]}};
    }
    Global& g_;
    PerThread& thread_;
    unsigned left_, opened_ = 0;
    Entry* end_;
    Number numbers_[kPlaces] = {};  // of the parcel that is open at a place; 0: none
    Number counts_[kPlaces];        // slots of a parcel
  };
};

}  // namespace hz
