// SPDX-License-Identifier: Apache-2.0
//
// Birth and death: how a thread gets its state, and gives it up. Called from slow paths, and from the C
// library's hook at a thread's exit.
#pragma once

#include "base/bytes.hpp"
#include "heap/exchange/reclaim.hpp"
#include "heap/process/start.hpp"

namespace hz {

template <class Line>
struct Forks;

template <class Line>
struct Quotas;

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
    Entered() : thread_(here()), crossing_(thread_) { reattach_if_revoked(); }
    // Enters the shared state in a thread without a state. Cost: no birth, which calls the C library and goes
    // deep in the stack.
    struct Unborn {};
    explicit Entered(Unborn) : thread_(known()), crossing_(thread_) { reattach_if_revoked(); }
    Thread& thread() { return thread_; }

   private:
    static Thread& known() {
      Forks<Line>::notice_process();
      return S::tls().heap != nullptr ? *S::tls().heap : S::shared;
    }
    static Thread& here() {
      Forks<Line>::notice_process();
      return S::tls().heap != nullptr ? *S::tls().heap : born();
    }
    void reattach_if_revoked() {
      if (HZ_UNLIKELY(thread_.revoked.peek())) reattach(thread_);
    }

    typename Faults<Line>::Telling telling_;
    Thread& thread_;
    const Crossing crossing_;
  };

  // Returns to its spans what no living thread holds: the states that a fork left behind and no new thread
  // has adopted, and the shared one.
  static void collect_leftovers() {
    Forks<Line>::notice_process();
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

  // The destructors of other thread-specific data may still allocate and free: they do so in the shared
  // state.
  static void on_thread_exit(void* state) {
    Forks<Line>::notice_process();
    auto* t = static_cast<Thread*>(state);
    const typename Faults<Line>::Telling telling;
    {
      const Crossing crossing(*t);
      t->local.set(nullptr);
      S::show(S::tls(), S::empty);
      S::tls().heap = &S::shared;
      restore(*t);
      R::thread_exit(*t);
    }
    const unsigned owner = t->owner;
    if (leave(*t)) {
      const Crossing crossing(S::shared);
      const unsigned others = S::global.thread_count.load(std::memory_order_relaxed);
      TransferCache<Line>::flush_left(S::shared, owner, others);
      SpanReturn<Line>::purge_if_due(S::shared);
    }
  }

  // One of the two states that are no thread's.
  static void join_nobodys(Thread& t) {
    if (&t == &S::shared) Line::Front::join(t.front, S::shared_store);
    Line::Guard::join(t.guard);
    Line::Exchange::join(t.exchange, S::shelves.exchange);
  }

  // Empties a thread's bins, and its quota's, without returning the slots.
  static void forget_cache(Thread& t) {
    t.capacity_bytes = 0;
    forget(t.front, store_of(t));
    if (t.quota.peek() != nullptr) forget(t.quota.peek()->front, t.quota.peek()->store);
  }

  // With the list's lock.
  static void delist(typename S::Global& g, Thread& t) {
    (t.previous != nullptr ? t.previous->next : g.threads) = t.next;
    if (t.next != nullptr) t.next->previous = t.previous;
    g.owners.left(t.owner);
    g.thread_count.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  static void forget(typename Line::Front::PerThread& front, typename Line::Front::Store& store) {
    ::new (static_cast<void*>(&front)) typename Line::Front::PerThread;
    clear_bytes(&store, sizeof store);
    Line::Front::join(front, store);
  }

  // A thread whose end nobody would tell us of, because there is no thread-specific key or no memory for its
  // value, has no state of its own: what it cached would stay for ever, and who takes caches back would write
  // into its storage.
  HZ_COLD static Thread& born() {
    typename S::Global& g = S::global;
    if (!Start<Line>::open() || S::tls().forking || !has_exit_key(g)) return S::shared;
    Thread* t = enlisted(g);
    if (t == nullptr) return S::shared;
    S::tls().heap = t;
    S::show(*t, true);
    // From here on this thread may allocate, so the C library may too.
    if (!os::arm_exit_hook(g.exit_key, t)) {
      on_thread_exit(t);
      return S::shared;
    }
    t->hooked.set(true);
    Forks<Line>::hook_forks();
    return *t;
  }

  // Made once, without a lock: a library that wraps the C library's function may allocate there, which the
  // shared state serves. No more than once: where there is none, there will be none.
  static bool has_exit_key(typename S::Global& g) {
    using Key = typename S::ExitKey;
    Key key = g.has_exit_key.load(std::memory_order_acquire);  // pairs with the store below
    if (HZ_LIKELY(key == Key::kThere)) return true;
    if (key != Key::kNotAsked) return false;
    if (!g.has_exit_key.compare_exchange_strong(key, Key::kAsked, std::memory_order_relaxed) ||
        !os::create_exit_hook(&on_thread_exit, &g.exit_key))
      return false;
    g.has_exit_key.store(Key::kThere, std::memory_order_release);  // others see which it is
    return true;
  }

  static Thread* enlisted(typename S::Global& g) {
    const Hold hold(g.threads_lock);
    // Born already, in a resolver of the loader's, which has written the first contents of `tls` since.
    if (g.threads != nullptr && g.threads->local.peek() == &S::tls()) return g.threads;
    Thread* t = pop(g.orphans);
    if (t != nullptr) {
      restore(*t);
    } else {
      t = fresh_thread(g);
    }
    if (t == nullptr) return nullptr;
    t->hooked.set(false);
    t->local.set(&S::tls());
    enlist(g, *t);
    wake_purger();
    return t;
  }

  static Thread* pop(Thread*& list) {
    Thread* t = list;
    if (t != nullptr) list = t->next;
    return t;
  }

  // A thread's state, and behind it what its front stores apart, and the closed state: a mapping, so that it
  // goes back when the thread is gone.
  using Store = typename Line::Front::Store;
  static constexpr std::size_t kStateBytes = align_up(sizeof(Thread), 64);
  static constexpr std::size_t kStoreBytes = align_up(sizeof(Store), 64);
  static std::size_t mapping_bytes() {
    const bool counting = S::global.counting.load(std::memory_order_relaxed);
    return align_up(kStateBytes + kStoreBytes + (counting ? kStateBytes : 0), os::page_bytes());
  }
  static Store& store_of(Thread& t) { return *static_cast<Store*>(pointer(address(&t) + kStateBytes)); }
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
    if (g.counting.load(std::memory_order_relaxed))
      t->closed = ::new (pointer(address(t) + kStateBytes + kStoreBytes)) Thread;
    Line::Front::join(t->front, store_of(*t));
    Line::Guard::join(t->guard);
    Line::Exchange::join(t->exchange, S::shelves.exchange);
    t->owner = g.owners.for_new_thread();
    Line::Route::join(t->route, t->owner);
    return t;
  }

  // The owner's first step into the slow path after its slots were taken away: see revoke.hpp.
  HZ_COLD static void reattach(Thread& t) {
    restore(t);
    S::show(t, true);
    wake_purger();
  }
  // Makes a state whole again that was revoked, or that a fork cut off in the middle of an operation.
  static void restore(Thread& t) {
    Line::Front::reconcile(t.front);
    if (t.quota.peek() != nullptr) Line::Front::reconcile(t.quota.peek()->front);
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
  // Whether nobody is left who would come for what waits for the thread's owner. Heirs that leave together
  // each see the other; a new thread may take the owner over meanwhile, and finds less.
  static bool leave(Thread& t) {
    const Hold list(S::global.threads_lock);
    delist(S::global, t);
    if (S::global.threads == nullptr) wake_purger();  // it ends
    const bool last = S::global.owners.threads(t.owner) == 0;
    if (last) Line::Exchange::left(S::shelves.exchange, t.owner);
    discard(t);
    return last;
  }

  // What the dead have counted lives on in the shared state; some of their states serve threads to come. With
  // the list's lock.
  static void discard(Thread& t) {
    R::leave(t);
    Quotas<Line>::leave(t);
    std::uint64_t sums[kEvents] = {};
    Line::Observe::add_to(t.observe, sums);
    const Hold hold(S::shared.lock);
    for (unsigned i = 0; i < kEvents; ++i)
      Line::Observe::count(S::shared.observe, static_cast<Event>(i), sums[i]);
    if (S::global.spares >= kSpares) return unmap(t);
    t.next = S::global.spare;
    S::global.spare = &t;
    ++S::global.spares;
  }
  static void unmap(Thread& t) {
    S::global.thread_memory -= mapping_bytes();
    os::unmap(&t, mapping_bytes());
  }
};

}  // namespace hz
