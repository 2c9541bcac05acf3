// SPDX-License-Identifier: Apache-2.0
//
// Birth, death and fork: how a thread gets its state, gives it up, and what a child process does with the states of the
// threads that it does not have. Called from slow paths, from the C library's thread-exit and fork hooks.
#pragma once

#include "heap/options.hpp"
#include "heap/reclaim.hpp"
#include "heap/tables.hpp"

namespace hz {

template <class Line>
struct Threads {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Hold = typename S::Hold;
  using Crossing = typename S::Crossing;
  using R = Reclaim<Line>;

  // This thread's state, born on first use, locked: for the duration of one crossing.
  class Entered {
   public:
    Entered() : thread_(here()), crossing_(thread_) {
      if (HZ_UNLIKELY(thread_.revoked.peek())) reattach(thread_);
    }
    Thread& thread() { return thread_; }

   private:
    static Thread& here() {
      notice_process();
      return S::tls.heap != nullptr ? *S::tls.heap : born();
    }

    typename Faults<Line>::Telling telling_;
    Thread& thread_;
    const Crossing crossing_;
  };

  static bool is_open() { return S::global.open.load(std::memory_order_relaxed); }

  // Whether the heap exists; the first caller builds it. False if not even a small arena can be had.
  static bool open() {
    // Acquire: pairs with the store in build(); what was built is visible.
    return HZ_LIKELY(S::global.open.load(std::memory_order_acquire)) || build();
  }

  // Returns to its spans what no living thread holds: the states that a fork left behind and no new thread has adopted,
  // and the shared one.
  static void collect_leftovers() {
    notice_process();
    const typename Faults<Line>::Telling telling;
    const Hold list(S::global.threads_lock);
    while (Thread* t = pop(S::global.orphans)) {
      {
        const Crossing crossing(*t);
        restore(*t);
        Line::Retain::bins_shrunk(t->retain, t->capacity_bytes);
        R::give_up(*t, true);
      }
      discard(*t);
    }
    release_spares();
    const Crossing crossing(S::shared);
    R::give_up(S::shared, true);
  }

  // The states of the dead go back to the system. With the list's lock.
  static void release_spares() {
    while (Thread* t = pop(S::global.spare)) unmap(*t);
    S::global.spares = 0;
  }

  // On every way to a lock. A child of clone(2) or _Fork(3) finds out here that it is one: no hook was called, and our
  // purger, if it had one, may have been anywhere.
  HZ_INLINE static void notice_process() {
    if (HZ_LIKELY(process_word().load(std::memory_order_relaxed) == kThisProcess) || S::tls.forking) return;
    cut_off();
  }

  // As early as can be: a handler that is registered before ours runs while ours are at work.
  static void hook_forks() {
    if (!S::global.fork_hooked.exchange(true, std::memory_order_relaxed))
      os::set_fork_hooks(&on_fork, &after_fork, &in_child);
  }

  static inline constinit Options options;

 private:
  // Acquire: pairs with build(), which others may be at.
  HZ_INLINE static std::atomic<std::uint32_t>& process_word() {
    return *S::global.process.load(std::memory_order_acquire);
  }
  static constexpr std::uint32_t kAnotherProcess = 0, kThisProcess = S::kThisProcess, kBeingMended = 2;

  // All that is ever asked of the system is asked here: later a program may have forbidden itself to ask (doc/life.md,
  // "System calls").
  HZ_COLD static bool build() {
    typename S::Global& g = S::global;
    const Hold hold(g.threads_lock);
    if (g.open.load(std::memory_order_relaxed)) return true;
    options = Options::read();
    os::prefer_huge_pages(options.huge_pages);
    os::Lock::know_processors(os::usable_cpus());
    if (options.background) os::prepare_barrier();
    if (void* page = os::map_wiped_on_fork()) {
      auto* const word = static_cast<std::atomic<std::uint32_t>*>(page);
      word->store(kThisProcess, std::memory_order_relaxed);
      g.process.store(word, std::memory_order_release);  // pairs with process_word()
    }
    if (!Tables<Line>::open(g)) return false;
    join_nobodys(S::shared);
    join_nobodys(S::purger_state);
    apply_options();
    g.has_exit_key = os::create_exit_hook(&on_thread_exit, &g.exit_key);
    Tables<Line>::open_route(g);
    // Release: pairs with open().
    g.open.store(true, std::memory_order_release);
    return true;
  }

