// SPDX-License-Identifier: Apache-2.0
//
// A policy that does not say how much to fetch.
#include "box/policy/contract.hpp"

using namespace hz;

struct Box {
  static unsigned first_capacity(Bin);
  static unsigned max_capacity(Bin);
  static unsigned next_capacity(Bin, unsigned);
#ifdef HZ_COMPLETE
  static unsigned refill_batch(Bin, unsigned);
#endif
  static unsigned flush_batch(Bin, unsigned);
  static void set_learning(Learning);
  static bool watches();
  static void refilled(std::size_t, unsigned);
  static void span_acquired(Bin);
  static void span_retired(Bin);
  static const SizeWatch& watched();
};

static_assert(PolicyContract<Box>);
