// SPDX-License-Identifier: Apache-2.0
//
// Retention follows live bytes: the footprint may stay where the live bytes recently peaked, and a little above, so a
// busy program whose load swings neither maps nor purges. Called by the boundary only; a few atomics and a coarse clock
// a batch.
//
//   live      = out - loose              (thread bins count as live)
//   recent    = the highest live in this window of time and the one before
//   allowed   = percent% of recent
//   spare     = floor + (allowed - live, at least 0)
//   loose    <= spare / 2; beyond kFew, slots up to kSmall join only below spare / 16 (from home they come in order)
//   dirty    <= spare - loose, at least spare / 4;  a purge goes down to 3/4 of that
//   unneeded: so much of loose, and so much of dirty beyond kAloneFloor, was there at each of the purger's last kLooks
//             looks, or is there while all threads are idle; it goes
//
// That counts on the purger to follow when the program falls asleep. While there is none, memory goes back as it is
// freed: allowed is a share of live itself, and the floor is kAloneFloor and room for two of the largest block of up to
// kMostBlock that came home: a program turns such blocks over without page faults (the same rule as the C library's
// dynamic M_TRIM_THRESHOLD). Nor does it give back faster than kBytesPerMicrosecond: whoever frees faster than that
// never wrote what he had, and would pay for the pages alone. The same holds where live has not come near half of
// recent for kQuietMilliseconds, with the usual floor.
#pragma once

#include <atomic>

#include "base/units.hpp"
#include "box/retain/contract.hpp"
#include "os/os.hpp"

namespace hz {

struct UsualFootprint {
  static constexpr std::size_t kFloor = 4 * kMiB;
  static constexpr std::size_t kDefaultPercent = 150;
  static constexpr std::uint64_t kWindowMilliseconds = 250;
  static constexpr std::uint64_t kQuietMilliseconds = ~std::uint64_t{0};  // never: the purger is soon enough
  static constexpr std::size_t kAloneFloor = kMiB;
  static constexpr std::size_t kBlocks = 2;                  // so many of the largest; 0: none
  static constexpr std::size_t kBytesPerMicrosecond = 2560;  // half of what a core writes to new pages; 0: any
};

template <class Footprint>
struct BasicHysteresis : Footprint {
  static constexpr std::size_t kBusy = 2, kEmptied = 8, kSparse = 32, kLooks = 5;
  static constexpr std::size_t kSmall = 512, kFew = 4 * kMiB;
  static constexpr std::size_t kSmallProcess = 4 * kMiB;  // is never emptied
  static constexpr std::size_t kFewSpans = 2 * kMiB;
  static constexpr std::size_t kLeastBlock = 128 * kKiB, kMostBlock = 8 * kMiB;

  struct Global {
    std::atomic<std::size_t> out{0}, loose{0}, bins{0}, peak{0};
    std::atomic<std::size_t> spans{0};            // bytes of those in use
    std::atomic<std::size_t> high{0}, before{0};  // the highest live in this window, and in the one before
    std::atomic<std::uint64_t> began{0};          // this window, in milliseconds
    std::atomic<std::uint64_t> busy_at{0};        // when live was last near recent
    std::atomic<bool> quiet{false};               // that is long ago
    std::atomic<std::size_t> percent{Footprint::kDefaultPercent}, floor{Footprint::kFloor};
    std::atomic<std::size_t> alone_floor{Footprint::kAloneFloor};
    std::atomic<std::size_t> largest{0};                      // block that came home
    std::atomic<bool> has_purger{false};                      // at work
    std::atomic<std::uint64_t> purge_not_before{0};           // in microseconds
    std::size_t least_loose = 0, least_dirty = 0, looks = 0;  // the purger's own: at its looks so far
  };

  static void slots_out(Global& g, std::size_t bytes) {
    const std::size_t out = g.out.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    raise(g.peak, out);
    raise(g.high, live(g));
  }
  // `block`: the size of one of them.
  static void slots_home(Global& g, std::size_t bytes, std::size_t block) {
    g.out.fetch_sub(bytes, std::memory_order_relaxed);
    if (HZ_UNLIKELY(block >= kLeastBlock && block <= kMostBlock)) raise(g.largest, block);
    if (recent(g) <= live(g)) return;
    const std::uint64_t now = os::milliseconds();
    turn_in_time(g, now);
    if (live(g) + bytes >= recent(g) / kBusy && g.busy_at.load(std::memory_order_relaxed) != now)
      g.busy_at.store(now, std::memory_order_relaxed);
    const bool quiet = now - g.busy_at.load(std::memory_order_relaxed) >= Footprint::kQuietMilliseconds;
    if (g.quiet.load(std::memory_order_relaxed) != quiet) g.quiet.store(quiet, std::memory_order_relaxed);
  }
  static void span_used(Global& g, std::size_t bytes) { g.spans.fetch_add(bytes, std::memory_order_relaxed); }
  static void span_retired(Global& g, std::size_t bytes) { g.spans.fetch_sub(bytes, std::memory_order_relaxed); }
  static void loose_added(Global& g, std::size_t bytes) { g.loose.fetch_add(bytes, std::memory_order_relaxed); }
  static void loose_taken(Global& g, std::size_t bytes) { g.loose.fetch_sub(bytes, std::memory_order_relaxed); }

  static void bins_grown(Global& g, std::size_t bytes) { g.bins.fetch_add(bytes, std::memory_order_relaxed); }
  static void bins_shrunk(Global& g, std::size_t bytes) { g.bins.fetch_sub(bytes, std::memory_order_relaxed); }

