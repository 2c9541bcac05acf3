// SPDX-License-Identifier: Apache-2.0
//
// Line secure: for programs that attackers write to. Blocks are sealed, free slots are zero and proved to be
// so. Freed slots wait and come back at random, and slots leave their spans in no order. Large blocks lie
// between inaccessible pages. Every free is proved against states that no block can reach. Costs:
// doc/line/secure.md.
#pragma once

#include "box/exchange/magazine_depot.hpp"
#include "box/front/quarantine.hpp"
#include "box/guard/sealed.hpp"
#include "box/observe/counters.hpp"
#include "box/policy/frozen.hpp"
#include "box/policy/learned.hpp"
#include "box/pool/span_pool.hpp"
#include "box/retain/background.hpp"
#include "box/retain/hysteresis.hpp"
#include "box/route/descriptor.hpp"
#include "box/source/arena.hpp"
#include "heap/api/heap.hpp"
#include "security/seals.hpp"

namespace hz {

struct Secure {
  static constexpr const char* kName = "secure";

  static constexpr std::size_t kBinBytes = 2 * kMiB;
  static constexpr unsigned kBinSlots = 122;  // two magazines
  static constexpr std::size_t kThreadCacheBytes = 2 * kMiB, kThreadCacheMost = 8 * kMiB;
  static constexpr std::size_t kThreadBytes = 5 * kKiB + 512;

  using Route = Descriptor;
  using Policy = Learned<Frozen<Secure>>;
  using Front = Quarantine<Secure>;
  using Exchange = MagazineDepot<Secure>;
  using Pool = BasicSpanPool<false, true>;
  using Source = Arena;
  using Retain = Hysteresis;
  using Background = hz::Background;
  using Guard = Sealed<Secure>;
  template <class Of>
  using Mitigation = Seals<Of>;
  using Observe = Counters;
};

}  // namespace hz
