// SPDX-License-Identifier: Apache-2.0
//
// The state of one line's heap: what the process has, what each thread has, and how a thread finds its own.
// Everything is constant-initialised, because the dynamic loader calls malloc before any constructor runs.
//
//   tls.fast   what the hot path sees: this thread's state, or `empty`, whose bins are empty and which owns
//              nothing, so that every operation falls into its slow path (not born yet, dead, revoked, or
//              operations are being counted)
//   tls.supply what of it malloc takes from: the bins of the same state, but while a heap profile is kept,
//              where they are the thread's quota (heap/api/quotas.hpp)
//   tls.heap   what the slow path uses: this thread's state, or `shared` for the dead and when there is no
//              memory, or null before birth
//
// Lock order: that of first-class heaps -> one such heap -> threads -> one thread's lock -> that of `shared`,
// or of `purger_state` -> pool -> source.
#pragma once

#include <atomic>
#include <concepts>
#include <iterator>

#include "base/plain_word.hpp"
#include "box/exchange/contract.hpp"
#include "box/front/contract.hpp"
#include "box/guard/contract.hpp"
#include "box/observe/contract.hpp"
#include "box/policy/contract.hpp"
#include "box/pool/contract.hpp"
#include "box/retain/contract.hpp"
#include "box/route/contract.hpp"
#include "box/source/contract.hpp"
#include "heap/samples/sampling.hpp"
#include "heap/state/heap_table.hpp"
#include "heap/state/owners.hpp"
#include "os/lock.hpp"
#include "os/per_thread.hpp"
#include "os/probe.hpp"

namespace hz {

// What the boxes of a line ask of each other. Each line of it was an assumption that one box made of another.
template <class Line>
struct Composition {
  using Route = typename Line::Route;
  using Front = typename Line::Front;
  using Exchange = typename Line::Exchange;
  using Pool = typename Line::Pool;
  using Source = typename Line::Source;
  using Guard = typename Line::Guard;
  using Bundle = typename Front::Bundle;

  static_assert(std::same_as<Bundle, typename Exchange::Bundle>,
                "slots pass between front and exchange: they need one type of Bundle");

  // Audits follow links; and a list that was taken from a thread may begin with a slot that the program has.
  static_assert(!Guard::kMarks || Front::kInBand,
                "a guard with marks needs links in free slots: a front in band");
  static_assert(!Front::kInBand || Guard::kMarks,
                "a front in band needs a guard with marks, or its links are not proved");

  // Without owners the hot path does not ask whether there is a tag: the bin of nothing goes on to guard and
  // front.
  static_assert(Route::kOwned || !Guard::kProves, "a guard that looks at slots needs a route with owners");
  static_assert(Route::kOwned || Front::kAnyBin,
                "a route without owners needs a front that may be asked for any bin");

  static_assert(Route::kOwned || (Exchange::kOwners == 1 && !Exchange::kUntold),
                "an exchange with owners needs a route that names them");
  static_assert(!Route::kOwned || Exchange::kOwners < Route::kMostOwners,
                "tags need room for every owner, and for one that nobody is");
  static constexpr unsigned kSpanOwners = 256;  // preferred users of a span's slots in lines without owners
  static_assert((Route::kOwned ? Exchange::kOwners : kSpanOwners) <= Pool::kMostOwners,
                "spans need room for every owner");

  // The tag of a page vouches for all that starts in it.
  static_assert(!Route::kByPages || Pool::kWholePages, "page tags need a pool that carves whole pages");

  // Two frees of a slot would be one bit; and what is collected is looked at slot by slot.
  static_assert(!Exchange::kUntold || Guard::kClaims,
                "an exchange that is not told of each slot needs a guard of which one of two claims fails");
  static_assert(
      !Exchange::kUntold || requires(Bundle bundle) { bundle.slots[0]; },
      "an exchange that is not told of each slot needs bundles that are arrays");

  // A guard that tracks moves checks each slot, and only a guard that proves each free knows a slot's place.
  static_assert(!Guard::kTracks || (Guard::kProves && requires(Bundle bundle) { bundle.slots[0]; }),
                "a guard that is told of moves needs bundles that are arrays, and proves each free");

  // A slot that was never handed out is checked like one that was freed.
  static_assert(Guard::kSealBytes == 0 || (Pool::kWholeSpans && !Front::kInBand && !Exchange::kUntold),
                "a guard with seals needs a pool that carves whole spans, and nobody else's words in slots");

