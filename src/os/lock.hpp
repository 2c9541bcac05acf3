// SPDX-License-Identifier: Apache-2.0
//
// A mutex of four bytes for the cold paths: one atomic exchange to take when free, sleeps in the kernel when not.
// Constant-initialised, never allocates, may be released by the child of a fork whose parent took it.
// Source of the three-state word: U. Drepper, "Futexes are tricky", 2011, mutex 2.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.hpp"
#include "os/os.hpp"

namespace hz::os {

class Lock {
 public:
  HZ_INLINE void lock() {
    std::uint32_t expected = kFree;
    // Acquire: see what the last holder wrote.
    if (HZ_UNLIKELY(
            !word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed)))
      wait();
  }
  HZ_INLINE void unlock() {
    // Release: the next holder sees what we wrote.
    if (HZ_UNLIKELY(word_.exchange(kFree, std::memory_order_release) == kContended)) wake_one(raw());
  }

  // In a child process, of a lock that a thread of the parent held.
  void reset() { word_.store(kFree, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kContended = 2;
  static constexpr int kSpins = 100;

  HZ_SLOW void wait() {
    for (int i = 0; i < kSpins; ++i) {
      if (word_.load(std::memory_order_relaxed) == kFree) {
        std::uint32_t expected = kFree;
        // Acquire: as in lock().
        if (word_.compare_exchange_weak(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) return;
      }
      pause();
    }
    // Acquire: as in lock().
    while (word_.exchange(kContended, std::memory_order_acquire) != kFree) wait_on(raw(), kContended);
  }
  const std::uint32_t* raw() const { return reinterpret_cast<const std::uint32_t*>(&word_); }

  std::atomic<std::uint32_t> word_{kFree};
};

class Guarded {
 public:
  explicit Guarded(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guarded() { lock_.unlock(); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

 private:
  Lock& lock_;
};

}  // namespace hz::os
