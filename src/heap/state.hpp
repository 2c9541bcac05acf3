// SPDX-License-Identifier: Apache-2.0
//
// The state of one line's heap: what the process has, what each thread has, and how a thread finds its own. Everything
// is constant-initialised, because the dynamic loader calls malloc before any constructor runs.
//
//   tls.fast   what the hot path sees: this thread's state, or `empty`, whose bins are empty and which owns nothing, so
//              that every operation falls into its slow path (not born yet, dead, revoked, or operations are being
//              counted)
//   tls.heap   what the slow path uses: this thread's state, or `shared` for the dead and when there is no memory, or
//              null before birth
//
// Lock order: threads -> one thread's lock -> that of `shared` -> pool -> source.
#pragma once

#include <atomic>

#include "base/plain_word.hpp"
#include "box/central/contract.hpp"
#include "box/front/contract.hpp"
#include "box/guard/contract.hpp"
#include "box/observe/contract.hpp"
#include "box/policy/contract.hpp"
#include "box/remote/contract.hpp"
#include "box/retain/contract.hpp"
#include "box/route/contract.hpp"
#include "box/source/contract.hpp"
#include "heap/owners.hpp"
#include "os/lock.hpp"

namespace hz {

template <class Line>
struct State {
  static_assert(RouteContract<typename Line::Route>);
  static_assert(FrontContract<typename Line::Front>);
  static_assert(RemoteContract<typename Line::Remote>);
  static_assert(!Line::Remote::kDirect || DirectRemote<typename Line::Remote>);
  static_assert(CentralContract<typename Line::Central>);
  static_assert(PoolContract<typename Line::Pool>);
  static_assert(SourceContract<typename Line::Source>);
  static_assert(RetainContract<typename Line::Retain>);
  static_assert(BackgroundContract<typename Line::Background>);
  static_assert(GuardContract<typename Line::Guard>);
  static_assert(PolicyContract<typename Line::Policy>);
  static_assert(ObserveContract<typename Line::Observe>);

  struct Local;

  struct Thread {
    typename Line::Front::PerThread front;
    typename Line::Route::PerThread route;
    typename Line::Guard::PerThread guard;
    typename Line::Remote::PerThread remote;
    [[no_unique_address]] typename Line::Observe::PerThread observe;

    os::Lock lock;  // held by whoever crosses the boundary with this state
    bool alive = false;
    unsigned owner = 0;
    unsigned denied = 0, victim = 0;  // see Boundary::grow_capacity
    Bin looked_at = 0;                // see Boundary::look_at_one
    std::uint16_t seen[kBins] = {};
    std::size_t budget = Line::kThreadCacheBytes;  // see Boundary::adapt_budget
    std::uint64_t verdict_at = 0;
    std::size_t capacity_bytes = 0;  // sum over the bins of capacity * size, within the budget
    OwnerWord<Local*> local;         // of the thread while it lives; null for the dead
    OwnerWord<bool> deferring;       // the owner is at its outbox without the lock
    OwnerWord<bool> revoked;         // it caches nothing and sees `empty`: see heap/revoke.hpp
    std::uint64_t signature = 0;     // for the purger: as it looked last ...
    unsigned same = 0;               // ... how often in a row ...
    std::size_t highest = 0;         // ... and the most bytes out of spans since its cache was last taken
    Thread* next = nullptr;
    Thread* previous = nullptr;
  };
  static_assert(sizeof(Thread) <= Line::kThreadBytes, "the line promises to keep a thread's state small");

  // Where threads meet, by class and by owner. All zero at first, and apart from what is not, so that a page of it is
  // touched when something in it is used.
  struct Shelves {
    typename Line::Remote::Global remote;
    typename Line::Central::Global central;
    typename Line::Pool::Global pool;
  };

  struct Global {
    typename Line::Route::Global route;
    typename Line::Source::Global source;
    typename Line::Retain::Global retain;

    os::Lock threads_lock;      // guards what follows
    Thread* threads = nullptr;  // alive
    Thread* spare = nullptr;    // memory for threads to come
    Thread* orphans = nullptr;  // of threads that a fork left behind: adopted with all that they hold
    Owners<Line::Remote::kOwners> owners;
    std::size_t thread_memory = 0;
    std::atomic<unsigned> thread_count{0};  // alive; written under the lock

    std::atomic<bool> open{false};
    std::atomic<bool> counting{false};
    std::atomic<unsigned> sweep_cursor{0};
    std::atomic<std::size_t> thread_budget{0};  // what the user said; 0: see Boundary::thread_budget
    unsigned exit_key = 0;
    bool has_exit_key = false;
    std::atomic<bool> fork_hooked{false};

    std::atomic<std::uint32_t> purger{kNoPurger};     // waited on
    std::atomic<std::uint64_t> purger_not_before{0};  // milliseconds
  };
  static constexpr std::uint32_t kNoPurger = 0, kPurgerRuns = 1, kPurgerSleeps = 2;

  struct Local {
    std::atomic<Thread*> fast;  // written by others, too
    Thread* heap;
    bool forking;  // between the fork hooks: this thread holds `threads_lock` and the lock of every thread
  };

  static inline constinit Global global;
  static inline constinit Shelves shelves;
  static inline constinit Thread empty;
  static inline constinit Thread shared;
  static inline constinit typename Line::Front::Store shared_store{};
  static inline constinit thread_local Local tls{&empty, nullptr, false};

  // The state as the hot path sees it.
  HZ_INLINE static Thread& fast() { return *tls.fast.load(std::memory_order_relaxed); }
  // What the hot path is to see while nothing stands against it.
  static Thread& unless_counting(Thread& t) { return global.counting.load(std::memory_order_relaxed) ? empty : t; }

  // Holds a thread's lock or the list's: other fork handlers may allocate while ours are at work.
  struct Hold : os::Guarded {
    explicit Hold(os::Lock& lock) : Guarded(tls.forking ? nullptr : &lock) {}
  };
};

}  // namespace hz
