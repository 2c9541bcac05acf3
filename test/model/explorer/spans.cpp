// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: spans between source, route and pool. heap/boundary/span_supply.hpp and span_return.hpp with the
// pools and routes that lines have, whole spans (secure) and those that are carved little by little by pages
// (hz3). The source has so few runs that threads wait for each other's; the other boxes do nothing.
#include "box/pool/span_pool.hpp"
#include "box/route/descriptor.hpp"
#include "explorer.hpp"
#include "heap/boundary/span_supply.hpp"

namespace hz_test::explorer {

// Of two slots a span, so that a free empties one at once.
constexpr std::size_t kBytes = 32 * 1024, kOtherBytes = 24 * 1024;
constexpr hz::Bin kBin = hz::scan_bin(kBytes), kOther = hz::scan_bin(kOtherBytes);

constexpr unsigned kThreads = 2, kMostRuns = 2;
struct Ignored {};

template <bool kWhole>
struct Spanned {
  static constexpr const char* kName = "spanned";
  using Pool = hz::BasicSpanPool<!kWhole, kWhole>;
  using Route = std::conditional_t<kWhole, hz::Descriptor, hz::PageTag>;
  struct Front {
    static constexpr bool kInBand = false;
    struct PerThread {
      void* slots[4] = {};
      unsigned count = 0;
    };
    struct Bundle {
      void** slots = nullptr;
      unsigned count = 0;
      void push(void* slot) { slots[count++] = slot; }
    };
    static Bundle space(PerThread& t, hz::Bin, unsigned) { return {t.slots, 0}; }
    static void fill(PerThread& t, hz::Bin, const Bundle& bundle) { t.count = bundle.count; }
    static void check(PerThread&, hz::Bin, bool) {}
    static void* pop(PerThread& t, hz::Bin) { return t.count != 0 ? t.slots[--t.count] : nullptr; }
  };
  struct Exchange {};
  template <class Line>
  using Mitigation = hz::Bare<Line>;
  struct Guard {
    static constexpr bool kMarks = false, kTracks = false;
    static bool move(void*, hz::Bin, hz::Phase) { return true; }
    static bool on_alloc(void*, hz::Bin) { return true; }
    static void on_free(Ignored&, void*, hz::Bin) {}
    static hz::Fault fault_of_free(void*, hz::Bin) { return hz::Fault::kNone; }
    static void report(hz::Fault, const void*, hz::Bin, const char*, hz::Seen) {
      expect(false, "a slot was refused");
    }
    static const void* retire(std::uintptr_t, hz::Bin) { return nullptr; }
  };
  // A list of runs of one granule, under its lock.
  struct Source {
    struct Global {
      hz::os::LockOf<hz::os::Rank::kSource> lock;
      std::uintptr_t runs[kMostRuns] = {};
      unsigned count = 0;
    };
    static hz::Run acquire(Global& g, std::size_t, std::size_t, const hz::Demand&) {
      const hz::os::Guarded hold(g.lock);
      return {g.count != 0 ? g.runs[--g.count] : 0, true};
    }
    static void release(Global& g, std::uintptr_t at, bool) {
      const hz::os::Guarded hold(g.lock);
      expect(g.count < kMostRuns, "a run came back that nobody had");
      g.runs[g.count++] = at;
    }
  };
  struct Retain {
    static void slots_out(Ignored&, std::size_t) {}
    static void slots_returned(Ignored&, std::size_t) {}
    static void purged_before(Ignored&, std::size_t) {}
    static void span_used(Ignored&, std::size_t) {}
    static void span_retired(Ignored&, std::size_t) {}
  };
  struct Policy {
    static std::size_t looks() { return 0; }
    static bool watches() { return false; }
    static void span_acquired(Ignored&, hz::Bin) {}
    static void span_retired(hz::Bin) {}
  };
  struct Observe {
    static void count(Ignored&, hz::Event, std::size_t) {}
  };
};

}  // namespace hz_test::explorer

namespace hz {

template <bool kWhole>
struct Composition<hz_test::explorer::Spanned<kWhole>> {
  static constexpr unsigned kSpanOwners = 256;
};
template <bool kWhole>
struct Discard<hz_test::explorer::Spanned<kWhole>> {
  static void next(auto&, std::size_t) {}
};

template <bool kWhole>
struct State<hz_test::explorer::Spanned<kWhole>> {
  using Line = hz_test::explorer::Spanned<kWhole>;
  using Ignored = hz_test::explorer::Ignored;
  struct Thread {
    typename Line::Front::PerThread front;
    Ignored guard, policy, retain, observe;
    unsigned owner = 0;
    void took(Bin, unsigned) {}
  };
  struct Global {
    typename Line::Route::Global route;
    typename Line::Source::Global source;
    Ignored retain;
    unsigned forks = 0;
  };
  struct Shelves {
    typename Line::Pool::Global pool;
  };
  static constexpr unsigned kMostNoted = 1;
  struct Local {
    unsigned inside = 0, noted = kMostNoted;
    std::uint64_t notes[kMostNoted] = {};
  };
  static inline Global global;
  static inline Shelves shelves;
  static inline Local local;
  static Local& tls() { return local; }
};

}  // namespace hz

