// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: lives of threads, and forks. Births, deaths, what the dead leave to their heirs and to owners
// without a thread, states that are taken over, the fork's hooks, and a child that no hook was called for:
// heap/process/thread.hpp, reclaim.hpp, transfer_cache.hpp and fork.hpp with the boxes of hz3.
#include "box/exchange/owner_lists.hpp"
#include "box/exchange/sparse_ring.hpp"
#include "box/front/linked_bins.hpp"
#include "mini.hpp"
#include "streams.hpp"

namespace hz_test::explorer {

struct OfLives;
struct ForLists {
  static constexpr unsigned kOwners = 2, kOutboxEntries = 4, kParcelSlots = 8;
  static constexpr std::size_t kOutboxBytes = 4096, kParcelBytes = 4096;
};
using Heirs = Mini<OfLives, hz::LinkedBins, hz::OwnerLists<ForLists, hz::SparseRing<ForLists>>>;

}  // namespace hz_test::explorer

namespace hz {

template <>
struct Start<hz_test::explorer::Heirs> {
  static bool open() { return true; }
};
template <>
struct Quotas<hz_test::explorer::Heirs> {
  static void leave(auto&) {}
};

// Of these a child asks that they begin; what they do then is not explored.
__attribute__((weak)) void Control::begin_again() {}
__attribute__((weak)) void HeapProfile::in_child() {}
__attribute__((weak)) void GuardedPool::in_child() {}

namespace os {
__attribute__((weak)) bool arm_exit_hook(unsigned, void*) { return true; }
void set_fork_hooks(void (*)(), void (*)(), void (*)()) {}
__attribute__((weak)) void note_process() {}
__attribute__((weak)) bool is_noted_process() { return false; }
}  // namespace os

}  // namespace hz

namespace hz_test::explorer {
namespace {

using S = hz::State<Heirs>;
using Threads = hz::Threads<Heirs>;
using Forks = hz::Forks<Heirs>;
using Front = Heirs::Front;
using Exchange = Heirs::Exchange;
using Transfer = hz::TransferCache<Heirs>;

struct Lives {
  explicit Lives(Execution& e) {
    S::begin();
    for (auto& slot : slots) {
      slot = e.room(64, 64);
      starts_outside(slot);
    }
  }
  // Born before the threads begin, as the one of that number.
  void born(unsigned number) {
    S::as = number;
    Threads::Entered().thread();
    S::as = 0;
  }

  // As free_here() and malloc's slow way: with the lock of the calling thread's state, which is born if need
  // be.
  void free(void* slot) {
    Threads::Entered here;
    put(here.thread(), slot);
  }
  static void put(S::Thread& t, void* slot) {
    if (Front::capacity(t.front, kBin) == 0) Front::set_capacity(t.front, kBin, 4);
    given(slot);
    expect(Front::admit(t.front, kBin, slot), "there is room");
    Front::put(t.front, kBin, slot);
  }
  // To an owner that had a thread a moment ago.
  void free(void* slot, unsigned owner, bool sends) {
    Threads::Entered here;
    given(slot);
    Exchange::defer(here.thread().exchange, owner, kBin, slot);
    if (sends) hz::Reclaim<Heirs>::send(here.thread(), true);
  }
  // From its bin, of what waits for its owner, or of what waits for an owner without a thread.
  void allocate() {
    Threads::Entered here;
    S::Thread& t = here.thread();
    if (void* const slot = Front::pop(t.front, kBin)) return taken(slot);
    hz::Chain chain = {};
    Transfer::take(t, t.owner, kBin, 1, chain);
    if (chain.count == 0) Transfer::steal(t, kBin, 1, true, chain);
    SpanReturn::put_back(t, kBin, chain);
  }
  // Its storage goes with the thread.
  static void end() {
    if (S::tls().heap != &S::shared) Threads::on_thread_exit(S::tls().heap);
    if (is_running()) hz::os::unmap(&S::tls(), sizeof(S::Local));
  }
  // Each that lives is in the list once, and its owner knows it.
  static void check_list() {
    unsigned count = 0, of[ForLists::kOwners] = {};
    const S::Thread* before = nullptr;
    for (const S::Thread* t = S::global.threads; t != nullptr; before = t, t = t->next) {
      expect(++count <= 4, "the list of threads goes in a circle");
      expect(t->alive && t->previous == before, "the list of threads is torn");
      ++of[t->owner];
    }
    expect(count == S::global.thread_count.load(std::memory_order_relaxed), "a thread was lost, or is twice");
    for (unsigned owner = 0; owner < ForLists::kOwners; ++owner)
      expect(of[owner] == S::global.owners.threads(owner), "an owner has other threads than are there");
  }

