// SPDX-License-Identifier: Apache-2.0
//
// Retention follows live bytes: the footprint may stay where the live bytes recently peaked, and a little
// above, so a busy program whose load swings neither maps nor purges. Called by the boundary only; a few
// additions a batch.
//
// Each thread counts in its own part, and decides by it and by the shared sums as it read them last. A part
// is folded into the sums when it has changed by a share of recent (kUnfoldedShare, kUnfoldedMost): a few
// atomics and a coarse clock; and by the purger at each tick. Source of the idea: the Linux kernel's
// percpu_counter.
//
//   live      = out - waiting    (thread bins count as live)
//   recent    = the highest live in this window of time and the one before
//   allowed   = percent% of recent
//   spare     = floor + (allowed - live, at least 0)
//   waiting  <= spare / 2; beyond kFreelyWaiting, slots up to kSmall join only below spare / 16, for
//             spans give them in order; without a purger no slots do: no thread would take them back
//   dirty    <= spare - waiting, at least spare / 4;  a purge goes down to 3/4 of that
//   a thread has spans of its own while free slots in spans are below kSpreadFreely and a kSpread-th of out
//   unneeded: so much of waiting, and so much of dirty beyond kAloneFloor, was there at each of the purger's
//             last kLooks looks, or is there while all threads are idle; it goes
//
// That counts on the purger to follow when the program falls asleep. While there is none, memory goes back as
// it is freed: allowed is a share of live itself, and the floor is kAloneFloor. Each byte that goes back has
// to be paid for: growth pays for kReturns returns of all that there ever was, and time for
// kBytesPerMicrosecond, a twentieth of it or less. What is not paid for yet goes back at a later slow path.
// The same holds where live has not come near half of recent for kQuietMilliseconds, with the usual floor.
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
  // A page that goes and is touched again costs 2 to 4 microseconds. kReturns 0: as fast as it can.
  static constexpr std::size_t kReturns = 2, kBytesPerMicrosecond = 64;
};

template <class Footprint>
struct BasicHysteresis : Footprint {
  static constexpr std::size_t kBusy = 2, kSparse = 32, kLooks = 5;
  static constexpr std::size_t kSmall = 512, kFreelyWaiting = 4 * kMiB;
  static constexpr std::size_t kSmallProcess = 4 * kMiB;
  static constexpr std::size_t kPurgedAlone = kMiB;
  static constexpr std::size_t kLittleShare = 128, kLeastLittle = 2 * kMiB;
  static constexpr std::size_t kFewSpans = 2 * kMiB;
  static constexpr std::size_t kSpread = 32, kSpreadFreely = 4 * kMiB;

  // A thread's part: what it counted and has not folded into Global, and what it read there last.
  struct PerThread {
    std::ptrdiff_t out = 0, waiting = 0, bins = 0, spans = 0;
    std::ptrdiff_t most = 0;  // so much of each may stay here
    unsigned entered = 0;     // crossings since it read
    struct {
      std::size_t out = 0, waiting = 0, bins = 0, spans = 0, recent = 0;
      bool follows = false;
    } seen;
  };

  // Bytes that were given back, less those that the time since then has paid for. Threads that add at the
  // same time may lose some.
  class Debt {
   public:
    std::size_t bytes() const { return at(os::microseconds()); }
    void add(std::size_t more) {
      const std::uint64_t now = os::microseconds();
      bytes_.store(at(now) + more, std::memory_order_relaxed);
      at_.store(now, std::memory_order_relaxed);
    }
    void take_off(std::size_t less) {
      const std::uint64_t all = bytes_.load(std::memory_order_relaxed);
      bytes_.store(all > less ? all - less : 0, std::memory_order_relaxed);
    }

   private:
    std::uint64_t at(std::uint64_t now) const {
      const std::uint64_t paid =
          (now - at_.load(std::memory_order_relaxed)) * Footprint::kBytesPerMicrosecond;
      const std::uint64_t bytes = bytes_.load(std::memory_order_relaxed);
      return bytes > paid ? bytes - paid : 0;
    }
    std::atomic<std::uint64_t> bytes_{0}, at_{0};  // microseconds
  };

