// SPDX-License-Identifier: Apache-2.0
//
// Two lock-free lists per (owner, class): what strangers sent, filled with one compare-and-swap a parcel, and
// what the owner's threads could not keep; each is emptied with one exchange. Used by hz3 and hz3-fast, each
// with one of two outboxes (sparse_ring, dense_bank). Lists are kept apart by owner because a slot that
// wanders to another owner's thread is a remote free ever after; memory changes owners span by span, in the
// pool. The lists carry these lines: without them every remote free ends in a lock.
#pragma once

#include "base/free_list.hpp"
#include "box/exchange/contract.hpp"
#include "box/exchange/stealing.hpp"

namespace hz {

template <class Line, class Outbox>
struct OwnerLists : WithoutOwners {
  using Bundle = Chain;
  using PerThread = typename Outbox::PerThread;
  static constexpr unsigned kOwners = Line::kOwners;
  static constexpr bool kByOwner = true;
  static constexpr auto words() { return Outbox::words(); }

  struct Global {
    struct alignas(64) Shelf {
      SharedList of_bin[kBins];
    };
    Shelf sent[kOwners], kept[kOwners];
    Stealing stealing;
  };

  static void give(Global& g, unsigned owner, Bin bin, Chain& chain) {
    g.kept[owner].of_bin[bin].push(chain, bin_size(bin));
    chain = {};
  }
  static void take(Global& g, unsigned owner, Bin bin, unsigned want, Chain& out) {
    out = g.kept[owner].of_bin[bin].take(want, bin_size(bin));
  }
  static bool waits(const Global& g, unsigned owner, Bin bin) {
    return !g.sent[owner].of_bin[bin].empty() || !g.kept[owner].of_bin[bin].empty();
  }
  static unsigned steal(Global& g, auto& owners, Bin bin, unsigned want, bool /*anybodys*/, Chain& out) {
    unsigned sent = 0;
    g.stealing.ask(owners, false, [&](unsigned owner) {
      sent = collect(g, owner, bin, want, out);
      if (out.count == 0) take(g, owner, bin, want, out);
      return out.count != 0;
    });
    return sent;
  }
  static std::size_t metadata_bytes(const Global&) { return 0; }
  static void shrink(Global&, unsigned /*owners*/) {}

  HZ_INLINE static bool admit(PerThread& t, unsigned owner, Bin bin) { return Outbox::admit(t, owner, bin); }
  HZ_INLINE static std::size_t defer(PerThread& t, unsigned owner, Bin bin, void* slot) {
    Outbox::defer(t, owner, bin, slot);
    return 0;
  }
  static std::size_t outbox_bytes(const PerThread& t) { return Outbox::outbox_bytes(t); }

  class Drain : public Outbox::Drain {
   public:
    Drain(Global& g, PerThread& thread, unsigned /*sender*/, bool everything)
        : Outbox::Drain(thread, everything), g_(g) {}
    void send(Parcel<Chain>& parcel) {
      g_.sent[parcel.owner].of_bin[parcel.bin].push(parcel.slots, bin_size(parcel.bin));
      parcel.slots = {};
    }

   private:
    Global& g_;
  };
  static unsigned collect(Global& g, unsigned owner, Bin bin, unsigned want, Chain& out) {
    out = g.sent[owner].of_bin[bin].take(want, bin_size(bin));
    return out.count;
  }
};

}  // namespace hz
