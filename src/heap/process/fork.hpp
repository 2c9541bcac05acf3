// SPDX-License-Identifier: Apache-2.0
//
// Forks, and children that no hook was called for: how a child process gets a heap that is whole, and what it
// does with the states of the threads that it does not have. Called by the C library's fork hooks, and on
// every way to a lock, where it costs two loads.
#pragma once

#include "heap/process/thread.hpp"
#include "heap/settings/control.hpp"

namespace hz {

template <class Line>
struct Forks {
  using S = State<Line>;
  using T = Threads<Line>;
  using Thread = typename S::Thread;
  using Hold = typename S::Hold;

  // On every way to a lock. A child of clone(2) or _Fork(3) finds out here that it is one: no hook was
  // called, and our purger, if it had one, may have been anywhere.
  HZ_INLINE static void notice_process() {
    if (HZ_LIKELY(process_word().load(std::memory_order_relaxed) == kThisProcess) || S::tls().forking) return;
    cut_off();
  }

  // As early as can be: a handler that is registered before ours runs while ours are at work.
  static void hook_forks() {
    if (!S::global.fork_hooked.exchange(true, std::memory_order_relaxed))
      os::set_fork_hooks(&on_fork, &after_fork, &in_child);
  }

  // Returns true in a signal handler that interrupted this thread where it may have a lock.
  static bool is_inside() { return is_inside(S::tls()); }

 private:
  // Acquire: pairs with Start::build(), which others may be at.
  HZ_INLINE static std::atomic<std::uint32_t>& process_word() {
    return *S::global.process.load(std::memory_order_acquire);
  }
  static inline constinit bool has_streams = false;  // of who forks, who has all the locks
  static constexpr std::uint32_t kAnotherProcess = 0, kThisProcess = S::kThisProcess, kBeingMended = 2;

