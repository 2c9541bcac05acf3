// SPDX-License-Identifier: Apache-2.0
//
// A retain box that does not answer.
#include "box/retain/contract.hpp"

using namespace hz;

struct Box {
  struct Global {};
  static void set(Global&, const RetainSettings&);
  static void attend(Global&, bool);
  static bool attended(const Global&);
  static void slots_out(Global&, std::size_t);
  static void slots_home(Global&, std::size_t, std::size_t);
  static void span_used(Global&, std::size_t);
  static void span_retired(Global&, std::size_t);
  static void loose_added(Global&, std::size_t);
  static void loose_taken(Global&, std::size_t);
  static void bins_grown(Global&, std::size_t);
  static void bins_shrunk(Global&, std::size_t);
  static void rest(Global&, bool);
  static bool at_rest(const Global&);
#ifdef HZ_COMPLETE
  static bool may_wait(const Global&, std::size_t);
#endif
  static bool must_go(const Global&);
  static std::size_t dirty_limit(const Global&);
  static std::size_t dirty_target(const Global&);
  static bool may_purge(const Global&);
  static void purged(Global&, std::size_t);
  static Unneeded unneeded(Global&, std::size_t, bool);
  static bool emptied(const Global&);
  static std::size_t out_bytes(const Global&);
  static std::size_t loose_bytes(const Global&);
  static std::size_t peak_bytes(const Global&);
};

static_assert(RetainContract<Box>);
