// SPDX-License-Identifier: Apache-2.0
//
// Line hz5: ownership first. Descriptors tell whose a span is, a state out of line proves each free and one
// compare-and-swap claims it; strangers set a bit in the span's pending bitmap. What each band of sizes may
// cache is a profile's choice, so that one library serves many kinds of program. For services whose threads
// hand blocks of one kind to each other and are to stay small.
#pragma once

#include "box/exchange/pending_bitmap.hpp"
#include "box/front/magazine_bins.hpp"
#include "box/guard/slot_state.hpp"
#include "box/observe/counters.hpp"
#include "box/policy/learned.hpp"
#include "box/policy/size_bands.hpp"
#include "box/pool/span_pool.hpp"
#include "box/retain/background.hpp"
#include "box/retain/hysteresis.hpp"
#include "box/route/descriptor.hpp"
#include "box/source/arena.hpp"
#include "heap/api/heap.hpp"

namespace hz {

struct Hz5 {
  static constexpr const char* kName = "hz5";

  static constexpr unsigned kOwners = 1024;  // distinct; threads beyond that share
  static constexpr std::size_t kBinBytes = 2 * kMiB;
  static constexpr unsigned kBinSlots = 122;  // two magazines
  static constexpr std::size_t kThreadCacheBytes = 2 * kMiB, kThreadCacheMost = 8 * kMiB;
  static constexpr std::size_t kSentBytes = kMiB;
  static constexpr std::size_t kThreadBytes = 4 * kKiB + 512;
  // What a thread caches, what stays, and what one bin of small slots, of runs and of large ones may hold.
  static constexpr Preset kPresets[] = {
      {"pagerun64-main", 8 * kMiB, 150, 4 * kMiB, {64 * kKiB, 2 * kMiB, kMiB}},
      {"pagerun64-cross128", 16 * kMiB, 150, 16 * kMiB, {64 * kKiB, 2 * kMiB, 2 * kMiB}},
      {"large128-rss", 2 * kMiB, 125, kMiB, {64 * kKiB, kMiB, 512 * kKiB}},
      {"large128-source16", 4 * kMiB, 150, 16 * kMiB, {64 * kKiB, kMiB, 2 * kMiB}},
      {"large128-transfer128", 4 * kMiB, 200, 64 * kMiB, {64 * kKiB, kMiB, 2 * kMiB}},
      {"local2p", 8 * kMiB, 150, 4 * kMiB, {64 * kKiB, 2 * kMiB, 512 * kKiB}},
  };

  using Route = Descriptor;
  using Policy = Learned<SizeBands<Hz5>>;
  using Front = MagazineBins<Hz5>;
  using Exchange = PendingBitmap<Hz5>;
  using Pool = BasicSpanPool<false>;
  using Source = Arena;
  using Retain = Hysteresis;
  using Background = PromptBackground;
  using Guard = SlotState<Hz5>;
  template <class Of>
  using Mitigation = Bare<Of>;
  using Observe = Counters;
};

}  // namespace hz
