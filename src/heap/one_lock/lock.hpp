// SPDX-License-Identifier: Apache-2.0
//
// The one lock, and forks beside it. The lock is open while the system works for a thread that has it. A fork
// holds it, so that the child finds a consistent heap. Called on every operation; costs an atomic exchange to
// lock and one to unlock.
//
// A signal handler that forks may have interrupted its thread inside of the heap. It waits for nothing, since
// no other thread could end that wait. The child recovers the heap when it needs the lock.
#pragma once

#include "os/lock.hpp"
#include "os/per_thread.hpp"

namespace hz::one_lock {

struct HeapLock {
  enum class Fork : std::uint8_t { kNone, kUnderWay, kUnhooked };  // the last: this is the child of one
  struct Thread {
    Fork fork = Fork::kNone;
    bool inside = false;                // has the lock, or the system works for it, or it is about to
    std::uint8_t unhooked = 0;          // forks that our hooks do nothing for, but lock the list of streams:
    std::uint8_t unhooked_streams = 0;  // how many of them did

    static constexpr Thread late() { return {}; }
    bool is_over() const { return true; }
  };
  static Thread& mine() { return os::PerThread<Thread>::mine(); }
  static inline constinit os::Lock lock;
  static inline constinit unsigned at_work = 0;  // threads for which the system works

  // Holds the lock for its lifetime. A thread that forks has it already: other fork handlers may allocate.
  class Hold {
   public:
    Hold() { close(); }
    ~Hold() { open(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend struct HeapLock;

    static void close() {
      Thread& thread = mine();
      if (HZ_UNLIKELY(thread.fork != Fork::kNone)) return close_about_a_fork();
      thread.inside = true;
      if (HZ_UNLIKELY(!lock.try_lock())) wait();
    }
    static void open() {
      Thread& thread = mine();
      if (HZ_UNLIKELY(thread.fork == Fork::kUnderWay)) return;
      lock.unlock();
      thread.inside = false;
    }
    HZ_COLD static void close_about_a_fork() {
      Thread& thread = mine();
      if (thread.fork == Fork::kUnderWay) return;
      recover();
      thread.inside = true;
      if (!lock.try_lock()) wait();
    }
    // In a child that another thread is missing from, no thread may be there to release the lock: a report
    // walks in one, and a signal handler may fork meanwhile.
    HZ_SLOW static void wait() {
      if (lock.had_by_spinning()) return;
      if (HZ_UNLIKELY(os::Report::is_in_copy())) recover();
      while (!lock.lock_within(kWait)) {
        if (mine().fork == Fork::kUnhooked) recover();
      }
    }
    static constexpr unsigned kWait = 100;  // milliseconds
  };

  // The same if the lock can be had in that time, for a caller that may be a signal handler of a thread that
  // has it.
  class TimedHold {
   public:
    explicit TimedHold(unsigned most_milliseconds) : was_inside_(mine().inside) {
      mine().inside = true;
      has_ = lock.lock_within(most_milliseconds);
    }
    ~TimedHold() {
      if (has_) lock.unlock();
      mine().inside = was_inside_;
    }
    TimedHold(const TimedHold&) = delete;
    TimedHold& operator=(const TimedHold&) = delete;
    bool has_lock() const { return has_; }

   private:
    const bool was_inside_;
    bool has_ = false;
  };

  // Opens the lock during `work`, which the system does. The caller checks again what it knew before.
  // Requires: the caller holds the lock, as for give_way().
  template <class Work>
  static auto meanwhile(Work work) {
    begin_work();
    const auto result = work();
    end_work();
    return result;
  }
  static void give_way() {
    Hold::open();
    os::give_way();
    Hold::close();
  }

  // The hooks of fork(). The fork waits until the system works for no thread, or what it works at would be
  // lost to the child. It waits for nothing in a signal handler that interrupted this thread inside, or in
  // its fork.
  static void before_fork() {
    Thread& thread = mine();
    if (HZ_UNLIKELY(thread.inside || thread.fork == Fork::kUnderWay)) {
      if (os::lock_streams()) ++thread.unhooked_streams;
      ++thread.unhooked;
      return;
    }
    for (;;) {
      // Inside until it has the lock: a signal handler that forks meanwhile may not take it for its own.
      if (HZ_UNLIKELY(thread.fork == Fork::kUnhooked)) recover();
      const bool streams = os::lock_streams();
      thread.inside = true;
      seen_by_handlers();
      const bool locked = lock.had_within(os::kStreamsPatience), all = locked && at_work == 0;
      if (locked && !all) lock.unlock();
      if (HZ_LIKELY(all)) thread.fork = Fork::kUnderWay, has_streams = streams;
      seen_by_handlers();
      thread.inside = false;
      if (HZ_LIKELY(all)) return;
      if (streams) os::unlock_streams();
      os::let_others_wake();
    }
  }
  static void after_fork() {
    if (!was_unhooked()) return end_fork(&os::unlock_streams);
    if (mine().unhooked_streams == 0) return;
    --mine().unhooked_streams;
    os::unlock_streams();
  }
  static void in_child() {
    if (!was_unhooked()) return end_fork(&os::renew_streams);
    mine().unhooked_streams = 0;
    if (mine().fork == Fork::kNone) mine().fork = Fork::kUnhooked;
  }

  // Makes the heap consistent in the child of a fork that before_fork() did nothing for (recovery.hpp).
  static void recover();

 private:
  // Not inlined: they have several callers, and the code should be small. The thread counts as inside
  // meanwhile: a signal handler that forks would wait for the end of this work. In a child that recovered the
  // heap meanwhile the count begins at zero.
  HZ_SLOW static void begin_work() {
    ++at_work;
    if (HZ_LIKELY(mine().fork != Fork::kUnderWay)) lock.unlock();
  }
  HZ_SLOW static void end_work() {
    if (HZ_LIKELY(mine().fork != Fork::kUnderWay) && HZ_UNLIKELY(!lock.try_lock())) Hold::wait();
    if (HZ_LIKELY(at_work != 0)) --at_work;
  }
  static void seen_by_handlers() { std::atomic_signal_fence(std::memory_order_seq_cst); }
  // Such a fork ends before those around it.
  static bool was_unhooked() {
    Thread& thread = mine();
    if (HZ_LIKELY(thread.unhooked == 0)) return false;
    --thread.unhooked;
    return true;
  }
  static void end_fork(void (*end_of_streams)()) {
    const bool streams = has_streams;
    // Before the C library is called: a library that wraps its function may allocate, and that needs the
    // lock.
    mine().inside = true;
    seen_by_handlers();
    mine().fork = Fork::kNone;
    lock.unlock();
    seen_by_handlers();
    mine().inside = false;
    if (streams) end_of_streams();
  }
  static inline constinit bool has_streams = false;  // of the thread that forks, which has the lock
};

}  // namespace hz::one_lock
