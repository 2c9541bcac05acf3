// SPDX-License-Identifier: Apache-2.0
//
// Line hz3, scale lane: lookup first. Every free finds class and owner in one page tag; owners get their
// slots back through lock-free lists; a thread's state stays within 8 KiB. For programs whose threads
// mostly free what they allocate, at any number of threads.
#pragma once

#include "box/exchange/owner_lists.hpp"
#include "box/exchange/sparse_ring.hpp"
#include "box/front/linked_bins.hpp"
#include "box/guard/fail_fast.hpp"
#include "box/observe/counters.hpp"
#include "box/policy/frozen.hpp"
#include "box/policy/learned.hpp"
#include "box/pool/span_pool.hpp"
#include "box/retain/background.hpp"
#include "box/retain/hysteresis.hpp"
#include "box/route/page_tag.hpp"
#include "box/source/arena.hpp"
#include "heap/api/heap.hpp"

namespace hz {

struct Hz3 {
  static constexpr const char* kName = "hz3";

  static constexpr unsigned kOwners = 64;  // threads beyond that share
  static constexpr unsigned kOutboxEntries = 768;
  static constexpr std::size_t kOutboxBytes = 1 * kMiB;
  static constexpr unsigned kParcelSlots = 64;
  static constexpr std::size_t kParcelBytes = 64 * kKiB;
  static constexpr std::size_t kBinBytes = 2 * kMiB;
  static constexpr unsigned kBinSlots = 256;
  static constexpr std::size_t kThreadCacheBytes = 4 * kMiB, kThreadCacheMost = 32 * kMiB;
  static constexpr std::size_t kThreadBytes = 8 * kKiB + 512;

  using Route = PageTag;
  using Front = LinkedBins;
  using Exchange = OwnerLists<Hz3, SparseRing<Hz3>>;
  using Pool = SpanPool;
  using Source = Arena;
  using Retain = Hysteresis;
  using Background = hz::Background;
  using Guard = FailFast;
  template <class Of>
  using Mitigation = Bare<Of>;
  using Policy = Learned<Frozen<Hz3>>;
  using Observe = Counters;
};

}  // namespace hz
