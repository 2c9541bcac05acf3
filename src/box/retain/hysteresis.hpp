// SPDX-License-Identifier: Apache-2.0
//
// Retention follows live bytes: what waits free, loose or dirty, is bounded by a share of the bytes that were in use
// recently, so a program that empties itself is small at once and a steady one neither maps nor purges. "Recently" is a
// maximum that decays a little with every batch that comes home. Called by the boundary only; a few atomics a batch.
//
//   live   = out - loose                   (thread bins count as live)
//   recent = max(live, recent - recent / 64 per batch home)
//   loose  <= floor + recent * percent,  dirty <= floor + recent * percent; a purge goes down to half of that
#pragma once

#include <atomic>

#include "base/units.hpp"
#include "box/retain/contract.hpp"

namespace hz {

struct Hysteresis {
  static constexpr std::size_t kFloor = 1 * kMiB;
  static constexpr std::size_t kDefaultPercent = 25;
  static constexpr unsigned kDecayShift = 6;

  struct Global {
    std::atomic<std::size_t> out{0}, loose{0}, recent{0}, peak{0};
    std::atomic<std::size_t> percent{kDefaultPercent};
    std::atomic<std::size_t> floor{kFloor};
  };

  static void slots_out(Global& g, std::size_t bytes) {
    const std::size_t out = g.out.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    raise(g.peak, out);
    raise(g.recent, live(g));
  }
  static void slots_home(Global& g, std::size_t bytes) {
    g.out.fetch_sub(bytes, std::memory_order_relaxed);
    const std::size_t recent = g.recent.load(std::memory_order_relaxed);
    const std::size_t now = live(g);
    if (recent > now) g.recent.store(recent - ((recent - now) >> kDecayShift), std::memory_order_relaxed);
  }
  static void loose_added(Global& g, std::size_t bytes) { g.loose.fetch_add(bytes, std::memory_order_relaxed); }
  static void loose_taken(Global& g, std::size_t bytes) { g.loose.fetch_sub(bytes, std::memory_order_relaxed); }

  static bool may_wait(const Global& g, std::size_t bytes) { return loose_bytes(g) + bytes <= share(g); }
  static std::size_t dirty_limit(const Global& g) { return share(g); }
  static std::size_t dirty_target(const Global& g) { return share(g) / 2; }

  static std::size_t out_bytes(const Global& g) { return g.out.load(std::memory_order_relaxed); }
  static std::size_t loose_bytes(const Global& g) { return g.loose.load(std::memory_order_relaxed); }
  static std::size_t peak_bytes(const Global& g) { return g.peak.load(std::memory_order_relaxed); }

 private:
  static std::size_t live(const Global& g) {
    const std::size_t out = out_bytes(g);
    const std::size_t loose = loose_bytes(g);
    return out > loose ? out - loose : 0;  // the two are read one after the other
  }
  static std::size_t share(const Global& g) {
    return g.floor.load(std::memory_order_relaxed) +
           g.recent.load(std::memory_order_relaxed) / 100 * g.percent.load(std::memory_order_relaxed);
  }
  static void raise(std::atomic<std::size_t>& highest, std::size_t value) {
    std::size_t seen = highest.load(std::memory_order_relaxed);
    while (seen < value && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
};

}  // namespace hz
