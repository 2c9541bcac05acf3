// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: samples begin, pause and change their rate while threads cross, cache and are revoked: quotas
// (heap/api/quotas.hpp) and their countdowns (heap/samples/sampling.cpp) themselves. No allocation is a
// sample here: how rare they are is chosen so.
#include "heap/api/quotas.hpp"

#include "box/exchange/owner_lists.hpp"
#include "box/exchange/sparse_ring.hpp"
#include "box/front/linked_bins.hpp"
#include "heap/samples/sampling.cpp"  // NOLINT(bugprone-suspicious-include): instrumented as its callers are
#include "mini.hpp"

namespace hz_test::explorer {

struct OfQuotas;
struct ForQuotas {
  static constexpr unsigned kOwners = 1, kOutboxEntries = 4, kParcelSlots = 8;
  static constexpr std::size_t kOutboxBytes = 4096, kParcelBytes = 4096;
};
using Sampled = Mini<OfQuotas, hz::LinkedBins, hz::OwnerLists<ForQuotas, hz::SparseRing<ForQuotas>>>;

}  // namespace hz_test::explorer

namespace hz {

template <>
struct SpanSupply<hz_test::explorer::Sampled> {
  static void* popped(LinkedBins::PerThread& front, Bin bin) { return LinkedBins::pop(front, bin); }
};
template <>
struct Huge<hz_test::explorer::Sampled> {
  static void* allocate(auto&, std::size_t, std::size_t, bool&, std::size_t, bool) { return nullptr; }
  static void count_as_sample(auto&, const void*, Bin) {}
};

// Of a sample, which there is none of.
__attribute__((weak)) bool HeapProfile::has_room() { return false; }
__attribute__((weak)) void HeapProfile::give_up() {}
__attribute__((weak)) void* GuardedPool::take(Bin, std::size_t, std::size_t) { return nullptr; }

}  // namespace hz

namespace hz_test::explorer {
namespace {

using S = hz::State<Sampled>;
using Threads = hz::Threads<Sampled>;
using Quotas = hz::Quotas<Sampled>;
using Front = Sampled::Front;

void set_rate(std::uint64_t bytes) {
  hz::HeapProfile::state.interval.store(bytes, std::memory_order_release);  // as HeapProfile::change()
}

struct Samples {
  explicit Samples(Execution& e) : t(e.make<S::Thread>()) {
    S::begin();
    ::new (&hz::HeapProfile::state) hz::HeapProfile::State{};
    ::new (&hz::GuardedPool::state) hz::GuardedPool::State{};
    Front::set_capacity(t.front, kBin, 4);
    for (auto& slot : slots) {
      slot = e.room(64, 64);
      starts_outside(slot);
    }
    S::global.threads = &t;
    t.local.set(&S::locals[0]);
    t.hooked.set(true);
    S::locals[0].heap = &t;
    S::show(t, true);
  }

  // As heap.hpp does it: from the bin that it is shown, else with the lock.
  void free(void* slot) {
    given(slot);
    auto& front = S::tls().fast.load(std::memory_order_relaxed)->front;
    if (Front::admit(front, kBin, slot)) return Front::put(front, kBin, slot);
    Front::turn_away(front, kBin);
    const S::Crossing crossing(t);
    whole();
    expect(Front::admit(t.front, kBin, slot), "there is room");
    Front::put(t.front, kBin, slot);
  }
  void allocate() {
    if (void* const slot = Front::pop(*S::tls().supply.get(), kBin)) return taken(slot);
    const S::Crossing crossing(t);
    whole();
    bool zeroed = false;
    hz::Sample sample = hz::Sample::kNone;
    void* slot = Quotas::before(t, kBin, 64, 1, zeroed, sample);
    if (slot == nullptr) {
      slot = Front::pop(t.front, kBin);
      Quotas::after(t, kBin, slot);
    }
    if (slot != nullptr) taken(slot);
    check();
  }
  // As one for another class.
  void cross() {
    const S::Crossing crossing(t);
    whole();
    Quotas::counts(t);
    check();
  }
  void whole() {
    if (t.revoked.peek()) Threads::reattach(t);
  }
  // Slots of a quota come before the next sample.
  void check() const {
    const S::Quota* const quota = t.quota.peek();
    expect(quota == nullptr || Front::count(quota->front, kBin) == 0 || quota->countdown.left[kBin] != 0,
           "slots of a quota are counted as samples");
    expect(t.countdown == nullptr || &quota->countdown == t.countdown, "a countdown that is not the quota's");
  }
  void end() {
    Threads::restore(t);
    hz::Reclaim<Sampled>::give_up(t, true);
    hz::TransferCache<Sampled>::flush_all(t);
    expect(outside() == 3, "a slot was lost");
  }

  S::Thread& t;
  void* slots[3];
};
constexpr std::uint64_t kRare = std::uint64_t{1} << 40;
// Who ends a quota, or takes bins back, looks through all classes.
constexpr unsigned kShare = 4;

// What the front has becomes a quota of two at the first allocation, unless the rate is 0, and one of them
// stays.
void use(Samples& it) {
  it.cross();
  it.free(it.slots[0]);
  it.free(it.slots[1]);
  it.allocate();
  it.cross();
  it.allocate();
  it.free(it.slots[2]);
  it.cross();
}

// A slot is in one of both fronts, whatever the rate is meanwhile.
const Scenario begins("quotas.begin", kShare, [](Execution& e) {
  auto& it = e.make_of<Samples>();
  e.thread([&it] { use(it); });
  e.thread([] {
    set_rate(kRare);
    set_rate(0);
    set_rate(2 * kRare);
  });
  e.finally([&it] { it.end(); });
});

// Both fronts of a thread are taken back while it begins to keep a quota, and while it has one.
const Scenario revoked("quotas.revoked", kShare, [](Execution& e) {
  auto& it = e.make_of<Samples>();
  set_rate(kRare);
  e.thread([&it] { use(it); });
  e.thread([&it] {
    const hz::os::Guarded list(S::global.threads_lock);
    hz::Revocation<Sampled>::revoke(it.t);
  });
  e.finally([&it] { it.end(); });
});

// The purger looks at a quota without the thread's lock: it is whole when it is seen.
const Scenario looked("quotas.looked", kShare, [](Execution& e) {
  auto& it = e.make_of<Samples>();
  set_rate(kRare);
  e.thread([&it] {
    it.free(it.slots[0]);
    S::show(it.t, false);
    it.allocate();
  });
  e.thread([&it] {
    if (const S::Quota* const quota = it.t.quota.peek_first()) {
      expect(!quota->front.detached, "nobody took from it");
      Front::signature(quota->front);
    }
  });
});

}  // namespace
}  // namespace hz_test::explorer