  static void apply_options() {
    typename S::Global& g = S::global;
    g.counting.store(options.stats != StatsFormat::kNone, std::memory_order_relaxed);
    if (options.stats != StatsFormat::kNone) os::keep_error_stream();
    if (options.thread_cache != 0) g.thread_budget.store(options.thread_cache, std::memory_order_relaxed);
    apply_preset();
    Line::Source::limit(g.source, options.limit_soft, options.limit_hard);
    Line::Retain::set(g.retain, {.percent = options.retain});
    if (options.report_only) FaultReport::on_invalid.store(FaultReport::OnInvalid::kReport, std::memory_order_relaxed);
  }

  static void apply_preset() {
    typename S::Global& g = S::global;
    if (options.preset[0] == 0) return;
    if constexpr (requires { Line::kPresets; }) {
      for (const Preset& preset : Line::kPresets) {
        if (std::string_view(preset.name) != options.preset) continue;
        if (options.thread_cache == 0) g.thread_budget.store(preset.thread_cache, std::memory_order_relaxed);
        Line::Retain::set(g.retain, {.percent = options.retain == 0 ? preset.retain : 0, .floor = preset.floor});
        return;
      }
    }
    os::Message message;
    message.text("hz: warning: line ").text(Line::kName).text(" has no preset ").text(options.preset).text("\n").send();
  }

  // A thread whose end nobody would tell us of, because there is no thread-specific key or no memory for its value, has
  // no state of its own: what it cached would stay for ever, and who takes caches back would write into its storage.
  HZ_COLD static Thread& born() {
    typename S::Global& g = S::global;
    if (!open() || S::tls.forking || !g.has_exit_key) return S::shared;
    Thread* t = enlisted(g);
    if (t == nullptr) return S::shared;
    S::tls.heap = t;
    S::tls.fast.store(&S::unless_counting(*t), std::memory_order_relaxed);
    // From here on this thread may allocate, so the C library may too.
    if (!os::arm_exit_hook(g.exit_key, t)) {
      on_thread_exit(t);
      return S::shared;
    }
    t->hooked.set(true);
    hook_forks();
    return *t;
  }

  static Thread* enlisted(typename S::Global& g) {
    const Hold hold(g.threads_lock);
    // Born already, in a resolver of the loader's, which has written the first contents of `tls` since.
    if (g.threads != nullptr && g.threads->local.peek() == &S::tls) return g.threads;
    Thread* t = pop(g.orphans);
    if (t != nullptr) {
      restore(*t);
    } else {
      t = fresh_thread(g);
    }
    if (t == nullptr) return nullptr;
    t->hooked.set(false);
    t->local.set(&S::tls);
    enlist(g, *t);
    wake_purger();
    return t;
  }

  static Thread* pop(Thread*& list) {
    Thread* t = list;
    if (t != nullptr) list = t->next;
    return t;
  }

  // A thread's state, and behind it what its front stores apart: a mapping, so that it goes back when the thread is
  // gone.
  using Store = typename Line::Front::Store;
  static constexpr std::size_t kStateBytes = align_up(sizeof(Thread), 64);
  static std::size_t mapping_bytes() { return align_up(kStateBytes + sizeof(Store), os::page_bytes()); }
  static constexpr unsigned kSpares = 8;

  static Thread* fresh_thread(typename S::Global& g) {
    Thread* t = pop(g.spare);
    if (t != nullptr) {
      --g.spares;
    } else {
      t = static_cast<Thread*>(os::map(mapping_bytes(), os::page_bytes()));
      if (t == nullptr) return nullptr;
      os::forbid_huge_pages(t, mapping_bytes());
      g.thread_memory += mapping_bytes();
    }
    ::new (static_cast<void*>(t)) Thread;
    Line::Front::join(t->front, *static_cast<Store*>(pointer(address(t) + kStateBytes)));
    Line::Guard::join(t->guard);
    Line::Exchange::join(t->exchange, S::shelves.exchange);
    t->owner = g.owners.for_new_thread();
    Line::Route::join(t->route, t->owner);
    return t;
  }

