// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: a thread's cache is taken back while it pops and puts, and the purger goes to sleep while
// threads come back. The protocols are those of heap/process/revoke.hpp, heap/process/thread.hpp,
// heap/process/purger.hpp and of both fronts; what they stand on (states, spans, books) is here no more than
// they ask of it.
#include "box/front/linked_bins.hpp"
#include "box/front/magazine_bins.hpp"
#include "box/front/quarantine.hpp"
#include "mini.hpp"

namespace hz_test::explorer {

struct OfRevocation;
// What of magazines a thread may have; the line's answer for a class.
struct ForMagazines {
  static constexpr unsigned kBinSlots = 32;
  struct Policy {
    static constexpr unsigned max_capacity(hz::Bin) { return 8; }
  };
};
using Linked = Mini<OfRevocation, hz::LinkedBins>;
using Arrays = Mini<OfRevocation, hz::MagazineBins<ForMagazines>>;
// One place a class, so that a random one is known.
using Rings = Mini<OfRevocation, hz::Quarantine<ForMagazines, 1>>;

}  // namespace hz_test::explorer

namespace hz {

template <class F>
struct Reclaim<hz_test::explorer::Mini<hz_test::explorer::OfRevocation, F>> {
  using Line = hz_test::explorer::Mini<hz_test::explorer::OfRevocation, F>;
  static void send(typename State<Line>::Thread& t, bool) { t.outbox = 0; }
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
    S::begin();
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
    others_may_run();
    ++t.capacity_bytes;  // what a slow path may change
    others_may_run();
  }
  // As Heap::deferred: the outbox is the owner's while the flag is up and it still sees its state.
  void defer() {
    t.deferring.put(true);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (S::tls().fast.load(std::memory_order_relaxed) == &t) {
      others_may_run();
      ++t.outbox;
      others_may_run();
    }
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
      unsigned count = 0;
      do {
        auto left = Front::drain(t.front, bin, 8);
        void* room[8];
        count = left.take(room, 8);
        for (unsigned i = 0; i < count; ++i) taken(room[i]);
        if constexpr (hz::FrontOfQuarantine<Front>) Front::drained(t.front, bin, count);
      } while (hz::FrontOfQuarantine<Front> && count != 0);
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
const Scenario rings("revoke.rings", &revoked<Rings>);

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
const Scenario rings_twice("revoke.again.rings", &revoked_twice<Rings>);

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
