// SPDX-License-Identifier: Apache-2.0
//
// What the library of a heap of one lock does beside allocating: statistics, control, and what answers that
// this heap has no first-class heaps and no walks. Called by src/export; never by a malloc or free.
#pragma once

#include "heap/of_line.hpp"
#include "heap/one_lock/heap.hpp"
#include "heap/settings/control.hpp"
#include "heap/settings/stats_line.hpp"

namespace hz::one_lock {

// There are no first-class heaps, so no handle is one of a heap.
template <class Line>
struct Heaps {
  static HeapHandle begin() {
    errno = ENOSYS;
    return 0;
  }
  static void* malloc(HeapHandle handle, std::size_t) { return refuse(handle); }
  static void* allocate(HeapHandle handle, std::size_t, std::size_t) { return refuse(handle); }
  static void* zeroed(HeapHandle handle, std::size_t, std::size_t) { return refuse(handle); }
  static void* realloc(HeapHandle handle, const void*, std::size_t) { return refuse(handle); }
  static void destroy(HeapHandle handle) { refuse(handle); }
  static void remove(HeapHandle handle) { refuse(handle); }

 private:
  static void* refuse(HeapHandle handle) {
    Heap<Line>::report(Fault::kNoHeap, pointer(handle), 0);
    errno = EINVAL;
    return nullptr;
  }
};

// Blocks cannot be walked over.
template <class Line>
struct Walk {
  static int all(auto, void*) { return refuse(); }
  static int of_heap(HeapHandle, auto, void*) { return refuse(); }
  static int figures(HeapHandle, const auto&) { return refuse(); }

 private:
  static int refuse() {
    errno = ENOSYS;
    return -1;
  }
};

// What the library does beside allocating.
template <class Line>
struct Library {
  using H = Heap<Line>;
  using Hold = HeapLock::Hold;

  static void at_load() {
    H::open();
    if (prints_stats()) os::before_termination(&print_last);
  }
  static void at_exit() {
    if (prints_stats()) print_last();
  }
  static void prepare_thread() {}
  static bool redirects() {
    H::open();
    return H::options.redirect;
  }
  static void before_load() {}
  static bool keeps_deepbind() {
    H::open();
    return H::options.keep_deepbind;
  }

  static bool write_profile() { return false; }  // it has no policy
  // Every free would have to ask whether its block is a sample.
  static bool write_heap_profile(const char*) { return false; }

  static hz_stats_t stats() {
    const Hold hold;
    return read();
  }
  static void print_stats(StatsFormat format) {
    os::LongMessage m;
    compose_stats(m, Line::kName, stats(), format, false).send();
  }
  static std::size_t huge_blocks() { return Account::huge_blocks; }
  static std::size_t runs() { return Account::huge_blocks; }
  static std::size_t huge_bytes() { return Account::huge_bytes; }
  static void set_floor(std::size_t bytes) {
    const Hold hold;
    H::floor = bytes;
  }

  // --- for Control

  static Options settings() {
    H::open();
    Options now = H::options;
    now.report_only =
        FaultReport::on_invalid.load(std::memory_order_relaxed) == FaultReport::OnInvalid::kReport;
    const Hold hold;
    now.retain = H::retain;
    now.retain_floor = H::floor;
    const Limits limits = Account::limits.now();
    now.limit_soft = limits.soft;
    now.limit_hard = limits.hard;
    return now;
  }
  static const char* lacks(Setting setting) {
    return setting == Setting::kThreadCache   ? "no thread of this line caches anything"
           : setting == Setting::kLearning    ? "this line has no policy"
           : setting == Setting::kHeapProfile ? "this line keeps no heap profile"
           : setting == Setting::kGuardSample ? "this line has no guarded pages"
                                              : nullptr;
  }
  static Outcome change(Setting setting, const Options&, const Options& wanted) {
    if (setting == Setting::kOnInvalid) FaultReport::set_on_invalid(wanted.report_only);
    const Hold hold;
    if (setting == Setting::kRetain) H::retain = wanted.retain;
    if (setting == Setting::kRetainFloor) H::floor = wanted.retain_floor;
    if (setting == Setting::kLimitSoft) Account::limits.set(wanted.limit_soft, {});
    if (setting == Setting::kLimitHard) Account::limits.set({}, wanted.limit_hard);
    return {0, ""};
  }
  static Outcome act(Action action) {
    switch (action) {
      case Action::kTrim: return {0, H::trim(0) ? "1" : "0"};
      case Action::kPurge: {
        const Hold hold;
        return {0, Regions::purge(0) ? "1" : "0"};
      }
      case Action::kWriteStats: print_last(); return {0, "1"};
      case Action::kWriteProfile: break;
      case Action::kWriteHeapProfile: return {ENOTSUP, "this line keeps no heap profile"};
    }
    return {ENOTSUP, "this line has no policy"};
  }
  static void begin_thread() {}
  static os::LongMessage& compose(os::LongMessage& message) {
    return compose_stats(message, Line::kName, stats(), StatsFormat::kText, false);
  }

 private:
  static constexpr unsigned kPatience = 100;  // milliseconds

  static bool prints_stats() { return H::options.stats != StatsFormat::kNone; }

  // Perhaps in a signal handler, or called by one: what the thread was at that it interrupted may have the
  // lock.
  static void print_last() {
    const HeapLock::TimedHold hold(kPatience);
    os::LongMessage m;
    compose_stats(m, Line::kName, read(), H::options.stats, !hold.has_lock()).send_as_statistics();
  }
  static hz_stats_t read() {
    const auto& counts = H::counts;
    hz_stats_t s = {};
    s.counting = 1;
    s.alloc_small = counts.allocs[0];
    s.alloc_medium = counts.allocs[1];
    s.alloc_large = counts.allocs[2];
    s.free_small = counts.frees[0];
    s.free_medium = counts.frees[1];
    s.free_large = counts.frees[2];
    s.spans_acquired = Account::begun;
    s.spans_retired = Account::ended;
    s.purges = Account::purges;
    s.bytes_held = s.bytes_live = counts.live;
    s.bytes_dirty = Account::dirty_bytes;
    s.bytes_purged = Account::purged_bytes;
    s.bytes_metadata = Account::metadata_bytes();
    s.bytes_peak = counts.peak;
    return s;
  }
};

}  // namespace hz::one_lock
