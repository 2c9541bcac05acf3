// SPDX-License-Identifier: Apache-2.0
//
// A front whose slots cannot be taken out again.
#include "box/front/contract.hpp"

using namespace hz;

struct Box {
  struct PerThread {};
  static void* pop(PerThread&, Bin);
  static bool admit(PerThread&, Bin);
  static void turn_away(PerThread&, Bin);
  static void put(PerThread&, Bin, void*);
  static void fill(PerThread&, Bin, const Chain&);
#ifdef HZ_COMPLETE
  static Chain drain(PerThread&, Bin, unsigned);
#endif
  static unsigned count(const PerThread&, Bin);
  static unsigned capacity(const PerThread&, Bin);
  static void recount(PerThread&);
  static void check(const PerThread&, Bin);
  static void set_capacity(PerThread&, Bin, unsigned);
};

static_assert(FrontContract<Box>);
