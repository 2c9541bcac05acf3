// SPDX-License-Identifier: Apache-2.0
//
// How much of its time does a program spend at the boundary? More cache and more retention can save no more
// than that (Amdahl's law), so memory is given to threads and processes that would gain by it, and taken from
// those that would not. Fed by a policy that learns, with the times of about kSamples crossings a window: of
// each crossing of a thread that seldom crosses, of one in many where they are many. Costs a comparison for a
// crossing that is not timed, a few additions for one that is. The same times in the same order give the same
// answers.
//
//   a thread    at the end of each window: busy from `cache_from` on, then it may cache what it likes;
//               below `calm_below` its limit is halved, down to what the bounds leave it (Cap::cache)
//   the process is roomy while a quarter of the windows of its threads are busy, from `roomy_from` on;
//               tight when that is kCalm ago
//
// Shares are of wall-clock time, times the threads that a processor has to serve. Without that a thread that
// waits for a processor would look calmer than it is. A thread that sleeps does.
#pragma once

#include <atomic>

#include "base/plain_word.hpp"
#include "base/units.hpp"

namespace hz {

class Tempo {
 public:
  static constexpr unsigned kSamples = 128;  // crossings that are timed in a window, once their rate is known
  static constexpr std::uint64_t kWindow = 4096, kCalm = 65536, kRound = 131072;  // microseconds
  static constexpr unsigned kAll = 1024;                                          // shares are parts of it
  static constexpr unsigned kNever = ~0U / kAll;
  // One window counts for a kMemory-th, and for no more than so many eighths of busy; one slow path for no
  // more than kLongest: a thread that lost its processor, or purged pages, is not busy.
  static constexpr unsigned kMemory = 4, kMostOfOne = 20;
  static constexpr unsigned kWindows = 16, kRoomyPart = kAll / 4;
  static constexpr std::uint64_t kLongest = 64;  // microseconds

  // Shares of time at which memory is given and taken, in eighths of what the bounds call busy.
  struct Preset {
    const char* name;
    unsigned roomy_from, cache_from, calm_below;
  };
  static constexpr Preset kPresets[] = {
      {"balanced", 8, 4, 1},
      {"fast", 0, 0, 0},                  // never less than a frozen heap
      {"small", kNever, kNever, kNever},  // never more than the least
      {"remote", 3, 16, 8},               // what waits for others is worth more than what threads have
  };
  static constexpr unsigned kPresetCount = sizeof kPresets / sizeof *kPresets;

  // A thread's part. All zero: it has done nothing.
  struct Thread {
    std::uint64_t began = 0;   // the window
    std::uint32_t inside = 0;  // microseconds of it at the boundary, of all crossings
    std::uint32_t skips = 0;   // so many crossings between two that are timed: even, for refills and flushes
    std::uint32_t passed = 0;  // ... may alternate; and how many have passed
    std::uint32_t samples = 0;
    unsigned share = 0;     // of late
    unsigned halvings = 0;  // of its limit; 0: it has none
  };
  static constexpr unsigned kMostHalvings = 5;

  // What all threads together spent since the round began; microseconds.
  struct Spent {
    std::uint64_t inside = 0, all = 0;
    unsigned waiters = 1;  // threads for each processor
    unsigned share() const { return all == 0 ? 0 : static_cast<unsigned>(inside * kAll / all) * waiters; }
  };

  // Once, before the first crossing.
  void set(unsigned busy_share, unsigned processors) {
    set_busy(busy_share);
    processors_.set(processors == 0 ? 1 : processors);
  }
  void set_busy(unsigned busy_share) { busy_.set(busy_share); }

  static bool is_timed(Thread& t) {
    if (t.passed++ < t.skips) return false;
    t.passed = 0;
    return true;
  }
  // For so many crossings the one stands that was last said to be timed; 0: another one is under way.
  static unsigned stands_for(const Thread& t) { return t.passed == 0 ? t.skips + 1 : 0; }

  // A timed crossing is over: whether that ended a window.
  bool crossed(Thread& t, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t spent = end - begin;
    t.inside += static_cast<std::uint32_t>(spent < kLongest ? spent : kLongest) * (t.skips + 1);
    if (t.began == 0) t.began = begin;
    const std::uint64_t all = end - t.began;
    if (++t.samples == kSamples) sample_fewer(t);
    if (all < kWindow) return false;
    sample_more(t);
    const std::uint64_t inside = t.inside < all ? t.inside : all;
    end_window(t, static_cast<unsigned>(inside * kAll / all) * waiters_.load(std::memory_order_relaxed), end);
    // A thread that slept was not present.
    const std::uint64_t present = all < 2 * kWindow ? all : 2 * kWindow;
    all_.fetch_add(present, std::memory_order_relaxed);
    inside_.fetch_add(inside < present ? inside : present, std::memory_order_relaxed);
    t.began = end;
    t.inside = 0;
    t.samples = 0;
    return true;
  }
  // Whether memory is scarce by choice. Asked by the purger, too, for threads that do not cross.
  bool is_tight(std::uint64_t now) {
    const Preset& p = preset();
    if (p.roomy_from == 0 || p.roomy_from == kNever) return p.roomy_from != 0;
    std::atomic<std::uint64_t>& busy_at = busy_at_[bar_of(p)];
    const std::uint64_t at = busy_at.load(std::memory_order_relaxed);
    if (at == 0) busy_at.store(now, std::memory_order_relaxed);
    return at != 0 && now > at && now - at > kCalm;
  }

