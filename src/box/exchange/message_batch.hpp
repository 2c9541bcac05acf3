// SPDX-License-Identifier: Apache-2.0
//
// Remote frees as messages: of a thread's batch, one compare-and-swap hands each parcel, in its magazine, to
// its owner's inbox. On a miss the owner adopts its inbox whole, with one exchange for all classes, and
// unpacks what the miss wants. Used by hz4. There is no bound on owners.
//
//   inbox.fresh    magazines of any class, sent and not looked at
//   adopted[bin]   magazines of one class that the owner has taken in; under `lock`, read as a hint without
//                  it
#pragma once

#include "box/exchange/remote_batch.hpp"
#include "box/exchange/stealing.hpp"
#include "os/growing_table.hpp"

namespace hz {

template <class Line>
struct MessageBatch : RemoteBatch<Line> {
  using Batch = RemoteBatch<Line>;
  using Depot = MagazineDepot<Line>;
  using Batch::kOwners;
  using typename Depot::Empty, typename Depot::Magazine, typename Batch::PerThread;

  struct Inbox {
    alignas(64) SharedList fresh;
    alignas(64) os::LockOf<os::Rank::kWaiting> lock;
    std::atomic<Magazine*> adopted[kBins];
  };
  struct Global : Depot::Global {
    os::GrowingTable<Inbox, kOwners> inboxes;
    Stealing stealing;
  };

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

  class Drain : public Batch::Groups {
   public:
    Drain(Global& g, PerThread& thread, unsigned /*sender*/, bool /*everything: a batch is drained whole*/)
        : Batch::Groups(thread), g_(g) {}

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
    using Batch::Groups::magazine_;
    Global& g_;
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
