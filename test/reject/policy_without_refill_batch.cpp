// SPDX-License-Identifier: Apache-2.0
//
// A policy that does not say how much to fetch.
#include "box/policy/contract.hpp"

using namespace hz;

struct Box {
  struct PerThread {};
  static unsigned first_capacity(Bin);
  static unsigned max_capacity(Bin);
  static unsigned next_capacity(Bin, unsigned);
#ifdef HZ_COMPLETE
  static unsigned refill_batch(Bin, unsigned, bool);
#endif
  static unsigned flush_batch(Bin, unsigned, bool);
  static bool goes_on(PerThread&, Bin, bool);
  static std::size_t budget(const PerThread&, const Allowance&);
  static Denial denied(PerThread&);
  static void denied_often(PerThread&, std::uint64_t);
  static Bin next_to_give(PerThread&);
  static Bin next_to_look_at(PerThread&);
  static bool is_unused(PerThread&, Bin, std::uint16_t);
  static bool is_over(const PerThread&, const Allowance&, std::size_t);
  static void set_learning(Learning, const Cap&, unsigned);
  static Cap cap();
  static void change(const Cap&, const Cap&);
  static bool watches();
  static bool notes_size(const PerThread&);
  static void refilled(PerThread&, Bin, std::size_t, unsigned);
  static void span_acquired(PerThread&, Bin);
  static void span_retired(Bin);
  static bool is_timed(PerThread&);
  static bool crossed(PerThread&, std::uint64_t, std::uint64_t);
  static Bounds bounds(std::uint64_t);
  static void holds(std::uint64_t, const Held&);
  static unsigned purger_rest(unsigned, std::uint64_t);
  static unsigned looks();
  static const SizeWatch& watched();
  static Held peak();
  static void begin_process();
  static Decisions decisions();
  static bool fix(TextView);
};

static_assert(PolicyContract<Box>);
