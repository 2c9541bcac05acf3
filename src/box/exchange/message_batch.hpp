// SPDX-License-Identifier: Apache-2.0
//
// Remote frees as messages. A thread notes them in a batch; a drain groups the batch by owner and class, and
// one compare-and-swap hands each group, packed in a magazine, to its owner's inbox. On a miss the owner
// adopts its inbox whole, with one exchange for all classes, and unpacks what the miss wants. What a thread
// cannot keep waits in a depot. Used by hz4. Nothing is written into the slots; deferring costs three stores
// and two compares; there is no bound on owners.
//
//   inbox.fresh    magazines of any class, sent and not looked at
//   adopted[bin]   magazines of one class that the owner has taken in; under `lock`, read as a hint without
//                  it
#pragma once

#include "base/plain_word.hpp"
#include "base/slot_array.hpp"
#include "box/exchange/magazine_depot.hpp"
#include "box/exchange/stealing.hpp"
#include "os/growing_table.hpp"

namespace hz {

template <class Line>
struct MessageBatch : MagazineDepot<Line> {
  using Depot = MagazineDepot<Line>;
  using typename Depot::Empty, typename Depot::Magazine;

  static constexpr unsigned kOwners = Line::kOwners;
  static constexpr unsigned kEntries = Line::kBatchEntries;

  struct Inbox {
    alignas(64) SharedList fresh;
    alignas(64) os::Lock lock;
    std::atomic<Magazine*> adopted[kBins];
  };
  struct Global : Depot::Global {
    os::GrowingTable<Inbox, kOwners> inboxes;
    Stealing stealing;
  };

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

  static bool waits(Global& g, unsigned owner, Bin bin) {
    return arrived(g, owner, bin) || Depot::waits(g, owner, bin);
  }
  static unsigned steal(Global& g, auto& owners, Bin bin, unsigned want, bool anybodys, SlotArray& out) {
    Depot::steal(g, owners, bin, want, anybodys, out);
    if (out.count != 0) return 0;  // none of these had been deferred
    g.stealing.ask(owners, anybodys, [&](unsigned owner) { return collect(g, owner, bin, want, out) != 0; });
    return out.count;
  }
  static unsigned collect(Global& g, unsigned owner, Bin bin, unsigned want, SlotArray& out) {
    if (want == 0 || !arrived(g, owner, bin)) return 0;
    Inbox* inbox = g.inboxes.find(owner);
    Magazine* emptied = nullptr;
    {
      const os::Guarded hold(inbox->lock);
      if (inbox->adopted[bin].load(std::memory_order_relaxed) == nullptr) adopt(*inbox);
      emptied = unpack(*inbox, bin, want, out);
    }
    Empty::give_list(emptied);
    return out.count;
  }

  // In a child that another thread's change was cut off in: what an owner had taken in is lost, if it was
  // that.
  static void make_whole(Global& g, unsigned owners) {
    Depot::make_whole(g, owners);
    for (unsigned owner = 0; owner < owners; ++owner) {
      Inbox* inbox = g.inboxes.find(owner);
      if (inbox == nullptr || !inbox->lock.reset()) continue;
      for (std::atomic<Magazine*>& magazines : inbox->adopted)
        magazines.store(nullptr, std::memory_order_relaxed);
    }
  }
  static std::size_t metadata_bytes(const Global& g) {
    return Depot::metadata_bytes(g) + g.inboxes.chunk_bytes();
  }

  // Entries of a place are chained through a small hash table. A parcel takes them out and fills a magazine
  // with them, which is the message; where there is no memory for one, a parcel is a single slot, and cannot
  // be sent.
  class Drain {
   public:
    Drain(Global& g, PerThread& thread, unsigned /*sender*/, bool /*everything: a batch is drained whole*/)
        : g_(g), thread_(thread) {
      for (unsigned i = 0; i < thread.count; ++i) {
        Link& head = heads_[row_of(thread.places[i])];
        thread.links[i] = head;
        head = static_cast<Link>(i + 1);
      }
    }
    ~Drain() { Empty::give(magazine_); }
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

    bool next(Parcel<SlotArray>& out) {
      for (; row_ < kRows; ++row_) {
        if (heads_[row_] == 0) continue;
        take_place(thread_.places[heads_[row_] - 1], out);
        return true;
      }
      thread_.count = 0;
      thread_.bytes.set(0);
      __builtin_memset(thread_.of_bin, 0, sizeof thread_.of_bin);
      return false;
    }

    void send(Parcel<SlotArray>& parcel) {
      Inbox* inbox = g_.inboxes.reach(parcel.owner);
      if (inbox == nullptr || magazine_ == nullptr) return;
      magazine_->bin = static_cast<std::uint32_t>(parcel.bin);
      magazine_->count = parcel.slots.count;
      auto* link = reinterpret_cast<FreeSlot*>(magazine_);
      inbox->fresh.push({link, link, 1}, sizeof(FreeSlot));
      magazine_ = nullptr;
      parcel.slots.count = 0;
    }

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

    Global& g_;
    PerThread& thread_;
    unsigned row_ = 0;
    Magazine* magazine_ = nullptr;  // what the parcel lies in
    void* single_ = nullptr;
    Link heads_[kRows] = {};
  };

 private:
  static bool arrived(Global& g, unsigned owner, Bin bin) {
    const Inbox* inbox = g.inboxes.find(owner);
    return inbox != nullptr &&
           (!inbox->fresh.empty() || inbox->adopted[bin].load(std::memory_order_relaxed) != nullptr);
  }
  static void adopt(Inbox& inbox) {
    auto* magazine = reinterpret_cast<Magazine*>(inbox.fresh.take(~0U, sizeof(FreeSlot)).first);
    while (magazine != nullptr) {
      Magazine* next = magazine->following();
      std::atomic<Magazine*>& adopted = inbox.adopted[magazine->bin];
      magazine->follow_with(adopted.load(std::memory_order_relaxed));
      adopted.store(magazine, std::memory_order_relaxed);
      magazine = next;
    }
  }

  // At most `want` slots; the magazines that it emptied.
  static Magazine* unpack(Inbox& inbox, Bin bin, unsigned want, SlotArray& out) {
    Magazine* emptied = nullptr;
    Magazine* magazine = inbox.adopted[bin].load(std::memory_order_relaxed);
    while (magazine != nullptr && out.count < want) {
      out.draw(want, magazine->slots, magazine->count);
      if (magazine->count != 0) break;
      Magazine* next = magazine->following();
      magazine->follow_with(emptied);
      emptied = magazine;
      magazine = next;
    }
    inbox.adopted[bin].store(magazine, std::memory_order_relaxed);
    return emptied;
  }
};

}  // namespace hz
