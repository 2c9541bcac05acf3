// SPDX-License-Identifier: Apache-2.0
//
// A line for scenarios that are about heap/: the front and the exchange are real boxes, the others do
// nothing, and State has what heap/state/state.hpp has of all that threads tell each other. Slots come from
// the scenario, and return to it where they would return to their spans. Used by revocation.cpp, lives.cpp
// and quotas.cpp; `Of` keeps their lines apart. Costs nothing of its own.
#pragma once

#include "box/exchange/contract.hpp"
#include "explorer.hpp"
#include "heap/process/purger.hpp"
#include "heap/state/mitigation.hpp"

namespace hz_test::explorer {

constexpr hz::Bin kBin = 3;

struct Nothing {};

struct NoExchange : hz::WithoutOwners {
  struct Global {};
  static void give_empty(void*) {}
};

// A guard, a route and a mitigation, which scenarios may have of their own.
template <class Of>
struct Parts {
  struct Guard {
    static bool intact(const Nothing&, const void*) { return true; }
    static void join(Nothing&) {}
  };
  struct Route {
    using Tag = std::uint64_t;
    static constexpr bool kOwned = true;
    static void join(Nothing&, unsigned) {}
    static void bind(Nothing&, std::uintptr_t, std::size_t, hz::Bin, unsigned) {}
  };
  template <class Line>
  using Mitigation = hz::Bare<Line>;
};

template <class Of, class AFront, class AnExchange = NoExchange>
struct Mini {
  using Front = AFront;
  using Exchange = AnExchange;
  static constexpr const char* kName = "mini";
  using Guard = typename Parts<Of>::Guard;
  using Route = typename Parts<Of>::Route;
  template <class Line>
  using Mitigation = typename Parts<Of>::template Mitigation<Line>;
  struct Background {};
  struct Policy {
    static void begin_process() {}
  };
  // Its lock is taken without a thread's, by those who only look.
  struct Source {
    struct Global {
      hz::os::LockOf<hz::os::Rank::kSource> lock;
    };
    static void free_locks(Global& g) { g.lock.reset(); }
    static void make_whole(Global& g) { g.lock.reset(); }
    static void for_each_row(Global&, auto) {}
  };
  struct Pool {
    static void make_whole(Nothing&, auto) {}
  };
  struct Retain {
    static void enter(Nothing&, Nothing&, unsigned) {}
    static void leave(Nothing&, Nothing&, unsigned) {}
    static void fold(Nothing&, Nothing&) {}
    static void set_purger(Nothing&, bool) {}
    // It is read, or the compiler would leave that out.
    static void bins_shrunk(Nothing&, std::size_t bytes) { expect(bytes < 1000, "so few slots there are"); }
    static void bins_grown(Nothing&, std::size_t) {}
    static void waiting_added(Nothing&, std::size_t) {}
    static void waiting_taken(Nothing&, std::size_t) {}
    static bool may_wait(Nothing&, Nothing&, std::size_t) { return true; }
    static bool must_go(Nothing&, Nothing&) { return false; }
    static std::size_t waiting_bytes(Nothing&) { return 0; }
  };
  struct Observe {
    static void count(Nothing&, hz::Event, std::size_t) {}
    static void add_to(Nothing&, std::uint64_t*) {}
  };
};

}  // namespace hz_test::explorer

namespace hz {

template <class Of, class F, class E>
struct State<hz_test::explorer::Mini<Of, F, E>> {
  using Nothing = hz_test::explorer::Nothing;
  using Source = typename hz_test::explorer::Mini<Of, F, E>::Source;
  struct Local;
  struct Quota {
    typename F::PerThread front;
    Countdown countdown;
    typename F::Store store;
  };
  struct Thread {
    typename F::PerThread front;
    Nothing route, guard, retain, observe;
    typename E::PerThread exchange;
    typename F::Store store;
    unsigned outbox = 0;
    os::LockOf<os::Rank::kState> lock;
    bool alive = false;
    unsigned owner = 0, given_batches = 0;
    OwnerWord<Local*> local;
    OwnerWord<bool> deferring, hooked, revoked;
    std::size_t capacity_bytes = 0, taken_back = 0;
    Thread *next = nullptr, *previous = nullptr, *closed = nullptr;
    Countdown* countdown = nullptr;
    OwnerWord<Quota*> quota;

