// SPDX-License-Identifier: Apache-2.0
//
// A central that only takes in.
#include "box/central/contract.hpp"

using namespace hz;

struct Slots {};

struct Box {
  using Bundle = Slots;
  struct Global {};
  static constexpr unsigned kMostOwners = 1;
  static void give(Global&, unsigned, Bin, Slots&);
#ifdef HZ_COMPLETE
  static void take(Global&, unsigned, Bin, unsigned, Slots&);
#endif
  static std::size_t metadata_bytes(const Global&);
  static void shrink(Global&);
};

static_assert(CentralContract<Box>);
