// SPDX-License-Identifier: Apache-2.0
//
// A guard that does not look at free slots.
#include "box/guard/contract.hpp"

using namespace hz;

struct Box {
  static constexpr bool kMarks = true;
  struct PerThread {};
  static void join(PerThread&);
  static void on_alloc(void*);
  static bool may_free(const PerThread&, void*, Bin);
  static void on_free(const PerThread&, void*);
  static Fault diagnose(const PerThread&, void*, Bin);
#ifdef HZ_COMPLETE
  static bool intact(const PerThread&, const FreeSlot*);
#endif
  static void report(Fault, const void*, Bin, const char*);
};

static_assert(GuardContract<Box>);
