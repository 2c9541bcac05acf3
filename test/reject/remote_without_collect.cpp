// SPDX-License-Identifier: Apache-2.0
//
// A remote box from which no owner gets its slots back.
#include "box/remote/contract.hpp"

using namespace hz;

struct Slots {};

struct Box {
  using Bundle = Slots;
  struct Global {};
  struct PerThread {};
  struct Sweep {
    Sweep(PerThread&, bool);
    bool next(Parcel<Slots>&);
  };
  static constexpr unsigned kOwners = 4;
  static constexpr bool kDirect = false;
  static bool admit(PerThread&, unsigned, Bin);
  static void defer(PerThread&, unsigned, Bin, void*);
  static std::size_t outbox_bytes(const PerThread&);
  static void send(Global&, const Parcel<Slots>&);
#ifdef HZ_COMPLETE
  static Slots collect(Global&, unsigned, Bin, unsigned);
#endif
};

static_assert(RemoteContract<Box>);
