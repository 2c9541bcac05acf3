// SPDX-License-Identifier: Apache-2.0
//
// Line hz4: remote frees first. What a thread frees for others travels as messages, grouped and packed, and
// the owner adopts its inbox whole; a thread caches spans of large classes like any slot, so none is mapped
// for a block. Owners without limit. For programs whose blocks are allocated by one thread and freed by
// another.
#pragma once

#include "box/exchange/message_batch.hpp"
#include "box/front/magazine_bins.hpp"
#include "box/guard/outside.hpp"
#include "box/observe/counters.hpp"
#include "box/policy/frozen.hpp"
#include "box/policy/learned.hpp"
#include "box/pool/span_pool.hpp"
#include "box/retain/background.hpp"
#include "box/retain/hysteresis.hpp"
#include "box/route/page_header.hpp"
#include "box/source/arena.hpp"
#include "heap/api/heap.hpp"

namespace hz {

struct Hz4 {
  static constexpr const char* kName = "hz4";

  static constexpr unsigned kOwners = 1U << 22;  // as many as Linux can have threads: each is its own owner
  static constexpr unsigned kBatchEntries = 384;
  static constexpr std::size_t kBatchBytes = 4 * kMiB;
  static constexpr std::size_t kBinBytes = 2 * kMiB;
  static constexpr unsigned kBinSlots = 122;  // two magazines
  static constexpr std::size_t kThreadCacheBytes = 4 * kMiB, kThreadCacheMost = 32 * kMiB;
  static constexpr std::size_t kThreadBytes = 10 * kKiB;

  using Route = PageHeader;
  using Policy = Learned<Frozen<Hz4>>;
  using Front = MagazineBins<Hz4>;
  using Exchange = MessageBatch<Hz4>;
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
