// SPDX-License-Identifier: Apache-2.0
//
// Line hz6: contracts first. Every slot has a phase and a generation, and every move between a thread, an
// outbox, the transfer cache and a span is checked against one table. A remote free moves ownership through a
// transfer cache with a bound, and the thread that fills it does the work. For programs that should fail at
// the first wrong step, and whose memory should not depend on a thread that lags behind.
#pragma once

#include "box/exchange/bounded_transfer.hpp"
#include "box/front/magazine_bins.hpp"
#include "box/guard/lifecycle.hpp"
#include "box/observe/counters.hpp"
#include "box/policy/frozen.hpp"
#include "box/policy/learned.hpp"
#include "box/pool/span_pool.hpp"
#include "box/retain/background.hpp"
#include "box/retain/hysteresis.hpp"
#include "box/route/descriptor.hpp"
#include "box/source/arena.hpp"
#include "heap/api/heap.hpp"

namespace hz {

struct Hz6 {
  static constexpr const char* kName = "hz6";

  static constexpr unsigned kOwners = 1024;  // distinct; threads beyond that share
  static constexpr unsigned kBatchEntries = 384;
  static constexpr std::size_t kBatchBytes = kMiB;
  static constexpr std::size_t kShelfBytes = 512 * kKiB;  // of a class and a processor in the transfer cache
  static constexpr std::size_t kBinBytes = 2 * kMiB;
  static constexpr unsigned kBinSlots = 122;  // two magazines
  static constexpr std::size_t kThreadCacheBytes = 2 * kMiB, kThreadCacheMost = 8 * kMiB;
  static constexpr std::size_t kThreadBytes = 10 * kKiB;

  using Route = Descriptor;
  using Policy = Learned<Frozen<Hz6>>;
  using Front = MagazineBins<Hz6>;
  using Exchange = BoundedTransfer<Hz6>;
  using Pool = BasicSpanPool<false>;
  using Source = Arena;
  using Retain = Hysteresis;
  using Background = PromptBackground;
  using Guard = Lifecycle<Hz6>;
  template <class Of>
  using Mitigation = Bare<Of>;
  using Observe = Counters;
};

}  // namespace hz