  // Around a fork every thread's lock is held, so nobody is at the boundary and the child finds every
  // structure whole. Other threads' hot paths run on; each of their stores leaves their bins whole as well.
  // Other fork handlers run between ours and may allocate: this thread passes through the locks that it
  // holds. A signal handler that forks may have interrupted it anywhere: a thread that is inside, has a lock
  // or forks may hold any of them, and no other thread could release that. Then the child is as if no hook
  // were called for it. While a fork waits for locks, or releases them, its thread is inside: it has some of
  // them. The only thread of a process needs no lock, and leaves all pages as they are: each one that it
  // wrote to would be copied for the child.
  static void on_fork() {
    typename S::Local& mine = S::tls();
    if (HZ_UNLIKELY(is_inside(mine) || mine.forking)) {
      if (os::lock_streams()) ++mine.unhooked_streams;
      ++mine.unhooked;
      return;
    }
    for (;;) {
      notice_process();  // in a child, a lost thread may hold any of the locks
      if (HZ_LIKELY(is_alone())) return;
      const bool streams = os::lock_streams();
      ++mine.inside;
      seen_by_handlers();
      const bool all = holds_all(mine);
      if (HZ_LIKELY(all)) mine.forking = true, has_streams = streams;
      seen_by_handlers();
      --mine.inside;
      if (HZ_LIKELY(all)) return;
      if (streams) os::unlock_streams();
      os::let_others_wake();
    }
  }
  static bool is_alone() {
    return os::has_one_thread() && S::global.thread_count.load(std::memory_order_relaxed) <= 1;
  }
  static void seen_by_handlers() { std::atomic_signal_fence(std::memory_order_seq_cst); }
  static bool is_inside(const typename S::Local& mine) {
    return mine.inside != 0 || os::Guarded::is_any_held() ||
           (mine.biased != nullptr && mine.biased->is_in(&mine));
  }
  // All or none: another thread may be in a signal handler that forks, with one of them.
  static bool holds_all(const typename S::Local& mine) {
    if (!S::shelves.heaps.lock_all(&mine, os::kStreamsPatience)) return false;
    if (HZ_LIKELY(holds_threads())) return true;
    S::shelves.heaps.unlock_all();
    return false;
  }
  static bool holds_threads() {
    if (!had(S::global.threads_lock)) return false;
    Thread* t = S::global.threads;
    while (t != nullptr && had(t->lock)) t = t->next;
    if (t == nullptr && had(S::shared.lock)) {
      if (had(S::purger_state.lock)) return true;
      S::shared.lock.unlock();
    }
    for (Thread* held = S::global.threads; held != t; held = held->next) held->lock.unlock();
    S::global.threads_lock.unlock();
    return false;
  }
  template <class Lock>
  static bool had(Lock& lock) {
    return lock.had_within(os::kStreamsPatience);
  }
  static void after_fork() {
    if (was_unhooked()) return leave_streams();
    if (!S::tls().forking) return;
    const bool streams = has_streams;
    release_all();
    if (streams) os::unlock_streams();
  }
  static void release_all() {
    typename S::Local& mine = S::tls();
    ++mine.inside;
    seen_by_handlers();
    mine.forking = false;
    seen_by_handlers();
    S::purger_state.lock.unlock();
    S::shared.lock.unlock();
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) t->lock.unlock();
    S::global.threads_lock.unlock();
    S::shelves.heaps.unlock_all();
    seen_by_handlers();
    --mine.inside;
  }
  // Whether on_fork() did nothing for the fork that ends here: such a one ends before those around it.
  static bool was_unhooked() {
    typename S::Local& mine = S::tls();
    if (HZ_LIKELY(mine.unhooked == 0)) return false;
    --mine.unhooked;
    return true;
  }
  static void leave_streams() {
    typename S::Local& mine = S::tls();
    if (mine.unhooked_streams == 0) return;
    --mine.unhooked_streams;
    os::unlock_streams();
  }
  static void in_child() {
    typename S::Global& g = S::global;
    const bool was_alone = !S::tls().forking;
    if (was_unhooked()) return hide();
    // A hook that ran before this one allocated: cut_off() has made this process's heap.
    if (was_alone && HZ_UNLIKELY(os::is_noted_process())) return;
    // A hook of another library has started a thread: before the fork, where it may have had any lock, or
    // after it, where it must not come first and take this thread's state for a lost one's.
    if (was_alone && HZ_UNLIKELY(!is_alone())) {
      process_word().store(kAnotherProcess, std::memory_order_relaxed);  // where nothing wipes it
      return cut_off();
    }
    // A lock that is also taken without a thread's, by those who leave nothing half done.
    Line::Source::free_locks(g.source);
    begin_process(g);
    if (HZ_LIKELY(was_alone)) return;
    Extensions::in_child();
    if (has_streams) os::renew_streams();
    release_all();
    const Hold hold(g.threads_lock);
    leave_others_behind(g);
  }
  // Sends each operation of the child of a fork in a handler through the slow path, until cut_off() has
  // mended the state of this thread: a slot of a bin may be on its way elsewhere, and malloc would pop it.
  static void hide() {
    S::tls().unhooked_streams = 0;
    S::show(S::tls(), S::empty);
  }
  static void begin_process(typename S::Global& g) {
    os::note_process();
    os::of_process.load(std::memory_order_relaxed)->is_child.store(true, std::memory_order_relaxed);
    put(g.purger, S::kNoPurger);
    put(g.aided, false);
    put(g.discarding, 0U);
    Line::Retain::set_purger(g.retain, false);
    Line::Policy::begin_process();
    Control::begin_process();
    renew_random();
    if (Thread* const own = S::tls().heap; own != nullptr && own->local.peek() != nullptr) {
      Line::Front::cut_off(own->front);
      if (own->quota.peek() != nullptr) Line::Front::cut_off(own->quota.peek()->front);
    }
    // Release: pairs with cut_off().
    process_word().store(kThisProcess, std::memory_order_release);
  }
  // Writes only what changes: the first store to a page copies it.
  template <class T>
  static void put(std::atomic<T>& word, T value) {
    if (word.load(std::memory_order_relaxed) != value) word.store(value, std::memory_order_relaxed);
  }
  static void renew_random() {
    os::renew_random();
    // The parent's key does not stay where an attacker may read it.
    if constexpr (FrontOfQuarantine<typename Line::Front>) os::random_word();
    renew_random(S::shared);
    if (S::tls().heap != nullptr) renew_random(*S::tls().heap);
  }
  static void renew_random([[maybe_unused]] Thread& t) {
    if constexpr (FrontOfQuarantine<typename Line::Front>) {
      Line::Front::renew(t.front);
      if (t.quota.peek() != nullptr) Line::Front::renew(t.quota.peek()->front);
    }
  }
  static void leave_others_behind(typename S::Global& g) {
    for (Thread *t = g.threads, *next = nullptr; t != nullptr; t = next) {
      next = t->next;
      if (t != S::tls().heap) leave_behind(g, *t);
    }
  }
  // For a thread to come, or for trim.
  static void leave_behind(typename S::Global& g, Thread& t) {
    Line::Exchange::finish(S::shelves.exchange, t.exchange);
    T::delist(g, t);
    Line::Retain::fold(g.retain, t.retain);
    renew_random(t);
    t.alive = false;
    t.local.set(nullptr);
    t.next = g.orphans;
    g.orphans = &t;
  }

