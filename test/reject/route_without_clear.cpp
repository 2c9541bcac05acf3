// SPDX-License-Identifier: Apache-2.0
//
// A route that cannot forget.
#include "box/route/contract.hpp"

using namespace hz;

struct Box {
  using Tag = unsigned;
  static constexpr bool kOwned = true, kByPages = false;
  static constexpr unsigned kMostOwners = 1;
  struct Global {};
  struct PerThread {};
  static constexpr std::size_t kTableBytesPerGranule = 1;
  static void open(Global&, std::uintptr_t, std::size_t);
  static Tag find(const Global&, std::uintptr_t);
  static void cover(Global&, std::size_t);
  static bool covers(const Global&, std::uintptr_t);
  static void bind(Global&, std::uintptr_t, std::size_t, Bin, unsigned);
#ifdef HZ_COMPLETE
  static void clear(Global&, std::uintptr_t, std::size_t);
#endif
  static Bin bin(Tag);
  static unsigned owner(Tag);
  static void join(PerThread&, unsigned);
  static Tag local_bin(Tag, const PerThread&);
};

static_assert(RouteContract<Box>);
