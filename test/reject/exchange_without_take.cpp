// SPDX-License-Identifier: Apache-2.0
//
// An exchange that only takes in.
#include "box/exchange/contract.hpp"

using namespace hz;

struct Slots {};

struct Box : WithoutOwners {
  using Bundle = Slots;
  struct Global {};
  static void give(Global&, unsigned, Bin, Slots&);
#ifdef HZ_COMPLETE
  static void take(Global&, unsigned, Bin, unsigned, Slots&);
#endif
  static bool waits(const Global&, unsigned, Bin);
  static std::size_t metadata_bytes(const Global&);
  static void shrink(Global&, unsigned);
};

static_assert(ExchangeContract<Box>);
