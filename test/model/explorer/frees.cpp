// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: a thread frees while it is hidden from itself for a moment, because who takes caches back shows
// it again when no barrier on all threads is to be had. The free is that of heap/api/release.hpp, with a
// guard that takes a slot at its first look, as line secure's does; what it stands on is here no more than it
// asks of it.
#include "box/exchange/owner_lists.hpp"
#include "box/exchange/sparse_ring.hpp"
#include "box/front/linked_bins.hpp"
#include "heap/api/heap.hpp"
#include "mini.hpp"

namespace hz_test::explorer {

struct OfFrees;
constexpr unsigned kBlocks = 2;

// Whose each slot is: one byte, as in box/guard/sealed.hpp, and nothing else of what is proved there.
template <>
struct Parts<OfFrees> {
  struct Guard {
    static constexpr bool kMarks = false, kProves = true, kClaims = true;
    static inline void* slots[kBlocks];
    static inline std::atomic<std::uint8_t> live[kBlocks];

    static std::atomic<std::uint8_t>& state(const void* slot) { return live[slot == slots[0] ? 0 : 1]; }
    static bool may_free(const Nothing&, const void* slot, hz::Bin) {
      std::uint8_t expected = 1;
      return state(slot).compare_exchange_strong(expected, 0, std::memory_order_relaxed);
    }
    static void* claim(const Nothing& guard, void* slot, hz::Bin bin) {
      return may_free(guard, slot, bin) ? slot : nullptr;
    }
    static bool on_alloc(void*, hz::Bin) { return true; }
    static void on_free(const Nothing&, void*, hz::Bin) {}
    static hz::Fault diagnose(const Nothing&, const void* slot, hz::Bin) {
      return state(slot).load(std::memory_order_relaxed) == 1 ? hz::Fault::kNone : hz::Fault::kDoubleFree;
    }
    static void report(hz::Fault, const void*, hz::Bin, const char*, hz::Seen = hz::Seen::kNow) {
      expect(false, "a free that was right was refused");
    }
    static bool intact(const Nothing&, const void*) { return true; }
    static void join(Nothing&) {}
  };
  // The thread that is seen is the slot's owner, and nobody owns anything while it is hidden.
  struct Route {
    using Tag = std::uint64_t;
    static constexpr bool kOwned = true;
    static Tag find(const Nothing&, std::uintptr_t) { return kBin; }
    static hz::Bin bin(Tag tag) { return static_cast<hz::Bin>(tag); }
    static unsigned owner(Tag) { return 0; }
    template <class Thread>
    static Tag local_bin(Tag tag, const Thread& thread);
    static void join(Nothing&, unsigned) {}
    static void bind(Nothing&, std::uintptr_t, std::size_t, hz::Bin, unsigned) {}
  };
  template <class Line>
  struct Mitigation : hz::Bare<Line> {
    static constexpr bool kUndoesFrees = false;
  };
};
// Nothing comes to its lists; who is born and ends has some.
struct ForFrees {
  static constexpr unsigned kOwners = 1, kOutboxEntries = 4, kParcelSlots = 8;
  static constexpr std::size_t kOutboxBytes = 4096, kParcelBytes = 4096;
};
using Freed = Mini<OfFrees, hz::LinkedBins, hz::OwnerLists<ForFrees, hz::SparseRing<ForFrees>>>;
using S = hz::State<Freed>;
using Guard = Freed::Guard;

}  // namespace hz_test::explorer

namespace hz {

using Freed = hz_test::explorer::Freed;
template <>
struct Start<Freed> {
  static bool open() { return true; }
};
template <>
struct Quotas<Freed> {
  static void leave(auto&) {}
};
// Nobody forks, and nobody ends.
template <>
struct Forks<Freed> {
  static void notice_process() {}
  static void hook_forks() {}
};
namespace os {
__attribute__((weak)) bool arm_exit_hook(unsigned, void*) { return true; }
}  // namespace os
// There are no huge blocks and no heaps of the program's own, and a bin has room.
template <>
struct Huge<Freed> {
  static bool claim(const void*) { return false; }
  static void free(auto&, void*) {}
  static std::size_t run_bytes(const void*) { return 0; }
  static Bin end_sample(auto&, const void*) { return kHugeBin; }
};
template <>
struct Heaps<Freed> {
  static void free(void*) {}
};
// All are slots.
template <>
struct Judge<Freed> {
  static bool plausible(const Block<Freed>&, const void* block) {
    const Fault fault = Freed::Guard::diagnose({}, block, hz_test::explorer::kBin);
    if (fault != Fault::kNone) Freed::Guard::report(fault, block, hz_test::explorer::kBin, Freed::kName);
    return fault == Fault::kNone;
  }
};
template <>
struct Boundary<Freed> {
  static void flush(auto&, Bin, void* slot) { hz_test::explorer::taken(slot); }
  static void deliver(auto&, bool) {}
  static void pass_on_if_halved(auto&, unsigned, Bin, bool) {}
};

}  // namespace hz

namespace hz_test::explorer {

template <class Thread>
Parts<OfFrees>::Route::Tag Parts<OfFrees>::Route::local_bin(Tag tag, const Thread& thread) {
  return static_cast<const void*>(&thread) == &S::empty.route ? Tag{hz::kHugeBin} : tag;
}

namespace {

struct Freeing {
  explicit Freeing(Execution& e) {
    S::begin();
    refuse_barriers();
    for (unsigned i = 0; i < kBlocks; ++i) {
      Guard::slots[i] = e.room(64, 64);
      Guard::live[i].store(1, std::memory_order_relaxed);
      starts_outside(Guard::slots[i]);
    }
    owner = &hz::Threads<Freed>::Entered().thread();
    Freed::Front::set_capacity(owner->front, kBin, 4);
  }
  void revoke() {
    const hz::os::Guarded list(S::global.threads_lock);
    expect(!hz::Revocation<Freed>::revoke(*owner), "nothing is taken back without a barrier");
  }
  static void free(void* slot) {
    given(slot);
    hz::Heap<Freed>::free(slot);
  }
  void end() {
    auto left = Freed::Front::drain(owner->front, kBin, kBlocks);
    void* room[kBlocks];
    const unsigned count = left.take(room, kBlocks);
    for (unsigned i = 0; i < count; ++i) taken(room[i]);
    expect(count == kBlocks && outside() == kBlocks, "a block was lost");
  }

  S::Thread* owner;
};

const Scenario hidden("free.hidden", [](Execution& e) {
  auto& freeing = e.make_of<Freeing>();
  e.thread([] {
    for (void* const slot : Guard::slots) Freeing::free(slot);
  });
  e.thread([&freeing] {
    freeing.revoke();
    freeing.revoke();
  });
  e.finally([&freeing] { freeing.end(); });
});

}  // namespace
}  // namespace hz_test::explorer