  static void attend(Global& g, bool purger) { g.has_purger.store(purger, std::memory_order_relaxed); }
  static bool attended(const Global& g) { return g.has_purger.load(std::memory_order_relaxed); }
  static void set(Global& g, const RetainSettings& s) {
    if (s.percent != 0) g.percent.store(s.percent, std::memory_order_relaxed);
    if (s.floor == RetainSettings::kUsual) return;
    g.floor.store(s.floor, std::memory_order_relaxed);
    g.alone_floor.store(s.floor, std::memory_order_relaxed);
  }

  static void rest(Global& g, bool idle) {
    idle ? turn(g, g.high.load(std::memory_order_relaxed)) : turn_in_time(g, os::milliseconds());
  }
  static bool at_rest(const Global& g) { return recent(g) <= live(g) + kMiB; }

  static bool may_wait(const Global& g, std::size_t slot) {
    if (!attended(g) && emptied(g)) return false;  // nobody would send it home
    const std::size_t loose = loose_bytes(g);
    return loose <= spare(g) / (slot <= kSmall && loose > kFew ? 16 : 2);
  }
  static bool must_go(const Global& g) { return loose_bytes(g) > spare(g) || (!attended(g) && emptied(g)); }
  static std::size_t dirty_limit(const Global& g) {
    const std::size_t all = spare(g);
    const std::size_t loose = loose_bytes(g);
    return loose < all - all / 4 ? all - loose : all / 4;
  }
  static std::size_t dirty_target(const Global& g) { return dirty_limit(g) / 4 * 3; }
  static bool may_purge(const Global& g) {
    if (Footprint::kBytesPerMicrosecond == 0 || attended(g)) return true;
    return os::microseconds() >= g.purge_not_before.load(std::memory_order_relaxed);
  }
  static void purged(Global& g, std::size_t bytes) {
    if constexpr (Footprint::kBytesPerMicrosecond != 0) {
      if (attended(g)) return;
      // All that the program had may go at once, if it had it for as long as that takes.
      const std::uint64_t now = os::microseconds(), most = peak_bytes(g) / Footprint::kBytesPerMicrosecond;
      const std::uint64_t then = g.purge_not_before.load(std::memory_order_relaxed);
      g.purge_not_before.store((then + most > now ? then : now - most) + bytes / Footprint::kBytesPerMicrosecond,
                               std::memory_order_relaxed);
    }
  }
  static Unneeded unneeded(Global& g, std::size_t dirty, bool idle) {
    const std::size_t loose = loose_bytes(g);
    const std::size_t floor = g.alone_floor.load(std::memory_order_relaxed);
    if (idle) return {loose, dirty > floor ? dirty - floor : 0};
    if (g.looks == 0 || loose < g.least_loose) g.least_loose = loose;
    if (g.looks == 0 || dirty < g.least_dirty) g.least_dirty = dirty;
    g.looks = (g.looks + 1) % kLooks;
    if (g.looks != 0) return {};
    return {g.least_loose, g.least_dirty > floor ? g.least_dirty - floor : 0};
  }
  // Live bytes are an eighth of what they recently were, or so few in so many spans that each slot which is cached
  // keeps one of them.
  static bool emptied(const Global& g) {
    const std::size_t was = recent(g), spans = g.spans.load(std::memory_order_relaxed);
    return (was > kSmallProcess && busy_bytes(g) < was / kEmptied) || (spans > kFewSpans && live(g) < spans / kSparse);
  }

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
  static std::size_t spare(const Global& g) {
    const std::size_t now = live(g);
    const bool follows =
        attended(g) ? !g.quiet.load(std::memory_order_relaxed) : peak_bytes(g) <= kSmallProcess;  // never was larger
    const std::size_t allowed = (follows ? recent(g) : now) / 100 * g.percent.load(std::memory_order_relaxed);
    return floor(g) + (allowed > now ? allowed - now : 0);
  }
  static std::size_t floor(const Global& g) {
    if (attended(g)) return g.floor.load(std::memory_order_relaxed);
    return g.alone_floor.load(std::memory_order_relaxed) +
           Footprint::kBlocks * g.largest.load(std::memory_order_relaxed);
  }
  static std::size_t recent(const Global& g) {
    const std::size_t high = g.high.load(std::memory_order_relaxed);
    const std::size_t before = g.before.load(std::memory_order_relaxed);
    return high > before ? high : before;
  }
  static void turn_in_time(Global& g, std::uint64_t now) {
    std::uint64_t then = g.began.load(std::memory_order_relaxed);
    if (now - then < Footprint::kWindowMilliseconds) return;
    if (!g.began.compare_exchange_strong(then, now, std::memory_order_relaxed)) return;
    const bool missed = then != 0 && now - then >= 2 * Footprint::kWindowMilliseconds;  // a window without a look
    turn(g, missed ? live(g) : g.high.load(std::memory_order_relaxed));
  }
  static void turn(Global& g, std::size_t before) {
    g.before.store(before, std::memory_order_relaxed);
    g.high.store(live(g), std::memory_order_relaxed);
  }
  static void raise(std::atomic<std::size_t>& highest, std::size_t value) {
    std::size_t seen = highest.load(std::memory_order_relaxed);
    while (seen < value && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
};

using Hysteresis = BasicHysteresis<UsualFootprint>;

}  // namespace hz
