// SPDX-License-Identifier: Apache-2.0
//
// The heap's start: what is asked of the system and of the environment, once, by whoever comes first. Called
// by a thread's birth and by those who need a heap without one; a load afterwards.
#pragma once

#include <array>

#include "base/text.hpp"
#include "heap/settings/options.hpp"
#include "heap/settings/profile.hpp"
#include "heap/state/mitigation.hpp"
#include "heap/state/tables.hpp"

namespace hz {

template <class Line>
struct Threads;

template <class Line>
struct Start {
  using S = State<Line>;
  using Hold = typename S::Hold;

  static inline constinit Options options;

  static bool is_open() { return S::global.open.load(std::memory_order_relaxed); }

  // Whether the heap exists; the first caller builds it. False if not even a small arena can be had.
  static bool open() {
    // Acquire: pairs with the store in build(); what was built is visible.
    return HZ_LIKELY(S::global.open.load(std::memory_order_acquire)) || build();
  }

 private:
  // All that is ever asked of the system is asked here: later a program may have forbidden itself to ask
  // (doc/life.md, "System calls").
  HZ_COLD static bool build() {
    typename S::Global& g = S::global;
    const Hold hold(g.threads_lock);
    if (g.open.load(std::memory_order_relaxed)) return true;
    options.read();
    os::prefer_huge_pages(options.huge_pages);
    os::name_mappings(options.name_mappings);
    if (void* page = os::map_wiped_on_fork()) {
      auto* const own = ::new (page) os::OfProcess;
      own->heap.store(S::kThisProcess, std::memory_order_relaxed);
      os::of_process.store(own, std::memory_order_release);    // pairs with its readers
      g.process.store(&own->heap, std::memory_order_release);  // pairs with Forks::process_word()
    }
    MitigationOf<Line>::open();
    Extensions::open(options.rates(), Line::kName);
    os::Lock::know_processors(os::usable_cpus());
    os::note_process();
    if (options.background) os::prepare_barrier();
    if (!Tables<Line>::open(g)) return false;
    Threads<Line>::join_nobodys(S::shared);
    Threads<Line>::join_nobodys(S::purger_state);
    apply_options();
    Tables<Line>::open_route(g);
    // Release: pairs with open().
    g.open.store(true, std::memory_order_release);
    return true;
  }

  static void apply_options() {
    typename S::Global& g = S::global;
    g.counting.store(options.stats != StatsFormat::kNone, std::memory_order_relaxed);
    // For the line, and for a profile that cannot be written.
    if (options.stats != StatsFormat::kNone || options.learning == Learning::kObserve)
      os::keep_error_stream();
    Line::Policy::set_learning(options.learning, options.cap, os::usable_cpus());
    if (options.thread_cache != 0) g.thread_budget.store(options.thread_cache, std::memory_order_relaxed);
    apply_preset();
    Line::Source::limit(g.source, options.limit_soft, options.limit_hard);
    Line::Retain::set(g.retain, {.percent = options.retain, .floor = options.retain_floor});
    apply_learning();
    FaultReport::set_on_invalid(options.report_only);
  }

  // Before there is a block.
  static void apply_learning() {
    if (options.learning != Learning::kObserve) {
      if (Profile::has_file() && Profile::start_from_file().small && options.preset[0] == 0) fixed("small");
    } else if (!Profile::has_file()) {
      Profile::warn_of_no_file();
    }
  }

  // One of the line's, or of those that every line has, which a heap that learns takes as a rule to go by.
  static void apply_preset() {
    const TextView name = options.preset;
    if (name.empty()) return;
    if (const Preset* const own = preset_among(kPresets, name)) return set(*own);
    if (!fixed(name)) options.warn_of_preset(Line::kName);
  }
  // Of those that every line has. A heap that learns goes by its rule; small is one for any heap; the others
  // are values then.
  static bool fixed(TextView name) {
    if (!Line::Policy::fix(name)) return false;
    if (name == "small") S::set_bounds(os::microseconds());
    const Preset* const values = preset_among(kCommon, name);
    if (options.learning != Learning::kLearn && values != nullptr) set(*values);
    return true;
  }
  static void set(const Preset& preset) {
    typename S::Global& g = S::global;
    if (options.thread_cache == 0) g.thread_budget.store(preset.thread_cache, std::memory_order_relaxed);
    Line::Retain::set(g.retain, {.percent = options.retain == 0 ? preset.retain : 0, .floor = preset.floor});
    if constexpr (kBounded) Line::Policy::set(preset.bins);
  }
  static constexpr Preset kCommon[] = {
      {.name = "fast", .thread_cache = Line::kThreadCacheMost, .retain = 200, .floor = 16 * kMiB},
      {.name = "remote", .thread_cache = kMiB, .retain = 200, .floor = 32 * kMiB}};
  static constexpr auto kPresets = [] {
    if constexpr (requires { Line::kPresets; })
      return std::to_array(Line::kPresets);
    else
      return std::array<Preset, 0>{};
  }();
  static constexpr bool kBounded = [] {
    bool any = false;
    for (const Preset& one : kPresets) any |= one.bins.small != 0 || one.bins.run != 0 || one.bins.large != 0;
    return any;
  }();
};

}  // namespace hz
