// SPDX-License-Identifier: Apache-2.0
//
// Line hz8: balanced, and small. The state of every slot stands out of line and is proved at each free;
// strangers set a bit in the span's pending bitmap; what a thread cannot keep returns to its span at once,
// and little is kept. For programs that must not hold more memory than they use, and for those whose frees
// are not to be trusted.
#pragma once

#include "box/exchange/pending_bitmap.hpp"
#include "box/front/magazine_bins.hpp"
#include "box/guard/slot_state.hpp"
#include "box/observe/counters.hpp"
#include "box/policy/frozen.hpp"
#include "box/policy/learned.hpp"
#include "box/pool/span_pool.hpp"
#include "box/retain/background.hpp"
#include "box/retain/keep_refill.hpp"
#include "box/route/descriptor.hpp"
#include "box/source/arena.hpp"
#include "heap/api/heap.hpp"

namespace hz {

struct Hz8 {
  static constexpr const char* kName = "hz8";

  static constexpr unsigned kOwners = 1024;  // distinct; threads beyond that share
  static constexpr std::size_t kBinBytes = 2 * kMiB;
  static constexpr unsigned kBinSlots = 58;  // two magazines
  static constexpr std::size_t kThreadCacheBytes = 2 * kMiB, kThreadCacheMost = 8 * kMiB;
  static constexpr std::size_t kSentBytes = 128 * kKiB;
  static constexpr std::size_t kThreadBytes = 4 * kKiB + 512;
  // large_direct: threads own enough blocks of 64 to 128 KiB that most operations on them cross nothing.
  static constexpr Preset kPresets[] = {
      {.name = "large_direct", .thread_cache = 32 * kMiB, .retain = 200, .floor = 32 * kMiB}};

  using Route = Descriptor;
  using Policy = Learned<Frozen<Hz8>>;
  using Front = MagazineBins<Hz8>;
  using Exchange = PendingBitmap<Hz8>;
  using Pool = BasicSpanPool<false>;
  using Source = Arena;
  using Retain = KeepRefill;
  using Background = PromptBackground;
  using Guard = SlotState<Hz8>;
  template <class Of>
  using Mitigation = Bare<Of>;
  using Observe = Counters;
};

}  // namespace hz