namespace hz_test::explorer {
namespace {

// The arena: its first granule is the route's table.
alignas(hz::kGranule) constinit unsigned char arena[(1 + kMostRuns) * hz::kGranule] = {};

template <bool kWhole>
struct Spans {
  using Line = Spanned<kWhole>;
  using S = hz::State<Line>;
  using Supply = hz::SpanSupply<Line>;
  using Route = typename Line::Route;
  using Pool = typename Line::Pool;
  static constexpr std::size_t kGranules = 1 + kMostRuns;

  Spans(Execution& e, unsigned how_many) : runs(how_many) {
    ::new (&S::global) typename S::Global;
    ::new (&S::shelves) typename S::Shelves;
    hz::os::Lock::spins_.store(0, std::memory_order_relaxed);
    __builtin_memset(arena, 0, Route::kTableBytesPerGranule * kGranules);
    const std::size_t table = Pool::kTableBytesPerGranule * kGranules;
    void* const rows = e.room(table, 64);
    __builtin_memset(rows, 0, table);
    const std::uintptr_t base = hz::address(arena);
    Route::open(S::global.route, base, sizeof arena);
    Pool::open(S::shelves.pool, base, hz::address(rows), kGranules);
    for (unsigned i = 1; i <= runs; ++i) {
      const std::uintptr_t run = base + i * hz::kGranule;
      Line::Source::release(S::global.source, run, true);
      for (const std::size_t offset : {std::size_t{0}, kOtherBytes, kBytes}) given(hz::pointer(run + offset));
    }
    // With owners who takes another one's span binds it anew.
    for (unsigned i = 0; i < kThreads; ++i) threads[i].owner = kWhole ? 0 : i;
  }

  // As refill does it; nullptr if there is no run.
  void* take(unsigned thread, hz::Bin bin) {
    typename S::Thread& t = threads[thread];
    bool zeroed = false;
    void* slot = Supply::take_from_spans(t, bin, 1, true, zeroed);
    if (slot == nullptr) slot = Supply::take_from_new(t, bin, 1, zeroed, false);
    if (slot != nullptr) {
      taken(slot);
      check(slot, bin);
    }
    return slot;
  }
  void give(unsigned thread, hz::Bin bin, void* slot) {
    if (slot == nullptr) return;
    check(slot, bin);
    given(slot);
    hz::SpanReturn<Line>::put_back(threads[thread], bin, {&slot, 1});
  }
  // As free looks at it.
  static void check(const void* slot, hz::Bin bin) {
    expect(Route::bin(Route::find(S::global.route, hz::address(slot))) == bin,
           "the route does not know a slot that somebody has");
  }
  void use(unsigned thread, hz::Bin bin) {
    void* const slot = take(thread, bin);
    others_may_run();
    give(thread, bin, slot);
  }

  void end() { expect(outside() == 0 && S::global.source.count == runs, "a span was lost"); }

  const unsigned runs;
  typename S::Thread threads[kThreads];
};

// Two who need a span of one class at once: whoever takes a slot of the other one's has one that the route
// knows.
template <bool kWhole>
void together(Execution& e) {
  auto& spans = *::new (e.room(sizeof(Spans<kWhole>), 64)) Spans<kWhole>(e, kMostRuns);
  for (unsigned i = 0; i < kThreads; ++i) e.thread([&spans, i] { spans.use(i, kBin); });
  e.finally([&spans] { spans.end(); });
}
// The only run goes from one class to another one.
template <bool kWhole>
void in_turn(Execution& e) {
  auto& spans = *::new (e.room(sizeof(Spans<kWhole>), 64)) Spans<kWhole>(e, 1);
  void* const slot = spans.take(0, kBin);
  e.thread([&spans, slot] {
    spans.give(0, kBin, slot);
    spans.use(0, kOther);
  });
  e.thread([&spans] {
    spans.use(1, kOther);
    spans.use(1, kBin);
  });
  e.finally([&spans] { spans.end(); });
}

const Scenario whole("spans.whole", together<true>);
const Scenario carved("spans.carved", together<false>);
const Scenario whole_in_turn("spans.whole.turn", in_turn<true>);
const Scenario carved_in_turn("spans.carved.turn", in_turn<false>);

}  // namespace
}  // namespace hz_test::explorer
