// SPDX-License-Identifier: Apache-2.0
//
// Line hakozuna, the default: no owners and nothing in or beside user memory. A free costs the same whichever
// thread allocated. Full magazines move through a depot to threads that need them. Memory that idle threads
// cache goes back. For every program.
#pragma once

#include "box/exchange/magazine_depot.hpp"
#include "box/front/magazine_bins.hpp"
#include "box/guard/outside.hpp"
#include "box/observe/counters.hpp"
#include "box/policy/frozen.hpp"
#include "box/policy/learned.hpp"
#include "box/pool/span_pool.hpp"
#include "box/retain/background.hpp"
#include "box/retain/hysteresis.hpp"
#include "box/route/byte_tag.hpp"
#include "box/source/arena.hpp"
#include "heap/api/heap.hpp"

namespace hz {

struct Hakozuna {
  static constexpr const char* kName = "hakozuna";

  static constexpr std::size_t kBinBytes = 4 * kMiB;
  static constexpr unsigned kBinSlots = 250;  // two magazines
  static constexpr std::size_t kThreadCacheBytes = 4 * kMiB, kThreadCacheMost = 16 * kMiB;
  static constexpr std::size_t kThreadBytes = 4 * kKiB + 512;

  using Route = ByteTag;
  using Policy = Learned<Frozen<Hakozuna>>;
  using Front = MagazineBins<Hakozuna>;
  using Exchange = MagazineDepot<Hakozuna>;
  using Pool = BasicSpanPool<false>;
  using Source = Arena;
  using Retain = Hysteresis;
  using Background = hz::Background;
  using Guard = Outside;
  template <class Of>
  using Mitigation = Bare<Of>;
  using Observe = Counters;
};

}  // namespace hz
