// SPDX-License-Identifier: Apache-2.0
//
// Line hz3-fast: hz3 with few owners and a dense bank of outgoing parcels, one per owner and class, so that
// remote frees need no grouping. Costs up to 48 KiB of state a thread; for programs with a handful of busy
// threads.
#pragma once

#include "box/exchange/dense_bank.hpp"
#include "line/hz3.hpp"

namespace hz {

struct Hz3Fast {
  static constexpr const char* kName = "hz3-fast";

  static constexpr unsigned kOwners = 8;
  static constexpr unsigned kParcelSlots = 64;
  static constexpr std::size_t kParcelBytes = 64 * kKiB;
  static constexpr std::size_t kBinBytes = 2 * kMiB;
  static constexpr unsigned kBinSlots = 256;
  static constexpr std::size_t kThreadCacheBytes = 4 * kMiB, kThreadCacheMost = 32 * kMiB;
  static constexpr std::size_t kThreadBytes = 48 * kKiB;

  using Route = PageTag;
  using Front = LinkedBins;
  using Exchange = OwnerLists<Hz3Fast, DenseBank<Hz3Fast>>;
  using Pool = SpanPool;
  using Source = Arena;
  using Retain = Hysteresis;
  using Background = hz::Background;
  using Guard = FailFast;
  template <class Of>
  using Mitigation = Bare<Of>;
  using Policy = Learned<Frozen<Hz3Fast>>;
  using Observe = Counters;
};

}  // namespace hz