  struct Global {
    // Settings, and what seldom changes: every crossing reads them.
    alignas(kCacheLine) std::atomic<std::size_t> percent{Footprint::kDefaultPercent};
    std::atomic<std::size_t> floor{Footprint::kFloor}, alone_floor{Footprint::kAloneFloor};
    std::atomic<std::size_t> most_percent{~std::size_t{0}}, most_floor{~std::size_t{0}};  // the policy's
    std::atomic<bool> waits{true};        // slots wait for what there recently was, too
    std::atomic<bool> has_purger{false};  // at work
    Debt debt;                            // while there is none
    // Sums, and what they were.
    alignas(kCacheLine) std::atomic<std::size_t> out{0};
    std::atomic<std::size_t> waiting{0}, bins{0}, peak{0};
    std::atomic<std::size_t> spans{0};            // bytes of those in use ...
    std::atomic<std::size_t> most_spans{0};       // ... and the most there ever were
    std::atomic<std::size_t> high{0}, before{0};  // the highest live in this window, and in the one before
    std::atomic<std::uint64_t> began{0};          // this window, in milliseconds
    alignas(kCacheLine) std::atomic<std::uint64_t> busy_at{0};  // when live was last near recent
    std::atomic<bool> quiet{false};                             // that is long ago
    std::size_t least_waiting = 0, least_dirty = 0, looks = 0;  // the purger's own: at its looks so far
  };

  static constexpr auto words() {
    return layout::Words<7>{layout::Word("retain.out", offsetof(Global, out), sizeof(std::size_t)),
                            {"retain.waiting", offsetof(Global, waiting), sizeof(std::size_t)},
                            {"retain.spans", offsetof(Global, spans), sizeof(std::size_t)},
                            {"retain.peak", offsetof(Global, peak), sizeof(std::size_t)},
                            {"retain.high", offsetof(Global, high), sizeof(std::size_t)},
                            {"retain.before", offsetof(Global, before), sizeof(std::size_t)},
                            {"retain.percent", offsetof(Global, percent), sizeof(std::size_t)}};
  }
  // Not folded into the sums yet; may be negative.
  static constexpr auto words_of_thread() {
    return layout::Words<3>{layout::Word("thread.out", offsetof(PerThread, out), sizeof(std::ptrdiff_t)),
                            {"thread.waiting", offsetof(PerThread, waiting), sizeof(std::ptrdiff_t)},
                            {"thread.spans", offsetof(PerThread, spans), sizeof(std::ptrdiff_t)}};
  }

  static void slots_out(PerThread& t, std::size_t bytes) { t.out += signed_of(bytes); }
  static void slots_returned(PerThread& t, std::size_t bytes) { t.out -= signed_of(bytes); }
  static void span_used(PerThread& t, std::size_t bytes) { t.spans += signed_of(bytes); }
  static void span_retired(PerThread& t, std::size_t bytes) { t.spans -= signed_of(bytes); }
  static void waiting_added(PerThread& t, std::size_t bytes) { t.waiting += signed_of(bytes); }
  static void waiting_taken(PerThread& t, std::size_t bytes) { t.waiting -= signed_of(bytes); }
  static void bins_grown(PerThread& t, std::size_t bytes) { t.bins += signed_of(bytes); }
  static void bins_shrunk(PerThread& t, std::size_t bytes) { t.bins -= signed_of(bytes); }