  // The child that notice_process() finds. Nothing but its own thread is in it, and it is at no boundary. A
  // lock that is held tells what another thread was at: that is counted again, or what is free there is lost
  // to this process. No block that the program has is touched.
  HZ_COLD static void cut_off() {
    typename S::Global& g = S::global;
    std::uint32_t expected = kAnotherProcess;
    // Acquire and release: threads that the child began before wait for the one that comes first.
    if (!process_word().compare_exchange_strong(expected, kBeingMended, std::memory_order_acquire)) {
      while (process_word().load(std::memory_order_acquire) != kThisProcess) os::give_way();
      return;
    }
    os::Guarded::forget_order();  // of what a handler interrupted: those locks are free from here on
    S::shelves.heaps.make_whole();
    g.threads_lock.reset();
    Line::Source::make_whole(g.source);
    Line::Pool::make_whole(S::shelves.pool, [&](auto visit) { Line::Source::for_each_row(g.source, visit); });
    Line::Exchange::make_whole(S::shelves.exchange, g.owners.end());
    for (Thread* t : {&S::shared, &S::purger_state}) {
      if (!t->lock.reset()) continue;
      ::new (static_cast<void*>(t)) Thread;
      T::join_nobodys(*t);
    }
    for (Thread *t = g.threads, *next = nullptr; t != nullptr; t = next) {
      next = t->next;
      const bool held = t->lock.reset();
      if (t == S::tls().heap) {
        held ? recover(*t) : S::show(*t, true);
      } else if (held) {
        T::delist(g, *t);  // at the boundary, or revoked at that moment: what it cached is lost
      } else {
        leave_behind(g, *t);
      }
    }
    Extensions::in_child();
    begin_process(g);
  }
  // Makes this thread's state usable after a fork interrupted a change of it: by the purger, or by the thread
  // itself if a signal handler forked. What it cached or deferred is lost to this process: a slot may be on
  // its way to its span, and in its bin still.
  static void recover(Thread& t) {
    if (!t.revoked.peek()) Line::Retain::bins_shrunk(t.retain, t.capacity_bytes);
    T::forget_cache(t);
    ::new (static_cast<void*>(&t.exchange)) typename Line::Exchange::PerThread{};
    Line::Exchange::join(t.exchange, S::shelves.exchange);
    t.revoked.set(true);
  }
};

}  // namespace hz
