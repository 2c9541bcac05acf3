// SPDX-License-Identifier: Apache-2.0
//
// A policy that watches its program, as far as HZ_POLICY says. It has the capacities and budgets of `Rules`.
// `sizes`, the default, assigns spare classes: it notes the size that was missing at each new span. On demand
// it observes all sizes and the share of the program's time at the boundary. `observe` records what it would
// do, for the profile that is written when the process exits. `learn` does it: it assigns spare classes,
// gives memory to threads that spend time at the boundary and little to others, and tries presets. While
// neither is on, a slow path costs one load for it. Used by all lines of boxes.
#pragma once

#include <utility>

#include "base/text.hpp"
#include "box/policy/contract.hpp"
#include "box/policy/rating.hpp"
#include "box/policy/tempo.hpp"

namespace hz {

template <class Rules>
struct Learned : Rules {
  struct PerThread : Rules::PerThread {
    Tempo::Thread tempo;
    unsigned stands_for = 0;  // refills, or new spans, of the next size; 0: it is not noted
  };

  static std::size_t budget(const PerThread& t, const Allowance& a) {
    const std::size_t usual = Rules::budget(t, a), most = limit(t);
    return a.asked != 0 || usual < most ? usual : most;
  }
  static bool is_over(const PerThread& t, const Allowance& a, std::size_t bytes) {
    return a.asked != 0 ? Rules::is_over(t, a, bytes) : bytes > limit(t);
  }

  // What it decided for the process.
  struct Process {
    std::atomic<bool> tight{false};
    std::atomic<unsigned> turns{0}, moves{0};
  };
  static inline constinit Process process;
  static constexpr auto words() {
    return layout::Words<3>{layout::Word("policy.tight", offsetof(Process, tight), 1),
                            {"policy.turns", offsetof(Process, turns), sizeof(unsigned)},
                            {"policy.moves", offsetof(Process, moves), sizeof(unsigned)}};
  }

  // Once, when the heap opens.
  static void set_learning(Learning learning, const Cap& bounds, unsigned processors) {
    tempo.set(bounds.busy, processors);
    caps.classes.set(bounds.classes);
    caps.cache.set(bounds.cache);
    caps.retain.set(bounds.retain);
    caps.looks.set(bounds.looks);
    caps.busy.set(bounds.busy);
    caps.purger.set(bounds.purger);
    word.set(static_cast<std::uint8_t>(learning));
  }
  static Cap cap() {
    return {.classes = caps.classes.get(),
            .cache = caps.cache.get(),
            .retain = caps.retain.get(),
            .looks = caps.looks.get(),
            .busy = caps.busy.get(),
            .purger = caps.purger.get()};
  }
  static void change(const Cap& from, const Cap& to) {
    if (to.classes != from.classes) caps.classes.set(to.classes);
    if (to.cache != from.cache) caps.cache.set(to.cache);
    if (to.retain != from.retain) caps.retain.set(to.retain);
    if (to.looks != from.looks) caps.looks.set(to.looks);
    if (to.purger != from.purger) caps.purger.set(to.purger);
    if (to.busy == from.busy) return;
    caps.busy.set(to.busy);
    tempo.set_busy(to.busy);
  }
  HZ_INLINE static bool watches() { return HZ_UNLIKELY(mode() >= Learning::kObserve); }

  // Sizes are recorded in timed crossings and for new spans alone: all threads share the words.
  HZ_INLINE static bool notes_size(const PerThread& t) { return HZ_UNLIKELY(t.stands_for != 0); }
  HZ_COLD static void refilled(PerThread& t, Bin bin, std::size_t size, unsigned slots) {
    const unsigned stands_for = std::exchange(t.stands_for, 0);
    watch.asked(size, stands_for * slots);
    if (!watches() && SizeWatch::may_save(bin, size)) grown(bin, stands_for);
  }
  // `sizes` counts spans that were made for a size that wastes much, and does not subtract those that end.
  HZ_INLINE static void span_acquired(PerThread& t, Bin bin) {
    const Learning now = mode();
    if (HZ_LIKELY(now == Learning::kSizes))
      ++t.stands_for;
    else if (now != Learning::kFrozen)
      grown(bin, 1);
  }
  static void span_retired(Bin bin) { watch.retired(bin); }

  static bool is_timed(PerThread& t) {
    const bool timed = Tempo::is_timed(t.tempo);
    t.stands_for = Tempo::stands_for(t.tempo);
    return timed;
  }
  static bool crossed(PerThread& t, std::uint64_t begin, std::uint64_t end) {
    return tempo.crossed(t.tempo, begin, end);
  }
  static Bounds bounds(std::uint64_t now) {
    const bool is_tight = small.get() || (learns() && tempo.is_tight(now));
    if (process.tight.exchange(is_tight, std::memory_order_relaxed) != is_tight)
      process.turns.fetch_add(1, std::memory_order_relaxed);
    if (!is_tight) return {};
    return {.percent = caps.retain.get(), .floor = kTightFloor, .follows = false};
  }
  static unsigned purger_rest(unsigned usual, std::uint64_t spent) {
    const unsigned frozen = Rules::purger_rest(usual, spent);
    const unsigned share = caps.purger.get();
    if (!learns() || share == 0) return frozen;
    const std::uint64_t least = spent * Tempo::kAll / share / 1000;
    const std::uint64_t most = std::uint64_t{kMostRests} * frozen;
    return least <= frozen ? frozen : static_cast<unsigned>(least < most ? least : most);
  }
  static unsigned looks() { return process.tight.load(std::memory_order_relaxed) ? caps.looks.get() : 0; }

