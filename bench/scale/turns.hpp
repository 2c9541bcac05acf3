// SPDX-License-Identifier: Apache-2.0
//
// Whose turn it is: of the cores that want to run, the one with the least virtual time, until it is `kAhead`
// past the next. So cores interleave within tens of instructions, however few processors the machine has, and
// a run does not depend on how fast it is. Called by cores.cpp on the thread of the core itself.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "scale/directory.hpp"

namespace hz::scale {

class Turns {
 public:
  static constexpr std::uint64_t kAhead = 60;

  // Counted by whoever runs; as many units of virtual time.
  std::uint64_t* instructions() { return &instructions_; }

  bool is_turn_of(unsigned core) const {
    return holder_.load(std::memory_order_relaxed) == static_cast<int>(core);
  }

  // With the turn:
  std::uint64_t now(unsigned core) const { return cores_[core].time + (instructions_ - counted_); }
  std::uint64_t ran(unsigned core) const { return cores_[core].ran + (instructions_ - counted_); }
  void spend(unsigned core, std::uint64_t units) { cores_[core].time += units; }
  bool is_past(unsigned core) const { return now(core) > until_; }

  // A core that has no turn waits for one; it starts where the others are.
  void wait_for(unsigned core) {
    if (core >= kMostCores) std::fputs("scale: more threads than cores\n", stderr), std::abort();
    std::unique_lock hold(lock_);
    if (core >= end_) end_ = core + 1;
    Core& mine = cores_[core];
    mine.go.store(0, std::memory_order_relaxed);
    mine.wants = true;
    const int holder = holder_.load(std::memory_order_relaxed);
    if (holder < 0) return begin(core);
    const int first = least(core);
    std::uint64_t time = cores_[holder].time;
    if (first >= 0 && cores_[first].time < time) time = cores_[first].time;
    if (mine.time < time) mine.time = time;
    if (mine.time + kAhead < until_) until_ = mine.time + kAhead;
    hold.unlock();
    sleep(mine);
  }

  // Others first, if they are behind.
  void pass(unsigned core) {
    std::unique_lock hold(lock_);
    settle(core);
    const int next = least(core);
    if (next < 0 || cores_[next].time >= cores_[core].time) return set_end(core);
    cores_[core].go.store(0, std::memory_order_relaxed);
    begin(static_cast<unsigned>(next));
    hold.unlock();
    sleep(cores_[core]);
  }

  // The core is about to wait for another, or to end.
  void leave(unsigned core) {
    const std::lock_guard hold(lock_);
    if (core >= end_) return;  // it never had one
    cores_[core].wants = false;
    if (!is_turn_of(core)) return;
    settle(core);
    const int next = least(core);
    next >= 0 ? begin(static_cast<unsigned>(next)) : holder_.store(-1, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Core {
    std::atomic<std::uint32_t> go{0};
    bool wants = false;
    std::uint64_t time = 0, ran = 0;
  };

  static void sleep(Core& core) {
    // Acquire: sees what the core before has counted.
    while (core.go.exchange(0, std::memory_order_acquire) == 0)
      syscall(SYS_futex, &core.go, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
  static void wake(Core& core) {
    // Release: pairs with sleep().
    core.go.store(1, std::memory_order_release);
    syscall(SYS_futex, &core.go, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  // What was counted since becomes the core's own time.
  void settle(unsigned core) {
    const std::uint64_t ran = instructions_ - counted_;
    cores_[core].time += ran;
    cores_[core].ran += ran;
    counted_ = instructions_;
  }
  int least(unsigned but) const {
    int found = -1;
    for (unsigned core = 0; core < end_; ++core)
      if (core != but && cores_[core].wants && (found < 0 || cores_[core].time < cores_[found].time))
        found = static_cast<int>(core);
    return found;
  }
  void set_end(unsigned core) {
    const int next = least(core);
    until_ = next < 0 ? ~std::uint64_t{0} : cores_[next].time + kAhead;
  }
  void begin(unsigned core) {
    counted_ = instructions_;
    set_end(core);
    holder_.store(static_cast<int>(core), std::memory_order_relaxed);
    wake(cores_[core]);
  }

  std::mutex lock_;
  Core cores_[kMostCores];
  unsigned end_ = 0;
  std::uint64_t instructions_ = 0, counted_ = 0, until_ = 0;
  std::atomic<int> holder_{-1};
};

}  // namespace hz::scale