  static void enter(const Global& g, PerThread& t, unsigned sharers) {
    if (sharers <= 1 || ++t.entered >= kEntriesPerLook) look(g, t);
  }
  static void leave(Global& g, PerThread& t, unsigned sharers) {
    const std::ptrdiff_t most = sharers <= 1 ? 0 : t.most;
    if (!exceeds(t.out, most) && !exceeds(t.waiting, most) && !exceeds(t.bins, most) &&
        !exceeds(t.spans, most))
      return;
    add(g, t);
    t.entered = kEntriesPerLook;  // looks when it enters again
    const std::size_t share = recent(g) / kUnfoldedShare / (sharers == 0 ? 1 : sharers);
    t.most = signed_of(share < kUnfoldedMost ? share : kUnfoldedMost);
  }
  static void look(const Global& g, PerThread& t) {
    t.entered = 0;
    t.seen.out = g.out.load(std::memory_order_relaxed);
    t.seen.waiting = g.waiting.load(std::memory_order_relaxed);
    t.seen.bins = g.bins.load(std::memory_order_relaxed);
    t.seen.spans = g.spans.load(std::memory_order_relaxed);
    t.seen.recent = recent(g);
    // Without a purger: a process that never was larger.
    t.seen.follows = has_purger(g) ? !g.quiet.load(std::memory_order_relaxed) : was_always_small(g);
  }
  static void fold(Global& g, PerThread& t) {
    add(g, t);
    look(g, t);
  }

  static void set_purger(Global& g, bool purger) {
    if (has_purger(g) != purger) g.has_purger.store(purger, std::memory_order_relaxed);
  }
  static bool has_purger(const Global& g) { return g.has_purger.load(std::memory_order_relaxed); }
  static void set(Global& g, const RetainSettings& s) {
    if (s.percent != 0) g.percent.store(s.percent, std::memory_order_relaxed);
    if (s.floor == RetainSettings::kUsual) return;
    g.floor.store(s.floor, std::memory_order_relaxed);
    g.alone_floor.store(s.floor, std::memory_order_relaxed);
  }
  static RetainSettings settings(const Global& g) {
    const std::atomic<std::size_t>& floor = has_purger(g) ? g.floor : g.alone_floor;
    return {.percent = g.percent.load(std::memory_order_relaxed),
            .floor = floor.load(std::memory_order_relaxed)};
  }

  static void bound(Global& g, unsigned percent, std::size_t floor, bool follows) {
    if (g.most_percent.load(std::memory_order_relaxed) == percent &&
        g.most_floor.load(std::memory_order_relaxed) == floor &&
        g.waits.load(std::memory_order_relaxed) == follows)
      return;
    g.most_percent.store(percent, std::memory_order_relaxed);
    g.most_floor.store(floor, std::memory_order_relaxed);
    g.waits.store(follows, std::memory_order_relaxed);
  }

  static void rest(Global& g, bool idle) {
    idle ? turn(g, g.high.load(std::memory_order_relaxed)) : turn_in_time(g, os::milliseconds());
  }
  static bool at_rest(const Global& g) { return recent(g) <= live(g) + kMiB; }