  const Preset& preset() const { return kPresets[preset_.load(std::memory_order_relaxed)]; }
  void choose(unsigned preset) { preset_.store(preset, std::memory_order_relaxed); }

  // Of all windows that ended, how many were of busy threads.
  struct Windows {
    std::uint64_t busy = 0, all = 0;
  };
  Windows windows() const {
    return {busy_windows_.load(std::memory_order_relaxed), windows_.load(std::memory_order_relaxed)};
  }
  Spent spent_so_far() const {
    return {inside_.load(std::memory_order_relaxed), all_.load(std::memory_order_relaxed),
            waiters_.load(std::memory_order_relaxed)};
  }
  // Returns true to one caller when a round is over, with the time that was spent in it.
  bool ends_round(std::uint64_t now, std::uint64_t length, Spent& spent) {
    std::uint64_t began = round_began_.load(std::memory_order_relaxed);
    if (began != 0 && (now < began || now - began < length)) return false;
    const std::uint64_t began_before = began;
    if (!round_began_.compare_exchange_strong(began, now, std::memory_order_relaxed)) return false;
    spent = {inside_.exchange(0, std::memory_order_relaxed), all_.exchange(0, std::memory_order_relaxed),
             waiters_.load(std::memory_order_relaxed)};
    const std::uint64_t passed = now - began_before;
    const std::uint64_t waiters = passed == 0 ? 0 : spent.all / passed / processors_.get();
    waiters_.store(waiters < 1 ? 1 : static_cast<unsigned>(waiters), std::memory_order_relaxed);
    return began_before != 0;
  }

 private:
  // Bars for the process: that of `balanced` and that of `remote`. Both are kept, whichever preset is in
  // force: one that is tried leaves nothing behind.
  static constexpr unsigned kBars[] = {8, 3};
  static unsigned bar_of(const Preset& p) { return p.roomy_from == kBars[1] ? 1 : 0; }

  static void sample_fewer(Thread& t) {
    t.skips = 2 * t.skips + 2;
    t.samples = kSamples / 2;
  }
  static void sample_more(Thread& t) {
    for (unsigned n = t.samples; n < kSamples / 4 && t.skips != 0; n *= 2) t.skips = t.skips / 2 - 1;
  }

  unsigned from(unsigned eighths) const { return eighths == kNever ? kNever : eighths * busy_.get() / 8; }

  void end_window(Thread& t, unsigned share, std::uint64_t now) {
    const Preset& p = preset();
    const unsigned most = from(kMostOfOne);
    t.share = ((kMemory - 1) * t.share + (share < most ? share : most)) / kMemory;
    windows_.fetch_add(1, std::memory_order_relaxed);
    if (t.share >= busy_.get()) busy_windows_.fetch_add(1, std::memory_order_relaxed);
    for (unsigned bar = 0; bar < 2; ++bar) {
      const unsigned was = part_[bar].load(std::memory_order_relaxed);
      const unsigned part = ((kWindows - 1) * was + (t.share >= from(kBars[bar]) ? kAll : 0)) / kWindows;
      part_[bar].store(part, std::memory_order_relaxed);
      if (part >= kRoomyPart) busy_at_[bar].store(now, std::memory_order_relaxed);
    }
    if (t.share >= from(p.cache_from)) {
      t.halvings = 0;
    } else if (t.share < from(p.calm_below) && t.halvings < kMostHalvings) {
      ++t.halvings;
    }
  }

  OnceWord<unsigned> busy_{40}, processors_{1};
  std::atomic<unsigned> waiters_{1};  // threads for each processor, of those that do not sleep
  std::atomic<unsigned> preset_{0};
  std::atomic<unsigned> part_[2] = {};                           // of windows that were busy, of late, by bar
  std::atomic<std::uint64_t> busy_at_[2] = {}, round_began_{0};  // microseconds; 0: never
  std::atomic<std::uint64_t> inside_{0}, all_{0};                // of the round
  std::atomic<std::uint64_t> windows_{0}, busy_windows_{0};
};

}  // namespace hz
