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
  static void check(const PerThread&, Bin);
  static void set_capacity(PerThread&, Bin, unsigned);
  static std::uint64_t signature(const PerThread&);
  static FreeSlot* seize(PerThread&, Bin);
  static bool accounts_for(const PerThread&, Bin, unsigned);
  static bool dispute(PerThread&, Bin, FreeSlot*);
  static void reconcile(PerThread&);
};

static_assert(FrontContract<Box>);
