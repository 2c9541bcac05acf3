// SPDX-License-Identifier: Apache-2.0
//
// What the library of a line of boxes does beside allocating: at its load, at the program's end, when it is
// asked about itself. Called by src/export alone.
#pragma once

#include "heap/exit_check.hpp"
#include "heap/layout.hpp"
#include "heap/of_line.hpp"
#include "heap/stats.hpp"

namespace hz {

template <class Line>
struct Library {
  using S = State<Line>;

  // Options are read when the heap opens, and a program may end without ever allocating.
  static void at_load() {
    Start<Line>::open();
    Forks<Line>::hook_forks();
    if (prints_stats() || writes_profile()) os::before_termination(&when_terminated);
  }
  static void at_exit() {
    if (os::is_process_ending()) return when_terminated();
    if (prints_stats()) Stats<Line>::print_last();
    write_profile();
    ExitCheck<Line>::run();
  }
  // Whether what redirects malloc (export/windows_redirect) is to do so; the same.
  static bool redirects() { return Start<Line>::open() && Start<Line>::options.redirect; }
  // Where the loader has not yet written the first contents of thread-local storage.
  static void prepare_thread() { S::tls().fast.store(&S::empty, std::memory_order_relaxed); }

  // False where the heap does not observe, or names no file, or it cannot be written.
  static bool write_profile() {
    using Policy = typename Line::Policy;
    return writes_profile() &&
           Profile::write_file({Policy::watched(), Policy::decisions(), Policy::peak()}, Line::kName);
  }

  static hz_stats_t stats() { return Stats<Line>::read(); }
  static void print_stats(StatsFormat format) { Stats<Line>::print(format); }
  static std::size_t huge_blocks() { return S::global.huge_blocks.load(std::memory_order_relaxed); }
  static std::size_t huge_bytes() { return S::global.huge_bytes.load(std::memory_order_relaxed); }
  // Whether a thread of ours may return memory while the program is idle.
  static bool has_background() { return Start<Line>::options.background; }
  // So many free bytes may stay in any case.
  static void set_floor(std::size_t bytes) { Line::Retain::set(S::global.retain, {.floor = bytes}); }

 private:
  // In a signal handler, or when a lock may be held by nobody.
  static void when_terminated() {
    if (prints_stats()) Stats<Line>::print_interrupted();
    write_profile();
  }
  static bool writes_profile() {
    return Start<Line>::options.learning == Learning::kObserve && Profile::has_file();
  }
  static bool prints_stats() { return Start<Line>::options.stats != StatsFormat::kNone; }
};

}  // namespace hz
