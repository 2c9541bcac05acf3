// SPDX-License-Identifier: Apache-2.0
//
// A central that only takes in.
#include "box/central/contract.hpp"

using namespace hz;

struct Box {
  struct Global {};
  static void give(Global&, unsigned, Bin, const Chain&);
#ifdef HZ_COMPLETE
  static Chain take(Global&, unsigned, Bin, unsigned);
#endif
};

static_assert(CentralContract<Box>);
