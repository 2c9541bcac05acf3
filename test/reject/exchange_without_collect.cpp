// SPDX-License-Identifier: Apache-2.0
//
// An exchange from which no owner gets its slots back: it collects by a name that nobody calls.
#include "box/exchange/contract.hpp"

using namespace hz;

struct Slots {};

struct Box : WithoutOwners {
  using Bundle = Slots;
  struct Global {};
  static constexpr unsigned kOwners = 4;
  static void give(Global&, unsigned, Bin, Slots&);
  static void take(Global&, unsigned, Bin, unsigned, Slots&);
  static bool waits(const Global&, unsigned, Bin);
  static std::size_t metadata_bytes(const Global&);
  static void shrink(Global&, unsigned);
  static std::size_t defer(PerThread&, unsigned, Bin, void*);
#ifdef HZ_COMPLETE
  static unsigned collect(Global&, unsigned, Bin, unsigned, Slots&);
#else
  static void collect(Global&, unsigned, Bin, unsigned, Slots&);
#endif
};

static_assert(ExchangeContract<Box>);