  using SpanReturn = hz::SpanReturn<Heirs>;
  void* slots[3];
};

// Who ends looks through the bins of all classes.
constexpr unsigned kShare = 4;

// What is sent to an owner whose last thread ends is found by who asks on behalf of owners without threads.
const Scenario sent("lives.sent", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  lives.born(0);
  lives.born(1);
  e.thread([&lives] {
    lives.free(lives.slots[0]);
    Lives::end();
  });
  e.thread([&lives] { lives.free(lives.slots[1], 0, true); });
  e.finally([&lives] {
    Lives::check_list();
    expect(S::global.owners.threads(0) == 0, "it ended");
    S::as = 1;
    lives.allocate();
    expect(outside() == 3, "a slot waits where nobody looks");
  });
});

// Heirs that leave together: what they leave returns to its spans, for nobody would come for it.
const Scenario heirs("lives.heirs", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  for (unsigned i = 0; i < 3; ++i) lives.born(i);  // owners 0, 1, 0
  e.thread([&lives] {
    lives.free(lives.slots[0]);
    Lives::end();
  });
  e.thread([] {});
  e.thread([&lives] {
    lives.free(lives.slots[1]);
    Lives::end();
  });
  e.finally([] {
    Lives::check_list();
    expect(S::global.thread_count.load(std::memory_order_relaxed) == 1, "two ended");
    expect(outside() == 3, "a slot waits for heirs, and there are none");
  });
});

// One ends while two are born: no state is two threads', and who takes the owner over may find what was left.
const Scenario births("lives.births", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  lives.born(0);
  e.thread([&lives] {
    lives.free(lives.slots[0]);
    Lives::end();
  });
  for (unsigned i = 1; i < 3; ++i) {
    e.thread([&lives, i] {
      lives.free(lives.slots[i]);
      lives.allocate();
    });
  }
  e.finally([&lives] {
    Lives::check_list();
    expect(S::global.thread_count.load(std::memory_order_relaxed) == 2, "two were born and one ended");
    for (S::as = 1; S::as < 3; ++S::as) {
      for (unsigned i = 0; i < 3; ++i) lives.allocate();
    }
    expect(outside() == 3, "a slot was lost");
  });
});

// The cache of a thread is taken back while it ends.
const Scenario ends("lives.revoked", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  lives.born(0);
  lives.born(1);
  e.thread([&lives] {
    lives.free(lives.slots[0]);
    lives.free(lives.slots[1], 1, false);
    Lives::end();
  });
  e.thread([&lives] {
    hz::Revocation<Heirs>::revoke_others();
    lives.allocate();
  });
  e.finally([&lives] {
    Lives::check_list();
    S::as = 1;
    lives.allocate();
    expect(outside() == 3, "a slot was lost");
  });
});

// What a fork left behind is adopted by one, with all that it holds.
const Scenario adopted("lives.adopted", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  lives.born(3);
  S::as = 3;
  lives.free(lives.slots[0]);
  Forks::leave_behind(S::global, *S::tls().heap);
  for (unsigned i = 0; i < 2; ++i) e.thread([&lives] { lives.allocate(); });
  e.thread([] { Threads::collect_leftovers(); });
  e.finally([&lives] {
    Lives::check_list();
    for (S::as = 0; S::as < 2; ++S::as) lives.allocate();
    expect(outside() == 3, "what an orphan held was lost");
  });
});

// --- forks

