// SPDX-License-Identifier: Apache-2.0
//
// What the library of a line of boxes does beside allocating: at its load, at the program's end, when it is
// asked about itself. Called by src/export alone.
#pragma once

#include <cerrno>

#include "heap/of_line.hpp"
#include "heap/process/exit_check.hpp"
#include "heap/settings/control.hpp"
#include "heap/views/layout.hpp"
#include "heap/views/stats.hpp"

namespace hz {

template <class Line>
struct Library {
  using S = State<Line>;

  // Options are read when the heap opens, and a program may end without ever allocating.
  static void at_load() {
    Start<Line>::open();
    Forks<Line>::hook_forks();
    Extensions::at_load(S::tls().walking);
    if (prints_stats() || writes_profile() || Extensions::records()) os::before_termination(&when_terminated);
  }
  // A signal handler that calls exit may have interrupted this thread with a lock.
  static void at_exit() {
    if (os::is_process_ending() || Forks<Line>::is_inside()) return when_terminated();
    if (prints_stats()) Stats<Line>::print_last();
    write_profile();
    write_heap_profile(nullptr);
    ExitCheck<Line>::run();
  }
  // Whether what redirects malloc (export/windows_redirect) is to do so; the same.
  static bool redirects() { return Start<Line>::open() && Start<Line>::options.redirect; }
  static void before_load() { Extensions::before_load(); }  // called by dlopen (export/dlopen)
  // Returns true if dlopen (export/dlopen) passes RTLD_DEEPBIND on; the same.
  static bool keeps_deepbind() { return Start<Line>::open() && Start<Line>::options.keep_deepbind; }
  // Where the loader has not yet written the first contents of thread-local storage.
  static void prepare_thread() { S::show(S::tls(), S::empty); }

  // False where the heap does not observe, or names no file, or it cannot be written.
  static bool write_profile() {
    using Policy = typename Line::Policy;
    return writes_profile() &&
           Profile::write_file({Policy::watched(), Policy::decisions(), Policy::peak()}, Line::kName);
  }

  // False where none is kept, or it cannot be written. Null: where the user said.
  static bool write_heap_profile(const char* path) { return Extensions::write(path, Line::kName, 0); }

  static hz_stats_t stats() { return Stats<Line>::read(); }
  static void print_stats(StatsFormat format) { Stats<Line>::print(format); }
  static std::size_t runs() { return S::global.huge_blocks.load(std::memory_order_relaxed); }
  // Without samples of the heap profile, which others may add and end meanwhile.
  static std::size_t huge_blocks() {
    return less(S::global.huge_blocks.load(std::memory_order_relaxed), Extensions::samples());
  }
  static std::size_t huge_bytes() {
    return less(S::global.huge_bytes.load(std::memory_order_relaxed), Extensions::sample_bytes());
  }
  // Whether a thread of ours may return memory while the program is idle.
  static bool has_background() { return Start<Line>::options.background; }
  // So many free bytes may stay in any case.
  static void set_floor(std::size_t bytes) { Line::Retain::set(S::global.retain, {.floor = bytes}); }

  // --- for Control

  static Options settings() {
    Start<Line>::open();
    typename S::Global& g = S::global;
    Options now = Start<Line>::options;
    now.report_only =
        FaultReport::on_invalid.load(std::memory_order_relaxed) == FaultReport::OnInvalid::kReport;
    now.thread_cache = g.thread_budget.load(std::memory_order_relaxed);
    const RetainSettings retain = Line::Retain::settings(g.retain);
    now.retain = retain.percent;
    now.retain_floor = retain.floor;
    const Limits limits = Line::Source::limits(g.source);
    now.limit_soft = limits.soft;
    now.limit_hard = limits.hard;
    now.cap = Line::Policy::cap();
    now.heap_profile = Sampling::rates().interval;
    now.guard_sample = Sampling::rates().every;
    return now;
  }
  static const char* lacks(Setting) { return nullptr; }
  static Outcome change(Setting setting, const Options& before, const Options& wanted) {
    typename S::Global& g = S::global;
    switch (setting) {
      case Setting::kThreadCache:
        g.thread_budget.store(wanted.thread_cache, std::memory_order_relaxed);
        break;
      case Setting::kRetain: Line::Retain::set(g.retain, {.percent = wanted.retain}); break;
      case Setting::kRetainFloor: set_floor(wanted.retain_floor); break;
      case Setting::kLimitSoft: Line::Source::limit(g.source, wanted.limit_soft, {}); break;
      case Setting::kLimitHard: Line::Source::limit(g.source, {}, wanted.limit_hard); break;
      case Setting::kOnInvalid: FaultReport::set_on_invalid(wanted.report_only); break;
      case Setting::kHeapProfile:
      case Setting::kGuardSample: return change_samples(setting, before, wanted);
      case Setting::kLearning:
        Line::Policy::change(before.cap, wanted.cap);
        S::set_bounds(os::microseconds());
        break;
      case Setting::kStartOnly: break;
    }
    return {0, ""};
  }
  static Outcome act(Action action) {
    switch (action) {
      case Action::kTrim: return {0, Heap<Line>::trim(0) ? "1" : "0"};
      case Action::kPurge: return {0, Heap<Line>::purge() ? "1" : "0"};
      case Action::kWriteStats: Stats<Line>::print_last(); break;
      case Action::kWriteProfile:
        if (Start<Line>::options.learning != Learning::kObserve)
          return {ENOTSUP, "the heap does not observe: HZ_POLICY=observe when the program starts"};
        if (!Profile::has_file())
          return {ENOTSUP, "no file is named for it: HZ_PROFILE when the program starts"};
        if (!write_profile()) return {EIO, "the file cannot be written"};
        break;
      case Action::kWriteHeapProfile:
        if (!Extensions::records()) return {ENOTSUP, "no heap profile is kept: set profile_heap first"};
        if (!write_heap_profile(nullptr)) return {EIO, "the file cannot be written"};
    }
    return {0, "1"};
  }
  static void begin_thread() { S::tls().heap = &S::shared; }
  static os::LongMessage& compose(os::LongMessage& message) { return Stats<Line>::compose(message); }

 private:
  static constexpr unsigned kPatience = 100;  // milliseconds

  static std::size_t less(std::size_t from, std::size_t what) { return from > what ? from - what : 0; }

  // One thread at a time, and none that waits: the loader's lock is taken meanwhile, and who holds that may
  // ask for the same.
  static Outcome change_samples(Setting setting, const Options& before, const Options& wanted) {
    static constinit os::Turn turn;
    const os::Turn::Mine mine(turn);
    if (!mine.is()) return {EBUSY, "another thread is at it"};
    const bool profiles = setting == Setting::kHeapProfile && wanted.heap_profile != 0;
    if (profiles) Options::keep_heap_profile_file();
    if (!Extensions::change(before.rates(), wanted.rates(), Line::kName, S::tls().walking))
      return {ENOMEM, "there is no memory for it"};
    if (profiles) os::before_termination(&when_terminated);
    return {0, ""};
  }

  // In a signal handler, or when a lock may be held by nobody.
  static void when_terminated() {
    if (prints_stats()) Stats<Line>::print_interrupted();
    write_profile();
    Extensions::write(nullptr, Line::kName, kPatience);
  }
  static bool writes_profile() {
    return Start<Line>::options.learning == Learning::kObserve && Profile::has_file();
  }
  static bool prints_stats() { return Start<Line>::options.stats != StatsFormat::kNone; }
};

}  // namespace hz