  // One of the two states that are no thread's.
  static void join_nobodys(Thread& t) {
    if (&t == &S::shared) Line::Front::join(t.front, S::shared_store);
    Line::Guard::join(t.guard);
    Line::Exchange::join(t.exchange, S::shelves.exchange);
  }

  // The owner's first step into the slow path after its slots were taken away: see revoke.hpp.
  HZ_COLD static void reattach(Thread& t) {
    restore(t);
    S::show(t, true);
    t.hidden = false;
    wake_purger();
  }
  // Makes a state whole again that was revoked, or that a fork cut off in the middle of an operation.
  static void restore(Thread& t) {
    Line::Front::reconcile(t.front);
    if (t.revoked.peek()) Line::Retain::bins_grown(t.retain, t.capacity_bytes);
    t.revoked.set(false);
    t.gave(t.taken_back);
    t.taken_back = 0;
  }

  // It sleeps while there are threads and every one is revoked.
  static void wake_purger() {
    std::atomic<std::uint32_t>& purger = S::global.purger;
    std::uint32_t expected = S::kPurgerSleeps;
    // After what the purger looks at before it sleeps; the machine is told by its barrier.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (HZ_LIKELY(purger.load(std::memory_order_relaxed) != expected)) return;
    if (purger.compare_exchange_strong(expected, S::kPurgerRuns, std::memory_order_relaxed))
      os::wake_one(reinterpret_cast<const std::uint32_t*>(&purger));
  }

  static void enlist(typename S::Global& g, Thread& t) {
    t.alive = true;
    t.previous = nullptr;
    t.next = g.threads;
    if (g.threads != nullptr) g.threads->previous = &t;
    g.threads = &t;
    g.owners.joined(t.owner);
    Line::Exchange::carried(S::shelves.exchange, t.owner);
    g.thread_count.fetch_add(1, std::memory_order_relaxed);
  }
  static void delist(typename S::Global& g, Thread& t) {
    (t.previous != nullptr ? t.previous->next : g.threads) = t.next;
    if (t.next != nullptr) t.next->previous = t.previous;
    g.owners.left(t.owner);
    g.thread_count.fetch_sub(1, std::memory_order_relaxed);
  }

  // The destructors of other thread-specific data may still allocate and free: they do so in the shared state.
  static void on_thread_exit(void* state) {
    notice_process();
    auto* t = static_cast<Thread*>(state);
    const typename Faults<Line>::Telling telling;
    {
      const Crossing crossing(*t);
      t->local.set(nullptr);
      S::tls.fast.store(&S::empty, std::memory_order_relaxed);
      S::tls.heap = &S::shared;
      restore(*t);
      R::thread_exit(*t);
    }
    const unsigned owner = t->owner;
    if (leave(*t)) {
      const Crossing crossing(S::shared);
      TransferCache<Line>::flush(S::shared, owner);
      SpanReturn<Line>::purge_if_due(S::shared);
    }
  }

  // Whether nobody is left who would come for what waits for the thread's owner. Heirs that leave together each see the
  // other; a new thread may take the owner over meanwhile, and finds less.
  static bool leave(Thread& t) {
    const Hold list(S::global.threads_lock);
    delist(S::global, t);
    if (S::global.threads == nullptr) wake_purger();  // it ends
    const bool last = S::global.owners.threads(t.owner) == 0;
    if (last) Line::Exchange::left(S::shelves.exchange, t.owner);
    discard(t);
    return last;
  }

  // What the dead have counted lives on in the shared state; some of their states serve threads to come. With the
  // list's lock.
  static void discard(Thread& t) {
    Line::Front::leave(t.front);
    std::uint64_t sums[kEvents] = {};
    Line::Observe::add_to(t.observe, sums);
    const Hold hold(S::shared.lock);
    for (unsigned i = 0; i < kEvents; ++i) Line::Observe::count(S::shared.observe, static_cast<Event>(i), sums[i]);
    if (S::global.spares >= kSpares) return unmap(t);
    t.next = S::global.spare;
    S::global.spare = &t;
    ++S::global.spares;
  }
  static void unmap(Thread& t) {
    S::global.thread_memory -= mapping_bytes();
    os::unmap(&t, mapping_bytes());
  }

