// SPDX-License-Identifier: Apache-2.0
//
// A retain box that does not answer.
#include "box/retain/contract.hpp"

using namespace hz;

struct Box {
  struct Global {};
  struct PerThread {};
  static void set(Global&, const RetainSettings&);
  static RetainSettings settings(const Global&);
  static void bound(Global&, unsigned, std::size_t, bool);
  static void set_purger(Global&, bool);
  static bool has_purger(const Global&);
  static void slots_out(PerThread&, std::size_t);
  static void slots_returned(PerThread&, std::size_t);
  static void span_used(PerThread&, std::size_t);
  static void span_retired(PerThread&, std::size_t);
  static void waiting_added(PerThread&, std::size_t);
  static void waiting_taken(PerThread&, std::size_t);
  static void bins_grown(PerThread&, std::size_t);
  static void bins_shrunk(PerThread&, std::size_t);
  static void enter(const Global&, PerThread&, unsigned);
  static void leave(Global&, PerThread&, unsigned);
  static void fold(Global&, PerThread&);
  static void look(const Global&, PerThread&);
  static void rest(Global&, bool);
  static bool at_rest(const Global&);
#ifdef HZ_COMPLETE
  static bool may_wait(const Global&, const PerThread&, std::size_t);
#endif
  static bool must_go(const Global&, const PerThread&);
  static std::size_t dirty_limit(const Global&, const PerThread&);
  static std::size_t dirty_target(const Global&, const PerThread&);
  static std::size_t paid_for(const Global&);
  static void purged(Global&, std::size_t);
  static void purged_before(Global&, std::size_t);
  static Unneeded unneeded(Global&, std::size_t, bool);
  static bool was_always_small(const Global&);
  static bool has_slack(const Global&, const PerThread&, std::size_t, unsigned);
  static std::size_t little(const Global&);
  static bool sparse(const Global&, std::size_t);
  static bool may_spread(const PerThread&, std::size_t);
  static std::size_t live_bytes(const PerThread&);
  static std::size_t out_bytes(const Global&);
  static std::size_t idle_bytes(const Global&);
  static std::size_t span_bytes(const Global&);
  static std::size_t waiting_bytes(const Global&);
  static std::size_t peak_bytes(const Global&);
};

static_assert(RetainContract<Box>);
