// SPDX-License-Identifier: Apache-2.0
//
// Outbox of the scale lane: one array of (owner, class, slot) for all destinations, 8 bytes an entry, so a thread's
// state stays small however many owners there are. A sweep groups it in one pass through a small table: entries that
// meet their parcel join it, a parcel whose place is needed leaves early. Deferring costs one store and one compare.
#pragma once

#include "base/plain_word.hpp"
#include "box/remote/stash.hpp"

namespace hz {

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
  static Chain recall(PerThread&, Bin, unsigned /*want*/) { return {}; }
  static std::size_t outbox_bytes(const PerThread& t) { return t.bytes.peek(); }

  static void send(Global& g, unsigned sender, Parcel<Chain>& parcel) { Stash::send(g, sender, parcel); }
  static std::size_t metadata_bytes(const Global&) { return 0; }
  static void shrink(Global&, unsigned /*owners*/) {}
  static Chain collect(Global& g, unsigned owner, Bin bin, unsigned want) {
    return Stash::collect(g, owner, bin, want);
  }

  class Sweep {
   public:
    Sweep(PerThread& thread, bool /*everything: a full ring is swept whole*/) : thread_(thread) {}

    bool next(Parcel<Chain>& out) {
      while (thread_.count != 0) {
        const Entry entry = thread_.entries[--thread_.count];
        const unsigned owner = static_cast<unsigned>(entry >> kOwnerShift);
        const Bin bin = static_cast<Bin>(entry >> kBinShift & 0xFF);
        Parcel<Chain>& place = open_[(Bin{owner} * kBins + bin) % kPlaces];
        const bool evict = place.slots.count != 0 && (place.owner != owner || place.bin != bin || is_full(place));
        if (evict) out = place;
        if (evict || place.slots.count == 0) place = {owner, bin, {}};
        place.slots.push(static_cast<FreeSlot*>(pointer(entry & ((Entry{1} << kBinShift) - 1))));
        if (evict) return true;
      }
      thread_.bytes.set(0);
      while (at_ < kPlaces) {
        if (open_[at_++].slots.count == 0) continue;
        out = open_[at_ - 1];
        return true;
      }
      return false;
    }

   private:
    static constexpr unsigned kPlaces = 128;
    // Whoever collects takes whole parcels.
    static bool is_full(const Parcel<Chain>& p) {
      return p.slots.count >= Line::kParcelSlots || p.slots.count * bin_size(p.bin) >= Line::kParcelBytes;
    }

    PerThread& thread_;
    unsigned at_ = 0;
    Parcel<Chain> open_[kPlaces];
  };
};

}  // namespace hz