  // Around a fork every thread's lock is held, so nobody is at the boundary and the child finds every structure whole.
  // Other threads' hot paths run on; each of their stores leaves their bins whole as well. Other fork handlers run
  // between ours and may allocate: this thread passes through the locks that it holds.
  static void on_fork() {
    S::global.threads_lock.lock();
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) t->lock.lock();
    S::shared.lock.lock();
    S::purger_state.lock.lock();
    S::tls.forking = true;
  }
  static void after_fork() {
    S::tls.forking = false;
    S::purger_state.lock.unlock();
    S::shared.lock.unlock();
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) t->lock.unlock();
    S::global.threads_lock.unlock();
  }
  static void in_child() {
    typename S::Global& g = S::global;
    // The one lock that is also taken without a thread's, by those who only look and leave nothing half done.
    Line::Source::free_locks(g.source);
    begin_process(g);
    after_fork();
    const Hold hold(g.threads_lock);
    leave_others_behind(g);
  }
  static void begin_process(typename S::Global& g) {
    g.purger.store(S::kNoPurger, std::memory_order_relaxed);
    g.forked = true;
    g.aided.store(false, std::memory_order_relaxed);
    Line::Retain::set_purger(g.retain, false);
    // Release: pairs with cut_off().
    process_word().store(kThisProcess, std::memory_order_release);
  }
  static void leave_others_behind(typename S::Global& g) {
    for (Thread *t = g.threads, *next = nullptr; t != nullptr; t = next) {
      next = t->next;
      if (t != S::tls.heap) leave_behind(g, *t);
    }
  }
  // For a thread to come, or for trim.
  static void leave_behind(typename S::Global& g, Thread& t) {
    Line::Exchange::finish(S::shelves.exchange, t.exchange);
    delist(g, t);
    Line::Retain::fold(g.retain, t.retain);
    t.alive = false;
    t.local.set(nullptr);
    t.next = g.orphans;
    g.orphans = &t;
  }

  // The child that notice_process() finds. Nothing but its own thread is in it, and it is at no boundary. A lock that
  // is held tells what another thread was at: that is counted again, or what is free there is lost to this process. No
  // block that the program has is touched.
  HZ_COLD static void cut_off() {
    typename S::Global& g = S::global;
    std::uint32_t expected = kAnotherProcess;
    // Acquire and release: threads that the child began before wait for the one that comes first.
    if (!process_word().compare_exchange_strong(expected, kBeingMended, std::memory_order_acquire)) {
      while (process_word().load(std::memory_order_acquire) != kThisProcess) os::give_way();
      return;
    }
    g.threads_lock.reset();
    Line::Source::make_whole(g.source);
    Line::Pool::make_whole(S::shelves.pool, [&](auto visit) { Line::Source::for_each_row(g.source, visit); });
    Line::Exchange::make_whole(S::shelves.exchange, g.owners.end());
    for (Thread* t : {&S::shared, &S::purger_state}) {
      if (!t->lock.reset()) continue;
      ::new (static_cast<void*>(t)) Thread;
      join_nobodys(*t);
    }
    for (Thread *t = g.threads, *next = nullptr; t != nullptr; t = next) {
      next = t->next;
      const bool held = t->lock.reset();
      if (t == S::tls.heap) {
        if (held) recover(*t);
      } else if (held) {
        delist(g, *t);  // at the boundary, or revoked at that moment: what it cached is lost
      } else {
        leave_behind(g, *t);
      }
    }
    begin_process(g);
  }
  // This thread's state, while the purger took its cache away: what it deferred may be half sent.
  static void recover(Thread& t) {
    t.exchange = {};
    Line::Exchange::join(t.exchange, S::shelves.exchange);
    t.revoked.set(true);
  }
};

}  // namespace hz
