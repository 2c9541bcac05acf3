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
//   unneeded: so much of loose + dirty, beyond the floor, was there at each of the purger's last kLooks looks; it goes
//
// A program that has no purger, or had no thread so far, may fall asleep with all that; and one that has not come near
// half of recent for kQuietMilliseconds will not want it again soon. Once the live bytes of such a program, without
// what the bins may hold, are below 1/8 of recent, it is emptying itself, and every byte that comes home takes eight
// with it. A program that wants half of that back before it had time to earn what the pages cost it (some 250 us a MiB)
// has only begun its next turn: for sixteen times that long nothing is forgotten.
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
  static constexpr unsigned kHold = 16;                                   // 0: nothing is regretted
};

template <class Footprint>
struct BasicHysteresis : Footprint {
  static constexpr std::size_t kBusy = 2, kEmptied = 8, kLooks = 10, kSoon = 512 * kKiB;  // bytes a millisecond
  static constexpr std::size_t kSmall = 512, kFew = 4 * kMiB;

  struct Global {
    std::atomic<std::size_t> out{0}, loose{0}, bins{0}, peak{0};
    std::atomic<std::size_t> high{0}, before{0};  // the highest live in this window, and in the one before
    std::atomic<std::uint64_t> began{0};          // this window, in milliseconds
    std::atomic<std::uint64_t> busy_at{0}, forgot_at{0}, hold_until{0};  // busy: live was near recent
    std::atomic<std::size_t> percent{Footprint::kDefaultPercent}, floor{Footprint::kFloor};
    std::atomic<bool> has_purger{true};     // or may get one
    std::atomic<std::size_t> forgotten{0};  // recent as it was then; replaced when it is too late to want it back
    std::size_t least = 0, looks = 0;       // the purger's own: of loose + dirty, at its looks so far
  };

  static void slots_out(Global& g, std::size_t bytes) {
    const std::size_t out = g.out.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    raise(g.peak, out);
    raise(g.high, live(g));
    const std::size_t forgotten = g.forgotten.load(std::memory_order_relaxed);
    if (HZ_UNLIKELY(forgotten != 0 && live(g) > forgotten / kBusy)) regret(g, forgotten);
  }
  static void slots_home(Global& g, std::size_t bytes) {
    g.out.fetch_sub(bytes, std::memory_order_relaxed);
    if (recent(g) <= live(g)) return;
    const std::uint64_t now = os::milliseconds();
    turn_in_time(g, now);
    if (live(g) + bytes >= recent(g) / kBusy && g.busy_at.load(std::memory_order_relaxed) != now)
      g.busy_at.store(now, std::memory_order_relaxed);
    if (now - g.busy_at.load(std::memory_order_relaxed) >= Footprint::kQuietMilliseconds ||
        !g.has_purger.load(std::memory_order_relaxed) || os::never_had_threads())
      forget(g, bytes, now);
  }
  static void loose_added(Global& g, std::size_t bytes) { g.loose.fetch_add(bytes, std::memory_order_relaxed); }
  static void loose_taken(Global& g, std::size_t bytes) { g.loose.fetch_sub(bytes, std::memory_order_relaxed); }

  static void bins_grown(Global& g, std::size_t bytes) { g.bins.fetch_add(bytes, std::memory_order_relaxed); }
  static void bins_shrunk(Global& g, std::size_t bytes) { g.bins.fetch_sub(bytes, std::memory_order_relaxed); }

  static void rest(Global& g, bool idle) {
    idle ? turn(g, g.high.load(std::memory_order_relaxed)) : turn_in_time(g, os::milliseconds());
  }
  static bool at_rest(const Global& g) { return recent(g) <= live(g) + kMiB; }

  static bool may_wait(const Global& g, std::size_t slot) {
    const std::size_t loose = loose_bytes(g);
    return loose <= spare(g) / (slot <= kSmall && loose > kFew ? 16 : 2);
  }
  static bool must_go(const Global& g) { return loose_bytes(g) > spare(g); }
  static std::size_t dirty_limit(const Global& g) {
    const std::size_t all = spare(g);
    const std::size_t loose = loose_bytes(g);
    return loose < all - all / 4 ? all - loose : all / 4;
  }
  static std::size_t dirty_target(const Global& g) { return dirty_limit(g) / 4 * 3; }
  static std::size_t unneeded(Global& g, std::size_t dirty) {
    const std::size_t free = loose_bytes(g) + dirty;
    if (g.looks == 0 || free < g.least) g.least = free;
    g.looks = (g.looks + 1) % kLooks;
    const std::size_t floor = g.floor.load(std::memory_order_relaxed);
    return g.looks == 0 && g.least > floor ? g.least - floor : 0;
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
    const std::size_t allowed = recent(g) / 100 * g.percent.load(std::memory_order_relaxed);
    const std::size_t now = live(g);
    return g.floor.load(std::memory_order_relaxed) + (allowed > now ? allowed - now : 0);
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
  // `bytes` came home: if the program is emptying itself, they take eight times as many along.
  static void forget(Global& g, std::size_t bytes, std::uint64_t now) {
    const std::size_t left = live(g), was = recent(g);
    if (left >= was / kEmptied + g.bins.load(std::memory_order_relaxed)) return;
    if (bytes == 0 || now < g.hold_until.load(std::memory_order_relaxed)) return;
    if (now - g.forgot_at.load(std::memory_order_relaxed) >= g.forgotten.load(std::memory_order_relaxed) / kSoon) {
      g.forgotten.store(was, std::memory_order_relaxed);
      g.forgot_at.store(now, std::memory_order_relaxed);
    }
    for (std::atomic<std::size_t>* one : {&g.high, &g.before}) {
      const std::size_t seen = one->load(std::memory_order_relaxed);
      one->store(seen > left + kEmptied * bytes ? seen - kEmptied * bytes : left, std::memory_order_relaxed);
    }
  }
  static void regret(Global& g, std::size_t bytes) {
    const std::uint64_t now = os::milliseconds(), soon = bytes / kSoon;
    g.forgotten.store(0, std::memory_order_relaxed);
    if (now - g.forgot_at.load(std::memory_order_relaxed) < soon)
      g.hold_until.store(now + Footprint::kHold * soon, std::memory_order_relaxed);
  }
  static void raise(std::atomic<std::size_t>& highest, std::size_t value) {
    std::size_t seen = highest.load(std::memory_order_relaxed);
    while (seen < value && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
};

using Hysteresis = BasicHysteresis<UsualFootprint>;

}  // namespace hz