  // Tables beside the arena, one row a granule.
  template <class Box>
  static constexpr unsigned tables() {
    if constexpr (requires { Box::kTables; }) return static_cast<unsigned>(std::size(Box::kTables));
    return 0;
  }
  template <class Box>
  static constexpr bool names_its_tables() {
    std::size_t left = 0;
    if constexpr (requires { Box::kTableBytesPerGranule; }) left = Box::kTableBytesPerGranule;
    if constexpr (requires { Box::kTables; }) {
      for (const std::size_t row : Box::kTables) left -= row;
    }
    return left == 0;
  }
  static_assert(names_its_tables<Guard>() && names_its_tables<Pool>() && names_its_tables<Exchange>(),
                "a box with tables has to name each of them: the sum of kTables is kTableBytesPerGranule");
  static_assert(1 + tables<Guard>() + tables<Pool>() + tables<Exchange>() <= Source::kMostTables,
                "the source cannot keep so many tables");
};

template <class Line>
struct State {
  static_assert(RouteContract<typename Line::Route>);
  static_assert(FrontContract<typename Line::Front>);
  static_assert(ExchangeContract<typename Line::Exchange>);
  static_assert(!FrontOfMagazines<typename Line::Front> || ExchangeOfMagazines<typename Line::Exchange>,
                "magazines need a place where they wait");
  static_assert(PoolContract<typename Line::Pool>);
  static_assert(SourceContract<typename Line::Source>);
  static_assert(RetainContract<typename Line::Retain>);
  static_assert(BackgroundContract<typename Line::Background>);
  static_assert(GuardContract<typename Line::Guard>);
  static_assert(PolicyContract<typename Line::Policy>);
  static_assert(ObserveContract<typename Line::Observe>);
  static_assert(sizeof(Composition<Line>) != 0);

  struct Local;

  // See heap/api/quotas.hpp. Mapped when a thread first needs it, and there as long as its state.
  struct Quota {
    typename Line::Front::PerThread front;
    Countdown countdown;
    typename Line::Front::Store store;
  };

  struct Thread {
    typename Line::Front::PerThread front;
    typename Line::Route::PerThread route;
    typename Line::Guard::PerThread guard;
    typename Line::Exchange::PerThread exchange;
    [[no_unique_address]] typename Line::Observe::PerThread observe;
    typename Line::Policy::PerThread policy;

    os::LockOf<os::Rank::kState> lock;  // held by a thread in the slow path with this state
    bool alive = false;
    unsigned owner = 0;
    unsigned given_batches = 0;      // see TransferCache::put
    std::size_t capacity_bytes = 0;  // sum over the bins of capacity * size, within the budget
    std::ptrdiff_t taken = 0;        // bytes that came to it less those that it gave away
    std::size_t taken_back = 0;  // bytes that a revocation put back; its owner notes them when it reattaches
    std::size_t level = 0;       // the most live bytes since Boundary::give_up_if_halved emptied it
    bool shrinks = false;        // it halved since then, and more than a little is cached or free in spans
    typename Line::Retain::PerThread retain;
    OwnerWord<Local*> local;      // of the thread while it lives; null for the dead
    OwnerWord<bool> deferring;    // the owner is at its outbox without the lock
    OwnerWord<bool> hooked;       // a hook runs at its end, so its storage may be written to until then
    OwnerWord<bool> revoked;      // it caches nothing and sees `empty`: see heap/process/revoke.hpp
    std::uint64_t signature = 0;  // for the purger: as it looked last ...
    unsigned same = 0;            // ... how often in a row ...
    std::size_t highest = 0;      // ... and the most bytes out of spans since its cache was last taken
    Thread* next = nullptr;
    Thread* previous = nullptr;
    Thread* closed = nullptr;        // while counting: its own `empty`, for each operation writes there
    Countdown* countdown = nullptr;  // while there are samples; states without a thread use the shared one's
    OwnerWord<Quota*> quota;         // null: it never kept one; states without a thread have none

    // Slots came to the thread from elsewhere, or left it, or were taken from it by a thread that does not
    // write its books.
    void took(Bin bin, std::size_t slots) {
      taken += static_cast<std::ptrdiff_t>(slots * bin_size(bin));
      os::probe::refill(bin_size(bin), slots);
    }
    void gave(Bin bin, std::size_t slots) {
      gave(slots * bin_size(bin));
      os::probe::flush(bin_size(bin), slots);
    }
    void gave(std::size_t bytes) { taken -= static_cast<std::ptrdiff_t>(bytes); }
    void lost(Bin bin, std::size_t slots) {
      taken_back += slots * bin_size(bin);
      os::probe::flush(bin_size(bin), slots);
    }
  };
  static_assert(sizeof(Thread) <= Line::kThreadBytes, "the line promises to keep a thread's state small");