  static bool may_wait(const Global& g, const PerThread& t, std::size_t slot) {
    const std::size_t waiting = waiting_bytes(t);
    const bool few = waiting > kFreelyWaiting && (slot <= kSmall || !has_purger(g));
    return waiting <= spare_for_waiting(g, t) / (few ? 16 : 2);
  }
  static bool must_go(const Global& g, const PerThread& t) {
    return waiting_bytes(t) > spare_for_waiting(g, t);
  }
  static std::size_t dirty_limit(const Global& g, const PerThread& t) {
    const std::size_t all = spare(g, t);
    const std::size_t waiting = waiting_bytes(t);
    return waiting < all - all / 4 ? all - waiting : all / 4;
  }
  // Without a purger a thread that frees goes little further at once: kPurgedAlone.
  static std::size_t dirty_target(const Global& g, const PerThread& t) {
    const std::size_t limit = dirty_limit(g, t), some = limit / 4;
    return limit - (has_purger(g) || some < kPurgedAlone ? some : kPurgedAlone);
  }
  static std::size_t paid_for(const Global& g) {
    const std::size_t paid = Footprint::kReturns * most_held(g), debt = g.debt.bytes();
    return Footprint::kReturns == 0 ? ~std::size_t{0} : paid > debt ? paid - debt : 0;
  }
  static void purged(Global& g, std::size_t bytes) {
    if (Footprint::kReturns != 0 && !has_purger(g)) g.debt.add(bytes);
  }
  // So much of what will be purged has no memory any more.
  static void purged_before(Global& g, std::size_t bytes) {
    if (Footprint::kReturns != 0 && bytes != 0 && !has_purger(g)) g.debt.take_off(bytes);
  }
  static Unneeded unneeded(Global& g, std::size_t dirty, bool idle) {
    const std::size_t waiting = waiting_bytes(g);
    const std::size_t floor = g.alone_floor.load(std::memory_order_relaxed);
    if (idle) return {waiting, dirty > floor ? dirty - floor : 0};
    if (g.looks == 0 || waiting < g.least_waiting) g.least_waiting = waiting;
    if (g.looks == 0 || dirty < g.least_dirty) g.least_dirty = dirty;
    g.looks = (g.looks + 1) % kLooks;
    if (g.looks != 0) return {};
    return {g.least_waiting, g.least_dirty > floor ? g.least_dirty - floor : 0};
  }
  // Few slots are in many spans, so that each one that is cached keeps one of them. `elsewhere`: of what is
  // out, bytes that are no slots of spans.
  static bool sparse(const Global& g, std::size_t elsewhere) {
    const std::size_t spans = span_bytes(g);
    return spans > kFewSpans && slots_of(out_bytes(g), elsewhere) < spans / kSparse;
  }
  static bool was_always_small(const Global& g) { return peak_bytes(g) <= kSmallProcess; }
  // Free slots in spans are more than a little, and the process was not always small.
  static bool has_slack(const Global& g, const PerThread& t, std::size_t elsewhere, unsigned threads) {
    const std::size_t spans = sum(t.seen.spans, t.spans),
                      small = kSmallProcess * (threads == 0 ? 1 : threads);
    return peak_bytes(g) > small && spans > slots_of(sum(t.seen.out, t.out), elsewhere) + little(g);
  }
  // What may stay without a purger: beside what there ever was in spans.
  static std::size_t little(const Global& g) {
    const std::size_t share = g.most_spans.load(std::memory_order_relaxed) / kLittleShare;
    return share > kLeastLittle ? share : kLeastLittle;
  }

  // As long as free slots in spans are few bytes, or few beside what is out.
  static bool may_spread(const PerThread& t, std::size_t elsewhere) {
    const std::size_t spans = sum(t.seen.spans, t.spans);
    const std::size_t slots = slots_of(sum(t.seen.out, t.out), elsewhere);
    return spans <= slots + slots / kSpread + kSpreadFreely;
  }

  // Without what waits, and half of what may be in the bins of threads.
  static std::size_t live_bytes(const PerThread& t) {
    const std::size_t bins = sum(t.seen.bins, t.bins) / 2, all = live(t);
    return all > bins ? all - bins : 0;
  }
  static std::size_t idle_bytes(const Global& g) {
    return waiting_bytes(g) + sum(g.bins.load(std::memory_order_relaxed), 0);
  }
  static std::size_t out_bytes(const Global& g) { return sum(g.out.load(std::memory_order_relaxed), 0); }
  static std::size_t waiting_bytes(const Global& g) {
    return sum(g.waiting.load(std::memory_order_relaxed), 0);
  }
  static std::size_t waiting_bytes(const PerThread& t) { return sum(t.seen.waiting, t.waiting); }
  static std::size_t span_bytes(const Global& g) { return sum(g.spans.load(std::memory_order_relaxed), 0); }
  static std::size_t peak_bytes(const Global& g) { return g.peak.load(std::memory_order_relaxed); }

 private:
  // What there was to purge, at most: pages go back with spans, which are larger than what was in them.
  static std::size_t most_held(const Global& g) {
    const std::size_t spans = g.most_spans.load(std::memory_order_relaxed);
    return spans > peak_bytes(g) ? spans : peak_bytes(g);
  }
  static constexpr unsigned kEntriesPerLook = 16;
  // What threads have counted and not folded: a quarter of recent all together, and so much each.
  static constexpr std::size_t kUnfoldedShare = 4, kUnfoldedMost = kMiB;

