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
    Sweep(Global&, PerThread&, unsigned, bool);
    bool next(Parcel<Slots>&);
    void send(Parcel<Slots>&);
  };
  static constexpr unsigned kOwners = 4;
  static constexpr bool kDirect = false;
  static constexpr std::size_t kEarlyBytes = 0;
  static constexpr bool kLent = false;
  static bool admit(PerThread&, unsigned, Bin);
  static void defer(PerThread&, unsigned, Bin, void*);
  static bool is_latest(const PerThread&, const void*);
  static void recall(PerThread&, Bin, unsigned, Slots&);
  static std::size_t outbox_bytes(const PerThread&);
  static std::size_t metadata_bytes(const Global&);
  static void shrink(Global&, unsigned);
#ifdef HZ_COMPLETE
  static void collect(Global&, unsigned, Bin, unsigned, Slots&);
#endif
};

static_assert(RemoteContract<Box>);