  // Where threads meet, by class and by owner, and in first-class heaps. All zero at first, and apart from
  // what is not, so that a page of it is touched when something in it is used.
  struct Shelves {
    typename Line::Exchange::Global exchange;
    typename Line::Pool::Global pool;
    HeapTable heaps;
  };

  enum class ExitKey : std::uint8_t { kNotAsked, kAsked, kThere };
  struct Global {
    typename Line::Route::Global route;
    typename Line::Source::Global source;
    typename Line::Retain::Global retain;

    std::atomic<std::size_t> huge_blocks{0}, huge_bytes{0};  // in use

    os::LockOf<os::Rank::kThreads> threads_lock;  // guards what follows
    Thread* threads = nullptr;                    // alive
    Thread* spare = nullptr;                      // states of the dead, for threads to come
    Thread* orphans = nullptr;  // of threads that a fork left behind: adopted with all that they hold
    Owners<Line::Exchange::kOwners> owners;
    std::size_t thread_memory = 0;
    std::atomic<unsigned> thread_count{0};  // alive; written under the lock
    unsigned busy_turn = 0;  // which busy threads the purger takes from next: see Purger::take_back

    std::atomic<bool> open{false};
    std::atomic<bool> counting{false};
    std::atomic<unsigned> trim_cursor{0};
    std::atomic<std::size_t> discard_cursor{0};  // granule
    std::atomic<unsigned> discarding{0};         // spans that are claimed for it
    std::atomic<std::size_t> sweep_at{0};        // granule; 0: none is under way
    std::atomic<std::uint64_t> sweep_began{0};   // milliseconds
    std::atomic<std::size_t> thread_budget{0};   // what the user said; 0: nothing
    unsigned exit_key = 0;
    std::atomic<ExitKey> has_exit_key{ExitKey::kNotAsked};
    // What is not kThisProcess for a child that no fork hook was called for: see Forks::cut_off.
    std::atomic<std::atomic<std::uint32_t>*> process{&always};
    unsigned spares = 0;  // length of `spare`
    std::atomic<bool> fork_hooked{false};

    std::atomic<std::uint32_t> purger{kNoPurger};  // waited on
    std::atomic<bool> aided{false};  // there is a purger, and it can take back what threads cache
    std::atomic<std::uint64_t> purger_not_before{0};  // milliseconds
  };
  static constexpr std::uint32_t kThisProcess = 1;
  static inline constinit std::atomic<std::uint32_t> always{kThisProcess};
  static constexpr std::uint32_t kNoPurger = 0, kPurgerRuns = 1, kPurgerSleeps = 2;

  static constexpr unsigned kMostNoted = 2;

  struct Local {
    std::atomic<Thread*> fast{&empty};  // written by others, too, as is the next
    SharedWord<typename Line::Front::PerThread*> supply{&empty.front};
    Thread* heap = nullptr;
    bool forking = false;     // between the fork hooks: this thread holds every thread's lock, and the list's
    std::uint8_t inside = 0;  // of so many scopes that take locks
    std::uint8_t unhooked =
        0;  // forks that our hooks do nothing for (heap/process/fork.hpp), but lock the list of
    std::uint8_t unhooked_streams = 0;  // streams: how many of them did
    std::uint8_t noted = 0;
    bool walking = false;                  // its stack, for the heap profile
    std::uint64_t notes[kMostNoted] = {};  // see heap/state/faults.hpp
    HeapRow* biased = nullptr;             // of the heap that it began last: see heap/heaps/heaps.hpp

    // For os::PerThread.
    static constexpr Local late() { return {.heap = &shared}; }
    bool is_over() const { return heap == nullptr || heap == &shared; }
  };

  static inline constinit Global global;
  static inline constinit Shelves shelves;
  static inline constinit Thread empty;
  static inline constinit Thread shared;
  static inline constinit Thread purger_state;  // the purger's: it caches nothing
  static inline constinit typename Line::Front::Store shared_store{};
  static inline constinit Countdown shared_countdown;
  HZ_INLINE static Local& tls() { return os::PerThread<Local>::mine(); }