  // A thread that comes while another one is at it goes on: the next window is near.
  static void holds(std::uint64_t now, const Held& held) {
    if (!watches() || taken.exchange(true, std::memory_order_acquire)) return;
    if (held.all() > largest.all()) largest = held;
    const Tempo::Spent so_far = tempo.spent_so_far();
    const bool lost = learns() && so_far.all >= kLeastRound && rating.is_lost(so_far.share());
    if (tempo.ends_round(now, lost ? 0 : Tempo::kRound, latest)) end_round(held);
    taken.store(false, std::memory_order_release);
  }
  static Held peak() {
    if (taken.exchange(true, std::memory_order_acquire)) return {};
    const Held held = largest;
    taken.store(false, std::memory_order_release);
    return held;
  }
  static bool fix(TextView name) {
    for (unsigned i = 0; i < Tempo::kPresetCount; ++i) {
      if (name != Tempo::kPresets[i].name) continue;
      rating.fix(i);
      tempo.choose(i);
      small.set(Tempo::kPresets[i].roomy_from == Tempo::kNever);
      return true;
    }
    return false;
  }

  // In the child of a fork: the thread that was at it does not exist.
  static void begin_process() {
    if (taken.load(std::memory_order_relaxed)) taken.store(false, std::memory_order_relaxed);
  }

  static const SizeWatch& watched() { return watch; }
  static Decisions decisions() {
    const Tempo::Windows counted = tempo.windows();
    return {.tight = process.tight.load(std::memory_order_relaxed),
            .calm = counted.all >= kLeastWindows && counted.busy <= counted.all / kSeldom,
            .windows = counted.all,
            .busy = counted.busy,
            .turns = process.turns.load(std::memory_order_relaxed),
            .preset = tempo.preset().name,
            .moves = process.moves.load(std::memory_order_relaxed)};
  }

 private:
  // A thousandth of a thread's time is worth as much as kBytesForTime thousandths of memory.
  static constexpr unsigned kBytesForTime = 8;
  static constexpr std::size_t kLittle = 32 * kMiB;  // a process that is small is not to be made smaller
  static constexpr unsigned kMostRests = 8;          // usual ones: memory comes back all the same
  static constexpr unsigned kLeastWindows = 8, kSeldom = 8;
  static constexpr std::uint64_t kLeastRound = Tempo::kRound / 8;  // microseconds of all threads
  static_assert(Rating::kPlayers == Tempo::kPresetCount);
  static constexpr std::size_t kTightFloor = kMiB;  // free bytes that may stay in a tight process

  HZ_INLINE static Learning mode() { return static_cast<Learning>(word.get()); }
  static bool learns() { return mode() == Learning::kLearn; }

  static void grown(Bin bin, unsigned spans) {
    if (!watch.acquired(bin, spans) || mode() == Learning::kObserve) return;
    const SizeWatch::Choice choice = watch.choose(bin, watch.spans(bin));
    if (choice.size == 0 || classes.dealt() >= caps.classes.get() || !classes.deal(choice.size))
      watch.forget_half(bin);
  }
  static void end_round(const Held& held) {
    if (!learns() || latest.all < kLeastRound) return;  // hardly any thread was at work: no evidence
    tempo.choose(rating.round(cost_of(latest, held)));
    process.moves.store(rating.moves(), std::memory_order_relaxed);
  }
  // Spans that slots keep open do not count: no setting changes them.
  static unsigned cost_of(const Tempo::Spent& spent, const Held& held) {
    const std::size_t all = held.all() - held.in_spans + kLittle;
    const std::size_t idle = held.idle() / kKiB * Tempo::kAll / (all / kKiB);
    return spent.share() + static_cast<unsigned>(idle) / kBytesForTime;
  }
  static std::size_t limit(const PerThread& t) {
    if (small.get()) return caps.cache.get();
    if (!learns() || t.tempo.halvings == 0) return ~std::size_t{0};
    return caps.cache.get() << (Tempo::kMostHalvings - t.tempo.halvings);
  }

  static inline constinit OnceWord<std::uint8_t> word{0};  // a Learning
  static inline constinit OnceWord<bool> small{false};     // by the user or a profile
  // Cap, of which each can be set later.
  struct Caps {
    OnceWord<unsigned> classes, retain, looks, busy, purger;
    OnceWord<std::size_t> cache;
  };
  static inline constinit Caps caps;
  static inline constinit SizeWatch watch;
  static inline constinit Tempo tempo;
  static inline constinit std::atomic<bool> taken{false};
  // Written by the thread that has `taken`.
  static inline constinit Rating rating;
  static inline constinit Tempo::Spent latest;
  static inline constinit Held largest;
};

}  // namespace hz
