// SPDX-License-Identifier: Apache-2.0
//
// An outbox that notes what a thread frees for others, any owner and any class, and groups it when it is
// drained: a parcel is what one owner is to have of one class, packed in a magazine. What a thread cannot
// keep waits in a depot. A part of the exchanges of hz4 and hz6, which differ in where a parcel goes. Nothing
// is written into the slots; deferring costs three stores and two compares.
#pragma once

#include "base/bytes.hpp"
#include "base/plain_word.hpp"
#include "base/slot_array.hpp"
#include "box/exchange/magazine_depot.hpp"

namespace hz {

template <class Line>
struct RemoteBatch : MagazineDepot<Line> {
  using Depot = MagazineDepot<Line>;
  using typename Depot::Empty, typename Depot::Magazine;

  static constexpr unsigned kOwners = Line::kOwners;
  static constexpr unsigned kEntries = Line::kBatchEntries;

  // Owner and class of an entry.
  using Place = std::uint32_t;
  static constexpr unsigned kBinBits = 8;
  static constexpr Place kBinMask = (1U << kBinBits) - 1;
  static_assert(kOwners <= (1U << (32 - kBinBits)) && kBins <= (1U << kBinBits));

  struct PerThread {
    unsigned count = 0;
    OwnerWord<std::size_t> bytes;
    std::uint16_t of_bin[kBins] = {};  // entries of a class; too few after a fork, so only a hint
    void* slots[kEntries] = {};
    Place places[kEntries] = {};
    std::uint16_t links[kEntries] = {};  // of a drain: here they are on no stack
  };

  static constexpr auto words() {
    return layout::Words<1>{layout::Word("thread.outbox", offsetof(PerThread, bytes), sizeof(std::size_t))};
  }

  HZ_INLINE static bool admit(PerThread& t, unsigned /*owner*/, Bin /*bin*/) {
    return t.count != kEntries && t.bytes.peek() < Line::kBatchBytes;
  }

  HZ_INLINE static std::size_t defer(PerThread& t, unsigned owner, Bin bin, void* slot) {
    t.slots[t.count] = slot;
    t.places[t.count] = static_cast<Place>(owner << kBinBits | bin);
    // The entry before its count: a fork may copy the thread's state between the two.
    std::atomic_signal_fence(std::memory_order_release);
    ++t.count;
    t.bytes.add(bin_size(bin));
    ++t.of_bin[bin];
    return 0;
  }

  HZ_INLINE static bool is_latest(const PerThread& t, const void* slot) {
    return t.count != 0 && t.slots[t.count - 1] == slot;
  }

  // What this thread frees for others serves itself first, the newest before the older ones: its lines are in
  // this core's cache, and there is no message to pay for.
  static void recall(PerThread& t, Bin bin, unsigned want, SlotArray& out) {
    if (t.of_bin[bin] == 0) return;
    for (unsigned at = t.count; at-- > 0 && out.count < want;) {
      if ((t.places[at] & kBinMask) != bin) continue;
      out.push(t.slots[at]);
      --t.count;
      t.slots[at] = t.slots[t.count];
      t.places[at] = t.places[t.count];
    }
    t.bytes.add(-(out.count * bin_size(bin)));
    t.of_bin[bin] = static_cast<std::uint16_t>(out.count < want ? 0 : t.of_bin[bin] - out.count);
  }

  static std::size_t outbox_bytes(const PerThread& t) { return t.bytes.peek(); }
  static bool outbox_due(const PerThread& t) { return t.bytes.peek() >= Line::kBatchBytes; }

  // Entries of a place are chained through a small hash table. A parcel takes them out and fills a magazine
  // with them, which is the message; where there is no memory for one, a parcel is a single slot, and cannot
  // be sent.
  class Groups {
   public:
    explicit Groups(PerThread& thread) : thread_(thread) {
      for (unsigned i = 0; i < thread.count; ++i) {
        Link& head = heads_[row_of(thread.places[i])];
        thread.links[i] = head;
        head = static_cast<Link>(i + 1);
      }
    }
    ~Groups() { Empty::give(magazine_); }
    Groups(const Groups&) = delete;
    Groups& operator=(const Groups&) = delete;

    bool next(Parcel<SlotArray>& out) {
      for (; row_ < kRows; ++row_) {
        if (heads_[row_] == 0) continue;
        take_place(thread_.places[heads_[row_] - 1], out);
        return true;
      }
      thread_.count = 0;
      thread_.bytes.set(0);
      clear_bytes(thread_.of_bin, sizeof thread_.of_bin);
      return false;
    }

   protected:
    Magazine* magazine_ = nullptr;  // what the parcel lies in; null: in none

   private:
    using Link = std::uint16_t;  // an entry's number + 1
    static constexpr unsigned kRows = 128;
    static_assert(kEntries < (1U << 16));

    static unsigned row_of(Place place) { return (place + (place >> kBinBits) * kBins) % kRows; }

    void take_place(Place place, Parcel<SlotArray>& out) {
      out.owner = place >> kBinBits;
      out.bin = place & kBinMask;
      if (magazine_ == nullptr) magazine_ = Empty::take();
      void** const slots = magazine_ != nullptr ? magazine_->slots : &single_;
      const unsigned most = magazine_ != nullptr ? Magazine::kSlots : 1;
      unsigned count = 0;
      for (Link* link = &heads_[row_]; *link != 0 && count < most;) {
        const unsigned entry = *link - 1U;
        if (thread_.places[entry] == place) {
          slots[count++] = thread_.slots[entry];
          *link = thread_.links[entry];
        } else {
          link = &thread_.links[entry];
        }
      }
      out.slots = {slots, count};
    }

    PerThread& thread_;
    unsigned row_ = 0;
    void* single_ = nullptr;
    Link heads_[kRows] = {};
  };
};

}  // namespace hz