// The threads that a fork meets: one that ends, one that is born, frees, and takes others' caches back.
void others(Execution& e, Lives& lives) {
  e.thread([&lives] {
    lives.free(lives.slots[0]);
    Lives::end();
  });
  e.thread([&lives] {
    lives.free(lives.slots[1]);
    hz::Revocation<Heirs>::revoke_others();
    const hz::os::Guarded looks(S::global.source.lock);
    others_may_run();
  });
}
// All of it is this thread's between the hooks, and handlers of others may allocate.
void hold_all(Lives& lives) {
  Forks::on_fork();
  Lives::check_list();
  for (S::Thread* t = S::global.threads; t != nullptr; t = t->next) ++t->capacity_bytes;
  lives.allocate();
  Threads::collect_leftovers();
}
void use_all(Lives& lives) {
  lives.free(lives.slots[2]);
  lives.allocate();
  { const hz::os::Guarded looks(S::global.source.lock); }
  { const S::Crossing purger(S::purger_state); }
  { const hz::os::Guarded heaps(S::shelves.heaps.lock); }
  Threads::collect_leftovers();
  const S::Crossing shared(S::shared);
  Transfer::flush_all(S::shared);
}

// Nobody waits for ever, and nobody is at a boundary meanwhile.
const Scenario parent("fork.parent", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  lives.born(0);
  others(e, lives);
  e.thread([&lives] {
    hold_all(lives);
    others_may_run();
    Forks::after_fork();
    use_all(lives);
  });
  e.finally([] { Lives::check_list(); });
});

// No lock is held by nobody, and what the others held is found.
const Scenario child("fork.child", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  lives.born(0);
  lives.born(2);
  others(e, lives);
  e.thread([&lives] {
    hold_all(lives);
    go_on_in_a_child();
    Forks::in_child();
    Lives::check_list();
    expect(S::global.thread_count.load(std::memory_order_relaxed) == 1, "there is one thread in a child");
    use_all(lives);
    expect(outside() == 3, "what others held is lost to a child");
  });
});

// A thread that begins after the hooks took no lock, because there was none, may be anywhere when the fork
// comes. The child finds that out, and recovers.
const Scenario joined("fork.joined", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  lives.born(0);
  e.thread([&lives] {
    seems_alone = true;
    Forks::on_fork();
    seems_alone = false;
    lives.free(lives.slots[0]);
    others_may_run();
    go_on_in_a_child();
    S::process.store(0, std::memory_order_relaxed);
    Forks::in_child();
    lives.allocate();
    { const hz::os::Guarded looks(S::global.source.lock); }
    Threads::collect_leftovers();
    Lives::check_list();
  });
  e.thread([] {
    const S::Crossing shared(S::shared);
    others_may_run();
    const hz::os::Guarded looks(S::global.source.lock);
    others_may_run();
  });
});

// Nobody waits in a circle: who forks, who flushes all streams, and who reads one and needs a slot for that.
const Scenario streams("fork.streams", kShare, [](Execution& e) {
  Streams::begin();
  auto& lives = e.make_of<Lives>();
  lives.born(0);
  e.thread([&lives] {
    Streams::read([&lives] {
      lives.free(lives.slots[0], 1, false);
      lives.allocate();
    });
  });
  e.thread([] { Streams::flush_all(); });
  e.thread([] {
    Forks::on_fork();
    Streams::fork();
    others_may_run();
    Streams::unlock();
    Forks::after_fork();
  });
  e.finally([] { Streams::end(); });
});

// A child that no hook was called for finds it out, wherever the one was that took its cache back.
const Scenario unseen("fork.unseen", kShare, [](Execution& e) {
  auto& lives = e.make_of<Lives>();
  lives.born(0);
  lives.born(1);
  e.thread([&lives] {
    lives.free(lives.slots[0]);
    others_may_run();
    go_on_in_a_child();
    S::process.store(0, std::memory_order_relaxed);
    use_all(lives);
    Lives::check_list();
    lives.free(lives.slots[1]);
    lives.allocate();
    expect(S::global.thread_count.load(std::memory_order_relaxed) == 1, "there is one thread in a child");
  });
  e.thread([] { hz::Revocation<Heirs>::revoke_others(); });
});

}  // namespace
}  // namespace hz_test::explorer
