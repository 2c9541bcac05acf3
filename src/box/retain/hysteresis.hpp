// SPDX-License-Identifier: Apache-2.0
//
// Retention follows live bytes: the footprint may stay where the live bytes recently peaked, and a little above, so a
// busy program whose load swings neither maps nor purges; one that has emptied itself is small at once. Called by the
// boundary only; a few atomics and a coarse clock a batch.
//
//   live      = out - loose              (thread bins count as live)
//   recent    = the highest live of late: decays towards live by 1/8 in 100 ms; once live without what the bins may
//               hold is below 1/8 of it, the program is emptying itself, and every byte that comes home takes eight
//               with it
//   allowed   = percent% of recent
//   spare     = floor + (allowed - live, at least 0)
//   loose    <= spare / 2                  (it serves one owner; what is home serves everybody)
//   loose    <= (floor + percent% of live) / 2   (what no longer lives will not be wanted again)
//   dirty    <= spare - loose, at least spare / 4;  a purge goes down to 3/4 of that
#pragma once

#include <atomic>

#include "base/units.hpp"
#include "box/retain/contract.hpp"
#include "os/os.hpp"

namespace hz {

struct Hysteresis {
  static constexpr std::size_t kFloor = 4 * kMiB;
  static constexpr std::size_t kDefaultPercent = 125;
  static constexpr unsigned kDecayShift = 3;
  static constexpr std::uint64_t kDecayMilliseconds = 100;
  static constexpr std::size_t kEmptied = 8;

  struct Global {
    std::atomic<std::size_t> out{0}, loose{0}, bins{0}, recent{0}, peak{0};
    std::atomic<std::uint64_t> decayed_at{0};  // milliseconds
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
    const std::size_t over = over_live(g);
    if (over != 0) forget(g, over, decay(g, over) + emptied(g, bytes));
  }
  static void loose_added(Global& g, std::size_t bytes) { g.loose.fetch_add(bytes, std::memory_order_relaxed); }
  static void loose_taken(Global& g, std::size_t bytes) { g.loose.fetch_sub(bytes, std::memory_order_relaxed); }

  static void bins_grown(Global& g, std::size_t bytes) { g.bins.fetch_add(bytes, std::memory_order_relaxed); }
  static void bins_shrunk(Global& g, std::size_t bytes) { g.bins.fetch_sub(bytes, std::memory_order_relaxed); }

  // Idle, the peak is forgotten within a second.
  static void rest(Global& g, bool idle) {
    const std::size_t over = over_live(g);
    if (over != 0) forget(g, over, idle ? over / 2 + 1 : decay(g, over));
  }
  static bool at_rest(const Global& g) { return g.recent.load(std::memory_order_relaxed) <= live(g) + kMiB; }

  static bool may_wait(const Global& g) {
    const std::size_t loose = loose_bytes(g);
    return loose <= spare(g) / 2 && loose <= (g.floor.load(std::memory_order_relaxed) + of_percent(g, live(g))) / 2;
  }
  static bool must_go(const Global& g) { return loose_bytes(g) > spare(g); }
  static std::size_t dirty_limit(const Global& g) {
    const std::size_t all = spare(g);
    const std::size_t loose = loose_bytes(g);
    return loose < all - all / 4 ? all - loose : all / 4;
  }
  static std::size_t dirty_target(const Global& g) { return dirty_limit(g) / 4 * 3; }

  static std::size_t busy_bytes(const Global& g) {
    const std::size_t now = live(g);
    const std::size_t bins = g.bins.load(std::memory_order_relaxed);
    return now > bins ? now - bins : 0;
  }
  static std::size_t out_bytes(const Global& g) { return g.out.load(std::memory_order_relaxed); }
  // Not below zero: a fork may cut a parcel's count from its slots.
  static std::size_t loose_bytes(const Global& g) {
    const std::size_t loose = g.loose.load(std::memory_order_relaxed);
    return loose <= PTRDIFF_MAX ? loose : 0;
  }
  static std::size_t peak_bytes(const Global& g) { return g.peak.load(std::memory_order_relaxed); }

 private:
  static std::size_t live(const Global& g) {
    const std::size_t out = out_bytes(g);
    const std::size_t loose = loose_bytes(g);
    return out > loose ? out - loose : 0;  // the two are read one after the other
  }
  static std::size_t of_percent(const Global& g, std::size_t bytes) {
    return bytes / 100 * g.percent.load(std::memory_order_relaxed);
  }
  static std::size_t spare(const Global& g) {
    const std::size_t recent = g.recent.load(std::memory_order_relaxed);
    const std::size_t allowed = of_percent(g, recent);
    const std::size_t now = live(g);
    return g.floor.load(std::memory_order_relaxed) + (allowed > now ? allowed - now : 0);
  }
  // By how much the recent peak exceeds what lives now.
  static std::size_t over_live(const Global& g) {
    const std::size_t recent = g.recent.load(std::memory_order_relaxed);
    const std::size_t now = live(g);
    return recent > now ? recent - now : 0;
  }
  static void forget(Global& g, std::size_t over, std::size_t bytes) {
    if (bytes == 0) return;
    const std::size_t recent = g.recent.load(std::memory_order_relaxed);
    const std::size_t less = bytes < over ? bytes : over;
    g.recent.store(recent > less ? recent - less : 0, std::memory_order_relaxed);
  }
  // What `bytes` that were given back take along, if the program is emptying itself.
  static std::size_t emptied(const Global& g, std::size_t bytes) {
    const std::size_t recent = g.recent.load(std::memory_order_relaxed);
    return live(g) < recent / kEmptied + g.bins.load(std::memory_order_relaxed) ? kEmptied * bytes : 0;
  }
  // What time takes of `over`; 0 most of the time.
  static std::size_t decay(Global& g, std::size_t over) {
    const std::uint64_t now = os::milliseconds();
    std::uint64_t then = g.decayed_at.load(std::memory_order_relaxed);
    if (now - then < kDecayMilliseconds) return 0;
    if (!g.decayed_at.compare_exchange_strong(then, now, std::memory_order_relaxed)) return 0;
    std::size_t left = over;
    for (std::uint64_t periods = (now - then) / kDecayMilliseconds; periods != 0 && left > kPage; --periods)
      left -= left >> kDecayShift;
    return over - left;
  }
  static void raise(std::atomic<std::size_t>& highest, std::size_t value) {
    std::size_t seen = highest.load(std::memory_order_relaxed);
    while (seen < value && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
};

}  // namespace hz
