// SPDX-License-Identifier: Apache-2.0
//
// A guard that does not look at free slots.
#include "box/guard/contract.hpp"

using namespace hz;

struct Box : WithoutPhases {
  static constexpr bool kMarks = true;
  static constexpr bool kProves = true;
  static constexpr bool kClaims = false;
  struct PerThread {};
  static void join(PerThread&);
  static bool on_alloc(void*, Bin);
  static bool may_free(const PerThread&, void*, Bin);
  static void on_free(const PerThread&, void*, Bin);
  static void* claim(const PerThread&, void*, Bin);
  static bool arrive(void*, Bin);
  static Fault diagnose(const PerThread&, void*, Bin);
#ifdef HZ_COMPLETE
  static bool intact(const PerThread&, const FreeSlot*);
#endif
  static void report(Fault, const void*, Bin, const char*, Seen);
};

static_assert(GuardContract<Box>);
