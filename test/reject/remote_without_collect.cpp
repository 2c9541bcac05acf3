// SPDX-License-Identifier: Apache-2.0
//
// A remote box from which no owner gets its slots back.
#include "box/remote/contract.hpp"

using namespace hz;

struct Box {
  struct Global {};
  struct PerThread {};
  struct Sweep {
    Sweep(PerThread&, bool);
    bool next(Parcel&);
  };
  static constexpr unsigned kOwners = 4;
  static bool admit(PerThread&, unsigned, Bin);
  static void defer(PerThread&, unsigned, Bin, void*);
  static std::size_t outbox_bytes(const PerThread&);
  static void send(Global&, const Parcel&);
#ifdef HZ_COMPLETE
  static Chain collect(Global&, unsigned, Bin, unsigned);
#endif
};

static_assert(RemoteContract<Box>);
