// SPDX-License-Identifier: Apache-2.0
//
// A front whose slots cannot be taken out again.
#include "box/front/contract.hpp"

using namespace hz;

struct Slots {};

struct Box {
  using Bundle = Slots;
  using List = void*;
  static constexpr bool kInBand = false;
  static constexpr bool kAnyBin = false;
  struct Store {};
  struct PerThread {};
  static unsigned most(Bin);
  static void join(PerThread&, Store&);
  static void* pop(PerThread&, Bin);
  static bool admit(PerThread&, Bin, const void*);
  static void turn_away(PerThread&, Bin);
  static void put(PerThread&, Bin, void*);
  static bool is_latest(const PerThread&, Bin, const void*);
  static Slots space(PerThread&, Bin, unsigned);
  static void fill(PerThread&, Bin, const Slots&);
  static void drained(PerThread&, Bin, unsigned);
#ifdef HZ_COMPLETE
  static Slots drain(PerThread&, Bin, unsigned);
#endif
  static unsigned count(const PerThread&, Bin);
  static unsigned capacity(const PerThread&, Bin);
  static void check(const PerThread&, Bin, bool);
  static unsigned admissible(unsigned);
  static void set_capacity(PerThread&, Bin, unsigned);
  static void leave(PerThread&);
  static std::uint16_t fingerprint(const PerThread&, Bin);
  static std::uint64_t signature(const PerThread&);
  static List detach(PerThread&, Bin);
  static bool accounts_for(const PerThread&, Bin, unsigned);
  static bool keep_unresolved(PerThread&, Bin, List);
  static void cut_off(PerThread&);
  static void reconcile(PerThread&);
};

static_assert(FrontContract<Box>);
