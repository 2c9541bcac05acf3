// SPDX-License-Identifier: Apache-2.0
//
// No owners: a slot belongs to the thread that frees it, so there are no strangers, no outbox and no parcels. Used by
// hakozuna, whose depot carries slots from threads that free to threads that allocate. Costs nothing.
#pragma once

#include "base/slot_array.hpp"
#include "box/remote/contract.hpp"

namespace hz {

struct Ownerless {
  using Bundle = SlotArray;
  static constexpr unsigned kOwners = 1;
  static constexpr bool kDirect = false;
  static constexpr std::size_t kEarlyBytes = 0;
  static constexpr bool kLent = false;

  struct Global {};
  struct PerThread {};

  HZ_INLINE static bool admit(PerThread&, unsigned /*owner*/, Bin) { return false; }
  HZ_INLINE static void defer(PerThread&, unsigned /*owner*/, Bin, void* /*slot*/) {}
  HZ_INLINE static bool is_latest(const PerThread&, const void* /*slot*/) { return false; }
  static void recall(PerThread&, Bin, unsigned /*want*/, SlotArray&) {}
  static std::size_t outbox_bytes(const PerThread&) { return 0; }
  static std::size_t metadata_bytes(const Global&) { return 0; }
  static void shrink(Global&, unsigned /*owners*/) {}
  static void collect(Global&, unsigned /*owner*/, Bin, unsigned /*want*/, SlotArray&) {}

  class Sweep {
   public:
    Sweep(Global&, PerThread&, unsigned /*sender*/, bool /*everything*/) {}
    bool next(Parcel<SlotArray>&) { return false; }
    void send(Parcel<SlotArray>&) {}
  };
};

}  // namespace hz