  static std::size_t slots_of(std::size_t out, std::size_t elsewhere) {
    return out > elsewhere ? out - elsewhere : 0;
  }
  static std::ptrdiff_t signed_of(std::size_t bytes) { return static_cast<std::ptrdiff_t>(bytes); }
  static bool exceeds(std::ptrdiff_t change, std::ptrdiff_t most) { return change > most || -change > most; }
  static void add(std::atomic<std::size_t>& to, std::ptrdiff_t& change) {
    if (change != 0) to.fetch_add(static_cast<std::size_t>(change), std::memory_order_relaxed);
    change = 0;
  }
  // Not below zero: one thread may tell that bytes went before another tells that they came.
  static std::size_t sum(std::size_t told, std::ptrdiff_t own) {
    const std::ptrdiff_t all = signed_of(told) + own;
    return all > 0 ? static_cast<std::size_t>(all) : 0;
  }

  static void add(Global& g, PerThread& t) {
    const std::size_t returned = t.out < 0 ? static_cast<std::size_t>(-t.out) : 0;
    add(g.out, t.out);
    add(g.waiting, t.waiting);
    add(g.bins, t.bins);
    add(g.spans, t.spans);
    raise(g.peak, out_bytes(g));
    raise(g.most_spans, span_bytes(g));
    raise(g.high, live(g));
    if (returned != 0 && recent(g) > live(g)) fell(g, returned);
  }

  // So much returned to its spans, and live bytes are below what they recently were.
  static void fell(Global& g, std::size_t bytes) {
    const std::uint64_t now = os::milliseconds();
    turn_in_time(g, now);
    if (live(g) + bytes >= recent(g) / kBusy && g.busy_at.load(std::memory_order_relaxed) != now)
      g.busy_at.store(now, std::memory_order_relaxed);
    const bool quiet = now - g.busy_at.load(std::memory_order_relaxed) >= Footprint::kQuietMilliseconds;
    if (g.quiet.load(std::memory_order_relaxed) != quiet) g.quiet.store(quiet, std::memory_order_relaxed);
  }

  static std::size_t live(const Global& g) {
    const std::size_t out = out_bytes(g);
    const std::size_t waiting = waiting_bytes(g);
    return out > waiting ? out - waiting : 0;  // the two are read one after the other
  }
  static std::size_t live(const PerThread& t) {
    const std::size_t out = sum(t.seen.out, t.out);
    const std::size_t waiting = waiting_bytes(t);
    return out > waiting ? out - waiting : 0;
  }
  static std::size_t recent(const PerThread& t) {
    const std::size_t now = live(t);
    return now > t.seen.recent ? now : t.seen.recent;
  }
  static std::size_t spare(const Global& g, const PerThread& t) { return spare(g, t, t.seen.follows); }
  static std::size_t spare_for_waiting(const Global& g, const PerThread& t) {
    return spare(g, t, t.seen.follows && g.waits.load(std::memory_order_relaxed));
  }
  static std::size_t spare(const Global& g, const PerThread& t, bool follows) {
    const std::size_t now = live(t);
    const std::size_t from = follows ? recent(t) : now;
    const std::size_t allowed = from / 100 * least_of(g.percent, g.most_percent);
    return floor(g) + (allowed > now ? allowed - now : 0);
  }
  static std::size_t least_of(const std::atomic<std::size_t>& one, const std::atomic<std::size_t>& other) {
    const std::size_t a = one.load(std::memory_order_relaxed), b = other.load(std::memory_order_relaxed);
    return a < b ? a : b;
  }
  static std::size_t floor(const Global& g) {
    if (has_purger(g)) return least_of(g.floor, g.most_floor);
    return g.alone_floor.load(std::memory_order_relaxed);
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
    const bool missed =
        then != 0 && now - then >= 2 * Footprint::kWindowMilliseconds;  // a window without a look
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