  // The state as the hot path sees it.
  HZ_INLINE static Thread& fast() { return *tls().fast.load(std::memory_order_relaxed); }
  HZ_INLINE static typename Line::Front::PerThread& supply() { return *tls().supply.get(); }
  // Lets the hot path of a living thread see its state, or nothing, so that each of its operations crosses.
  static void show(Thread& t, bool shown) {
    Local* const local = t.local.peek();
    if (local != nullptr) show(*local, shown ? unless_counting(t) : empty);
  }
  static void show(Local& local, Thread& t) {
    local.fast.store(&t, std::memory_order_relaxed);
    Quota* const quota = t.countdown != nullptr ? t.quota.peek() : nullptr;
    local.supply.set(quota != nullptr ? &quota->front : &t.front);
  }
  // What the thread allocates is not the program's: it is no sample.
  static bool is_own_work() { return tls().walking || tls().forking; }
  // What the hot path is to see while nothing stands against it.
  static Thread& unless_counting(Thread& t) { return t.closed == nullptr ? t : *t.closed; }

  // Holds a thread's lock or the list's: other fork handlers may allocate while ours are at work.
  struct Hold : os::Guarded {
    template <os::Rank kRank>
    explicit Hold(os::LockOf<kRank>& lock) : Hold(lock, kRank) {}
    Hold(os::Lock& lock, os::Rank rank) : Guarded(tls().forking ? nullptr : &lock, rank) {}
  };
  // The same, if no other thread holds it.
  struct TryHold : os::Guarded {
    template <os::Rank kRank>
    explicit TryHold(os::LockOf<kRank>& lock) : TryHold(lock, kRank) {}
    TryHold(os::Lock& lock, os::Rank rank) : Guarded(nullptr, rank), held(tls().forking || lock.try_lock()) {
      if (held && !tls().forking) adopt(lock);
    }
    const bool held;
  };
  // The lock of a state for one crossing of the boundary; and its part of retention's books, which is read
  // before and folded after. They are exact after each slow path if no other thread is at work, or none could
  // fold later.
  class Crossing {
   public:
    explicit Crossing(Thread& t) : thread_(t), began_(Line::Policy::watches() ? begin() : 0), hold_(t.lock) {
      Line::Retain::enter(global.retain, t.retain, sharers());
    }
    ~Crossing() {
      Line::Retain::leave(global.retain, thread_.retain, sharers());
      if (HZ_UNLIKELY(began_ != 0)) end();
    }
    Crossing(const Crossing&) = delete;
    Crossing& operator=(const Crossing&) = delete;

   private:
    unsigned sharers() const {
      const bool may_wait = global.aided.load(std::memory_order_relaxed) && thread_.local.peek() != nullptr;
      return may_wait ? global.thread_count.load(std::memory_order_relaxed) : 1;
    }
    // Where the policy learns: when a crossing by a thread's own begins, if its time is asked for.
    HZ_COLD std::uint64_t begin() const {
      const bool own = thread_.local.peek() == &tls() && !tls().forking;
      return own && Line::Policy::is_timed(thread_.policy) ? os::microseconds() : 0;
    }
    HZ_COLD void end() const {
      const std::uint64_t now = os::microseconds();
      if (Line::Policy::crossed(thread_.policy, began_, now)) set_bounds(now);
    }
    Thread& thread_;
    const std::uint64_t began_;  // microseconds; 0: not timed
    const Hold hold_;
  };

  // What the policy lets the process hold from now on.
  static void set_bounds(std::uint64_t now) {
    const Bounds bounds = Line::Policy::bounds(now);
    Line::Retain::bound(global.retain, bounds.percent, bounds.floor, bounds.follows);
    Line::Policy::holds(now, held());
  }
  // Read one after the other, while others change them.
  static Held held() {
    const auto less = [](std::size_t from, std::size_t what) { return from > what ? from - what : 0; };
    const std::size_t out = Line::Retain::out_bytes(global.retain);
    const std::size_t waiting = Line::Retain::waiting_bytes(global.retain);
    const std::size_t cached = less(Line::Retain::idle_bytes(global.retain), waiting);
    const std::size_t huge = global.huge_bytes.load(std::memory_order_relaxed);
    return {.blocks = less(out, waiting + cached),
            .waiting = waiting,
            .cached = cached,
            .in_spans = less(Line::Retain::span_bytes(global.retain), less(out, huge)),
            .dirty = Line::Source::dirty_bytes(global.source)};
  }
};

}  // namespace hz
