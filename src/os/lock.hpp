// SPDX-License-Identifier: Apache-2.0
//
// A mutex of four bytes for the cold paths: one atomic exchange to take when free, sleeps in the kernel when
// not. Constant-initialised, never allocates, may be released by the child of a fork whose parent took it.
// Before it sleeps it spins, unless the process may run on one processor only: there no other thread can
// release it meanwhile. (A quota of CPU time is no reason: the holder may run at the same time, on another
// processor.) Source of the three-state word: U. Drepper, "Futexes are tricky", 2011, mutex 2.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.hpp"
#include "os/os.hpp"
#include "os/per_thread.hpp"
#include "os/rank.hpp"

namespace hz::os {

class Lock {
 public:
  HZ_INLINE void lock() {
    std::uint32_t expected = kFree;
    // Acquire: see what the last holder wrote.
    if (HZ_UNLIKELY(!word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                                   std::memory_order_relaxed)))
      wait();
  }
  static constexpr unsigned kEndless = ~0U;
  // Returns false if the lock stays taken for that time. The caller may be its holder, in a signal handler.
  bool lock_within(unsigned most_milliseconds) {
    const std::uint64_t began = milliseconds();
    // Acquire: as in lock().
    while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
      if (milliseconds() - began >= most_milliseconds) return false;
      wait_at_most(raw(), kContended, most_milliseconds);
    }
    return true;
  }
  bool had_within(unsigned most_milliseconds) {
    if (most_milliseconds == kEndless) return lock(), true;
    return try_lock() || lock_within(most_milliseconds);
  }
  // The same while it is worth to wait awake.
  bool had_by_spinning() {
    for (int i = spins_.load(std::memory_order_relaxed); i > 0; --i) {
      if (word_.load(std::memory_order_relaxed) == kFree) {
        std::uint32_t expected = kFree;
        // Acquire: as in lock().
        if (word_.compare_exchange_weak(expected, kHeld, std::memory_order_acquire,
                                        std::memory_order_relaxed))
          return true;
      }
      pause();
    }
    return false;
  }
  bool try_lock() {
    std::uint32_t expected = kFree;
    // Acquire: as in lock().
    return word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  HZ_INLINE void unlock() {
    // Release: the next holder sees what we wrote.
    if (HZ_UNLIKELY(word_.exchange(kFree, std::memory_order_release) == kContended)) {
      wake_one(raw());
      no_tail_call();
    }
  }

  // On one processor no other thread can release a lock meanwhile: then locks do not spin.
  static void know_processors(unsigned usable) {
    spins_.store(usable == 1 ? 0 : kSpins, std::memory_order_relaxed);
  }

  // In a child process; whether a thread of the parent held it.
  bool reset() {
    if (word_.load(std::memory_order_relaxed) == kFree) return false;  // many are on pages never touched
    word_.store(kFree, std::memory_order_relaxed);
    return true;
  }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kContended = 2;
  static constexpr int kSpins = 100;

  HZ_SLOW void wait() {
    if (had_by_spinning()) return;
    // Acquire: as in lock().
    while (word_.exchange(kContended, std::memory_order_acquire) != kFree) wait_on(raw(), kContended);
  }
  const std::uint32_t* raw() const { return reinterpret_cast<const std::uint32_t*>(&word_); }

  static inline constinit std::atomic<int> spins_{kSpins};
  std::atomic<std::uint32_t> word_{kFree};
};

// A lock that has its place in the order of locks.
template <Rank kRank>
class LockOf : public Lock {};

// The locks that a thread has or waits for: their number, and their ranks. A signal handler that forks reads
// the number of the thread that it interrupted: no other thread could release them.
struct LocksOfThread {
  unsigned count = 0;
  [[no_unique_address]] RanksOfThread ranks;

  static constexpr LocksOfThread late() { return {}; }
  bool is_over() const { return true; }
};

// Holds a lock, and announces it first: the only way in which a thread of the heap takes one, but for those
// of hz7 and of first-class heaps, which announce themselves.
class Guarded {
 public:
  template <Rank kRank>
  explicit Guarded(LockOf<kRank>& lock) : Guarded(&lock, kRank) {}
  // The same if it can be had in that time; nullptr: nothing.
  Guarded(Lock* lock, Rank rank, unsigned most_milliseconds) : Guarded(nullptr, rank) {
    if (lock != nullptr && lock->had_within(most_milliseconds)) lock_ = lock;
  }
  ~Guarded() {
    if (lock_ != nullptr) lock_->unlock();
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a handler sees no lock without its count
    LocksOfThread& mine = PerThread<LocksOfThread>::mine();
    mine.ranks.remove(before_);
    --mine.count;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  bool has_lock() const { return lock_ != nullptr; }
  // Requires: the calling thread may wait for a lock of that rank, which it takes otherwise.
  static void expect_order(Rank rank) {
    RanksOfThread& ranks = PerThread<LocksOfThread>::mine().ranks;
    ranks.remove(ranks.add(rank));
  }
  // In a child whose locks are made free: no other thread waits for those that this one has.
  static void forget_order() { PerThread<LocksOfThread>::mine().ranks = {}; }
  // Returns true if the calling thread has a lock, or waits for one.
  static bool is_any_held() { return PerThread<LocksOfThread>::mine().count != 0; }

 protected:
  Guarded(Lock* lock, Rank rank) : lock_(lock), before_(announce(rank)) {  // nullptr: nothing
    std::atomic_signal_fence(std::memory_order_seq_cst);                   // as at the end
    if (lock_ != nullptr) lock_->lock();
  }
  void adopt(Lock& held) { lock_ = &held; }

 private:
  static RanksOfThread::Before announce(Rank rank) {
    LocksOfThread& mine = PerThread<LocksOfThread>::mine();
    ++mine.count;
    return mine.ranks.add(rank);
  }
  Lock* lock_;
  [[no_unique_address]] const RanksOfThread::Before before_;
};

// Work that one thread of a process does at a time. Others do not wait, and skip it. A fork leaves the thread
// that was at it behind, so the word names the process.
class Turn {
 public:
  // Returns true if it is the calling thread's from now on.
  bool take() {
    const std::uint64_t now = process_id();
    std::uint64_t before = process_.load(std::memory_order_relaxed);
    // Acquire: see what the last one left.
    return before != now && process_.compare_exchange_strong(before, now, std::memory_order_acquire);
  }
  void leave() { process_.store(0, std::memory_order_release); }  // pairs with the next one's acquire

  class Mine {
   public:
    explicit Mine(Turn& turn) : turn_(turn), is_(turn.take()) {}
    ~Mine() {
      if (is_) turn_.leave();
    }
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;
    bool is() const { return is_; }

   private:
    Turn& turn_;
    const bool is_;
  };

 private:
  std::atomic<std::uint64_t> process_{0};
};

}  // namespace hz::os
