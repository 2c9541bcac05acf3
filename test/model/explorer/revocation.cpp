// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: a thread's cache is taken back while it pops and puts, and the purger goes to sleep while
// threads come back. The protocols are those of heap/revoke.hpp, heap/thread.hpp, heap/purger.hpp and of both
// fronts; what they stand on (states, spans, books) is here no more than they ask of it.
#include "box/front/linked_bins.hpp"
#include "box/front/magazine_bins.hpp"
#include "explorer.hpp"
#include "heap/purger.hpp"

namespace hz_test::explorer {
namespace {

constexpr hz::Bin kBin = 3;

struct Nothing {};

template <class AFront>
struct Mini {
  using Front = AFront;
  static constexpr const char* kName = "mini";
  struct Guard {
    static bool intact(const Nothing&, const void*) { return true; }
  };
  struct Exchange {
    static void give_empty(void*) {}
  };
  struct Background {};
  struct Policy {};
  struct Source {};
  struct Retain {
    static void enter(Nothing&, Nothing&, unsigned) {}
    static void leave(Nothing&, Nothing&, unsigned) {}
    static void bins_shrunk(Nothing&, std::size_t) {}
    static void bins_grown(Nothing&, std::size_t) {}
  };
  struct Observe {
    static void count(Nothing&, hz::Event, unsigned) {}
  };
};

// What of magazines a thread may have; the line's answer for a class.
struct ForMagazines {
  static constexpr unsigned kBinSlots = 32;
  struct Policy {
    static constexpr unsigned max_capacity(hz::Bin) { return 8; }
  };
};
using Linked = Mini<hz::LinkedBins>;
using Arrays = Mini<hz::MagazineBins<ForMagazines>>;

}  // namespace
}  // namespace hz_test::explorer

namespace hz {

using hz_test::explorer::Mini;
using hz_test::explorer::Nothing;

template <class F>
struct State<Mini<F>> {
  struct Local;
  struct Left {
    unsigned left[kBins];
  };
  struct Quota {
    typename F::PerThread front;
    Left countdown;
  };
  struct Thread {
    typename F::PerThread front;
    Nothing guard, retain, observe;
    typename F::Store store;
    unsigned outbox = 0;
    os::Lock lock;
    OwnerWord<Local*> local;
    OwnerWord<bool> deferring, hooked, revoked;
    bool hidden = false;
    std::size_t capacity_bytes = 0, taken_back = 0;
    Thread *next = nullptr, *closed = nullptr;
    OwnerWord<Quota*> quota;
    Left* countdown = nullptr;

    void lost(Bin, std::size_t slots) { taken_back += slots; }
    void gave(std::size_t) {}
  };
  struct Local {
    std::atomic<Thread*> fast{nullptr};
    SharedWord<typename F::PerThread*> supply{nullptr};
    Thread* heap = nullptr;
    bool forking = false;
  };
  struct Global {
    Nothing retain;
    os::Lock threads_lock;
    Thread* threads = nullptr;
    std::atomic<std::uint32_t> purger{0};
  };
  static constexpr std::uint32_t kNoPurger = 0, kPurgerRuns = 1, kPurgerSleeps = 2;

  static inline Global global;
  static inline Local locals[4];
  static inline Thread empty, shared, purger_state;
  static Local& tls() { return locals[hz_test::explorer::self()]; }

  static void show(Thread& t, bool shown) {
    Local* const local = t.local.peek();
    if (local != nullptr) show(*local, shown ? unless_counting(t) : empty);
  }
  static void show(Local& local, Thread& t) {
    local.fast.store(&t, std::memory_order_relaxed);
    local.supply.set(&t.front);
  }
  static Thread& unless_counting(Thread& t) { return t; }
  struct Hold : os::Guarded {
    explicit Hold(os::Lock& lock) : Guarded(&lock) {}
  };
  struct TryHold : os::Guarded {
    explicit TryHold(os::Lock& lock) : Guarded(nullptr), held(lock.try_lock()) {
      if (held) adopt(lock);
    }
    const bool held;
  };
  struct Crossing : Hold {
    explicit Crossing(Thread& t) : Hold(t.lock) {}
  };
};

template <class F>
struct SpanReturn<Mini<F>> {
  using Thread = typename State<Mini<F>>::Thread;
  static void put_back(Thread&, Bin, typename F::Bundle bundle) {
    void* room[16];
    const unsigned count = bundle.take(room, 16);
    for (unsigned i = 0; i < count; ++i) hz_test::explorer::taken(room[i]);
  }
  static bool is_slot(const void*, Bin) { return true; }
};
template <class F>
struct Reclaim<Mini<F>> {
  static void send(typename State<Mini<F>>::Thread& t, bool) { t.outbox = 0; }
};
template <class F>
struct Faults<Mini<F>> {
  static void note(Fault, const void*, Bin) {
    hz_test::explorer::expect(false, "two lists cannot be unresolved");
  }
  struct Telling {};
};

}  // namespace hz

namespace hz_test::explorer {
namespace {

template <class Line>
struct Owner {
  using S = hz::State<Line>;
  using Front = typename Line::Front;
  using Threads = hz::Threads<Line>;