    void lost(Bin, std::size_t slots) { taken_back += slots; }
    void gave(std::size_t) {}
    void gave(Bin, std::size_t) {}
  };
  // A page of its own: it goes with its thread.
  struct alignas(4096) Local {
    std::atomic<Thread*> fast{nullptr};
    SharedWord<typename F::PerThread*> supply{nullptr};
    Thread* heap = nullptr;
    std::uint8_t inside = 0, unhooked = 0, unhooked_streams = 0;
    bool forking = false, walking = false;
    HeapRow* biased = nullptr;
  };
  struct Shelves {
    typename E::Global exchange;
    Nothing pool;
    HeapTable heaps;
  };
  enum class ExitKey : std::uint8_t { kNotAsked, kAsked, kThere };
  struct Global {
    Nothing route, retain;
    typename Source::Global source;
    os::LockOf<os::Rank::kThreads> threads_lock;
    Thread *threads = nullptr, *spare = nullptr, *orphans = nullptr;
    Owners<E::kOwners> owners;
    std::size_t thread_memory = 0;
    std::atomic<unsigned> thread_count{0}, trim_cursor{0}, discarding{0};
    std::atomic<bool> counting{false}, fork_hooked{true}, aided{false};
    unsigned exit_key = 0, spares = 0;
    std::atomic<ExitKey> has_exit_key{ExitKey::kThere};
    std::atomic<std::atomic<std::uint32_t>*> process{nullptr};
    std::atomic<std::uint32_t> purger{0};
  };
  static constexpr std::uint32_t kThisProcess = 1;
  static constexpr std::uint32_t kNoPurger = 0, kPurgerRuns = 1, kPurgerSleeps = 2;

  static inline Global global;
  static inline Shelves shelves;
  static inline Local locals[4];
  static inline std::atomic<std::uint32_t> process;
  static inline Thread empty, shared, purger_state;
  static inline typename F::Store shared_store{};
  static inline Countdown shared_countdown;
  // Whose part a scenario plays before its threads begin, or when they have ended.
  static inline unsigned as = 0;
  static Local& tls() {
    const unsigned self = hz_test::explorer::self();
    return locals[hz_test::explorer::is_running() ? self : as];
  }
  // What is static begins anew.
  static void begin() {
    for (auto* state : {&empty, &shared, &purger_state}) ::new (state) Thread;
    for (auto& local : locals) {
      ::new (&local) Local;
      show(local, empty);
    }
    ::new (&global) Global;
    ::new (&shelves) Shelves;
    ::new (&os::before_the_heap) os::OfProcess;
    process.store(kThisProcess, std::memory_order_relaxed);
    global.process.store(&process, std::memory_order_relaxed);
    global.owners.rows_.reach(0);
    shelves.heaps.rows_.reach(0);
    as = 0;
    os::Lock::spins_.store(0, std::memory_order_relaxed);
  }

  static void show(Thread& t, bool shown) {
    Local* const local = t.local.peek();
    if (local != nullptr) show(*local, shown ? unless_counting(t) : empty);
  }
  static void show(Local& local, Thread& t) {
    local.fast.store(&t, std::memory_order_relaxed);
    Quota* const quota = t.countdown != nullptr ? t.quota.peek() : nullptr;
    local.supply.set(quota != nullptr ? &quota->front : &t.front);
  }
  static Thread& unless_counting(Thread& t) { return t; }
  static Thread& fast() { return *tls().fast.load(std::memory_order_relaxed); }
  static typename F::PerThread& supply() { return *tls().supply.get(); }
  static bool is_own_work() { return tls().forking; }
  struct Hold : os::Guarded {
    template <os::Rank kRank>
    explicit Hold(os::LockOf<kRank>& lock) : Hold(lock, kRank) {}
    Hold(os::Lock& lock, os::Rank rank) : Guarded(tls().forking ? nullptr : &lock, rank) {}
  };
  struct TryHold : os::Guarded {
    explicit TryHold(os::LockOf<os::Rank::kState>& lock)
        : Guarded(nullptr, os::Rank::kState), held(tls().forking || lock.try_lock()) {
      if (held && !tls().forking) adopt(lock);
    }
    const bool held;
  };
  struct Crossing : Hold {
    explicit Crossing(Thread& t) : Hold(t.lock) {}
  };
};

template <class Of, class F, class E>
struct SpanReturn<hz_test::explorer::Mini<Of, F, E>> {
  using Thread = typename State<hz_test::explorer::Mini<Of, F, E>>::Thread;
  static void put_back(Thread&, Bin, typename F::Bundle bundle) {
    void* room[16];
    for (unsigned count; (count = bundle.take(room, 16)) != 0;)
      for (unsigned i = 0; i < count; ++i) hz_test::explorer::taken(room[i]);
  }
  static bool is_slot(const void*, Bin) { return true; }
  static void check_marks(Thread&, Bin, const auto&) {}
  static void move(Bin, const auto&, Phase) {}
  static void prove(Bin, const auto&) {}
  static void purge_if_due(Thread&) {}
  static bool may_wait(const Thread&, std::size_t) { return true; }
};
template <class Of, class F, class E>
struct Faults<hz_test::explorer::Mini<Of, F, E>> {
  static void note(Fault, const void*, Bin, Seen = Seen::kLater) {
    hz_test::explorer::expect(false, "two lists cannot be unresolved");
  }
  struct Telling {
    Telling() {}
  };
};

}  // namespace hz
