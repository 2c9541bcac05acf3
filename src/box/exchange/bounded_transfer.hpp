// SPDX-License-Identifier: Apache-2.0
//
// Remote frees move ownership. A slot that a thread frees for others waits in its batch, where its own
// refills find it first. A drain puts the rest into the transfer cache, which belongs to no thread. A thread
// that takes a slot there has it until the slot is freed again. The transfer cache is the depot, of which the
// line bounds each processor's shelf of each class (kShelfBytes). A slot without room stays with the sender,
// which returns it to its span before it goes on. This back-pressure costs the thread that fills the cache,
// not one that does not empty it. Used by hz6. No queue belongs to an owner, so none has to be emptied when a
// thread ends. Source of the idea: tcmalloc's transfer cache.
#pragma once

#include "box/exchange/remote_batch.hpp"

namespace hz {

template <class Line>
struct BoundedTransfer : RemoteBatch<Line> {
  using Batch = RemoteBatch<Line>;
  using Depot = MagazineDepot<Line>;
  using typename Batch::PerThread, typename Depot::Global, typename Depot::Magazine;
  static_assert(Line::kShelfBytes != 0, "the transfer cache has a bound");

  static constexpr bool kAnybodys = true;

  class Drain : public Batch::Groups {
   public:
    Drain(Global& g, PerThread& thread, unsigned /*sender*/, bool /*everything: a batch is drained whole*/)
        : Batch::Groups(thread), g_(g) {}

    // A full magazine as it is.
    void send(Parcel<SlotArray>& parcel) {
      if (parcel.slots.count == Magazine::kSlots && magazine_ != nullptr) {
        magazine_->count = parcel.slots.count;
        if (Depot::give(g_, parcel.bin, magazine_)) {
          magazine_ = nullptr;
          parcel.slots.count = 0;
        }
      }
      Depot::give(g_, parcel.owner, parcel.bin, parcel.slots);
    }

   private:
    using Batch::Groups::magazine_;
    Global& g_;
  };
};

}  // namespace hz