  explicit Owner(Execution& e) : t(e.make<typename S::Thread>()) {
    for (auto* state : {&S::empty, &S::shared, &S::purger_state}) ::new (state) typename S::Thread;
    for (auto& local : S::locals) ::new (&local) typename S::Local;
    ::new (&S::global) typename S::Global;
    hz::os::Lock::spins_.store(0, std::memory_order_relaxed);
    Front::join(t.front, t.store);
    Front::set_capacity(t.front, kBin, 4);
    Front::set_capacity(t.front, kBin + 1, 4);
    for (unsigned i = 0; i < 3; ++i) {
      slots[i] = e.room(64, 64);
      starts_outside(slots[i]);
    }
    S::global.threads = &t;
    t.local.set(&S::locals[0]);
    t.hooked.set(true);
    S::locals[0].heap = &t;
    S::show(t, true);
  }

  // As the upper half of heap.hpp does it; the slow way has the thread's lock.
  void free(void* slot, hz::Bin bin) {
    given(slot);
    auto& front = S::tls().fast.load(std::memory_order_relaxed)->front;
    if (Front::admit(front, bin, slot)) return Front::put(front, bin, slot);
    Front::turn_away(front, bin);
    taken(slot);
    cross();
  }
  void allocate(hz::Bin bin) {
    auto& front = *S::tls().supply.get();
    if (void* const slot = Front::pop(front, bin)) return taken(slot);
    cross();
  }
  void cross() {
    const hz::os::Guarded hold(t.lock);
    if (t.revoked.peek()) Threads::reattach(t);
  }
  // As Heap::deferred: the outbox is the owner's while the flag is up and it still sees its state.
  void defer() {
    t.deferring.put(true);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (S::tls().fast.load(std::memory_order_relaxed) == &t) ++t.outbox;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t.deferring.set_last(false);
  }
  bool revoke() {
    const hz::os::Guarded list(S::global.threads_lock);
    return hz::Revocation<Line>::revoke(t);
  }
  void end() {
    Threads::restore(t);
    for (const hz::Bin bin : {kBin, kBin + 1}) {
      auto left = Front::drain(t.front, bin, 8);
      void* room[8];
      const unsigned count = left.take(room, 8);
      for (unsigned i = 0; i < count; ++i) taken(room[i]);
    }
    expect(outside() == 3, "a slot was lost");
  }

  typename S::Thread& t;
  void* slots[3];
};

template <class Line>
void revoked(Execution& e) {
  auto& owner = e.make_of<Owner<Line>>();
  e.thread([&owner] {
    owner.free(owner.slots[0], kBin);
    owner.free(owner.slots[1], kBin);
    owner.allocate(kBin);
    owner.free(owner.slots[2], kBin + 1);
  });
  e.thread([&owner] { owner.revoke(); });
  e.finally([&owner] { owner.end(); });
}
const Scenario linked("revoke.linked", &revoked<Linked>);
const Scenario arrays("revoke.arrays", &revoked<Arrays>);

template <class Line>
void revoked_twice(Execution& e) {
  auto& owner = e.make_of<Owner<Line>>();
  owner.free(owner.slots[0], kBin);
  owner.free(owner.slots[1], kBin);
  e.thread([&owner] {
    owner.allocate(kBin);
    owner.allocate(kBin);
    owner.free(owner.slots[2], kBin);
  });
  e.thread([&owner] {
    owner.revoke();
    owner.revoke();
  });
  e.finally([&owner] { owner.end(); });
}
const Scenario linked_twice("revoke.again.linked", &revoked_twice<Linked>);
const Scenario arrays_twice("revoke.again.arrays", &revoked_twice<Arrays>);

// The outbox is one thread's at a time: nothing orders two that write it but the flag and the barrier.
const Scenario outbox("revoke.outbox", [](Execution& e) {
  auto& owner = e.make_of<Owner<Linked>>();
  e.thread([&owner] {
    owner.defer();
    owner.defer();
  });
  e.thread([&owner] { owner.revoke(); });
});

// The purger may sleep while all threads are revoked: whoever comes back meanwhile is seen by it, or wakes
// it.
template <class Line>
void sleep(Owner<Line>& owner) {
  using S = hz::State<Line>;
  owner.revoke();
  expect(hz::Purger<Line>::sleep(), "there is a barrier");
  expect(S::global.purger.load(std::memory_order_relaxed) == S::kPurgerRuns, "it is awake");
}
const Scenario sleeps("purger.sleeps", [](Execution& e) {
  auto& owner = e.make_of<Owner<Linked>>();
  Owner<Linked>::S::global.purger.store(Owner<Linked>::S::kPurgerRuns, std::memory_order_relaxed);
  e.thread([&owner] { owner.allocate(kBin); });
  e.thread([&owner] { sleep(owner); });
  e.may_wait([&owner] { return owner.t.revoked.peek(); });
});
// When the last thread has ended it is woken in any case.
const Scenario ends("purger.ends", [](Execution& e) {
  auto& owner = e.make_of<Owner<Linked>>();
  using S = Owner<Linked>::S;
  S::global.purger.store(S::kPurgerRuns, std::memory_order_relaxed);
  e.thread([] {
    const hz::os::Guarded hold(S::global.threads_lock);
    S::global.threads = nullptr;
    hz::Threads<Linked>::wake_purger();
  });
  e.thread([&owner] {
    owner.t.revoked.set(true);
    hz::Purger<Linked>::sleep();
  });
});

}  // namespace
}  // namespace hz_test::explorer
