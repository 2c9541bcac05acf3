// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: the exchanges: pending bits and their marks, queues and lives of owners, the depot, inboxes; and
// the claims of the guard.
#include <array>

#include "box/exchange/message_batch.hpp"
#include "box/exchange/pending_bitmap.hpp"
#include "box/guard/slot_state.hpp"
#include "explorer.hpp"

namespace hz_test::explorer {
namespace {

struct Line {
  static constexpr unsigned kOwners = 2, kBinSlots = 32, kBatchEntries = 8;
};

// What is static in the code under test begins anew.
void begin_stores() {
  using Stores = hz::MagazineDepot<Line>::Empty;
  for (auto& store : Stores::stores_) ::new (&store) Stores::Store;
}

// Slots of some granules. Who has one writes into it: whoever has it next must come after that.
struct Spans {
  static constexpr hz::Bin kBin = hz::scan_bin(512);  // of 128 slots, two words of bits

  explicit Spans(Execution& e, unsigned granules)
      : base(reinterpret_cast<std::uintptr_t>(e.room(hz::kGranule * granules, hz::kGranule))) {}
  void* slot(unsigned granule, unsigned number) const {
    return hz::pointer(base + granule * hz::kGranule + number * hz::bin_size(kBin));
  }
  static void use(void* slot) { ++*static_cast<unsigned*>(slot); }

  std::uintptr_t base;
};

void take_one(void* slot) {
  taken(slot);
  Spans::use(slot);
}

// --- pending bits

using Pending = hz::PendingBitmap<Line>;

struct Bits {
  explicit Bits(Execution& e) : spans(e, 4), global(e.make<Pending::Global>()) {
    void* const table = e.room(4 * Pending::kTableBytesPerGranule, 64);
    Pending::open(global, spans.base, reinterpret_cast<std::uintptr_t>(table), 4);
    Pending::carried(global, 0);
    for (auto& thread : freers) Pending::join(thread, global);
  }
  void* has(unsigned granule, unsigned number) const {
    void* const slot = spans.slot(granule, number);
    starts_outside(slot);
    return slot;
  }
  void free(unsigned by, void* slot) {
    Spans::use(slot);
    given(slot);
    Pending::defer(freers[by], 0, Spans::kBin, slot);
  }
  unsigned collect(unsigned owner, unsigned want) {
    void* room[8];
    hz::SlotArray out{room, 0};
    Pending::collect(global, owner, Spans::kBin, want, out);
    for (unsigned i = 0; i < out.count; ++i) take_one(room[i]);
    return out.count;
  }
  void collect_all(bool of_owner) {
    for (unsigned owner : {0U, Pending::kOrphans})
      while ((of_owner || owner != 0) && collect(owner, 8) != 0) {
      }
  }

  Spans spans;
  Pending::Global& global;
  Pending::PerThread freers[3];
};

// A bit that is set while its span is drained is found by one of the two.
void free_two(Execution& e, unsigned first, unsigned second) {
  auto& bits = e.make_of<Bits>();
  void* const one = bits.has(1, first);
  void* const other = bits.has(1, second);
  e.thread([&bits, one] { bits.free(0, one); });
  e.thread([&bits, other] { bits.free(1, other); });
  e.thread([&bits] { bits.collect(0, 8); });
  e.finally([&bits] {
    bits.collect_all(true);
    expect(outside() == 2, "a bit was lost");
  });
}
const Scenario bit("pending.bit", [](Execution& e) { free_two(e, 0, 100); });
// In the same word of bits.
const Scenario word("pending.word", [](Execution& e) { free_two(e, 0, 1); });
// Of two spans one is left in the queue, or is given back to it.
const Scenario queue("pending.queue", [](Execution& e) {
  auto& bits = e.make_of<Bits>();
  void* const one = bits.has(1, 0);
  void* const same_span = bits.has(1, 1);
  void* const other = bits.has(2, 1);
  void* const last = bits.has(3, 0);
  e.thread([&bits, one, same_span, other, last] {
    bits.free(0, one);
    bits.free(0, other);
    bits.free(0, same_span);
    bits.free(0, last);
  });
  e.thread([&bits] { bits.collect(0, 1); });
  e.thread([&bits] { bits.collect(0, 1); });
  e.finally([&bits] {
    bits.collect_all(true);
    expect(outside() == 4, "a span was lost");
  });
});
void free_of_two_spans(Execution& e, Bits& bits) {
  void* const one = bits.has(1, 0);
  void* const other = bits.has(2, 0);
  e.thread([&bits, one, other] {
    bits.free(0, one);
    bits.free(0, other);
  });
}
// What is pushed when the owner has left comes to the orphans: its queue is looked through once, and never
// again.
const Scenario lives("pending.lives", [](Execution& e) {
  auto& bits = e.make_of<Bits>();
  free_of_two_spans(e, bits);
  e.thread([&bits] { bits.collect(0, 1); });
  e.thread([&bits] {
    Pending::left(bits.global, 0);
    while (bits.collect(0, 8) != 0) {
    }
  });
  e.finally([&bits] {
    bits.collect_all(false);
    expect(outside() == 2, "a span came to a queue after it was closed");
  });
});
// Something that was queued is asked for, or the flag is up.
const Scenario waiting("pending.waiting", [](Execution& e) {
  auto& bits = e.make_of<Bits>();
  free_of_two_spans(e, bits);
  e.thread([&bits] {
    if (Pending::something_waits(bits.global)) bits.collect(0, 1);
  });
  e.finally([&bits] {
    const bool told = Pending::something_waits(bits.global);
    expect(told || bits.collect(0, 8) == 0, "something was queued and nobody was told");
  });
});
// The child of a fork that cut a thread off anywhere in a free finds the slot.
const Scenario forked("pending.fork", [](Execution& e) {
  auto& bits = e.make_of<Bits>();
  void* const one = bits.has(1, 0);
  e.thread([&bits, one] {
    starts_outside(one);
    may_be_cut_off();
    Pending::defer(bits.freers[0], 0, Spans::kBin, one);
  });
  e.finally([&bits] {
    Pending::finish(bits.global, bits.freers[0]);
    Pending::finish(bits.global, bits.freers[0]);
    // It has not begun, or what it began was brought to its end.
    if (bits.global.bits.of(Spans::kBin).word(1, 0).load() == 0) return;
    given(bits.spans.slot(1, 0));
    bits.collect_all(true);
    expect(outside() == 1, "a slot was lost in a fork");
  });
});

// --- the depot

using Depot = hz::MagazineDepot<Line>;

struct Shelves {
  explicit Shelves(Execution& e) : spans(e, 4), global(e.make<Depot::Global>()) { begin_stores(); }
  void give(void* slot) {
    Spans::use(slot);
    given(slot);
    auto* const magazine = Depot::take_empty();
    magazine->slots[magazine->count++] = slot;
    expect(Depot::give(global, Spans::kBin, magazine), "there is room");
  }
  void give_one(void* slot) {
    Spans::use(slot);
    given(slot);
    hz::SlotArray some = hz::SlotArray::of(slot);
    Depot::give(global, 0, Spans::kBin, some);
    expect(some.count == 0, "there is room");
  }
  unsigned take(unsigned want, bool steal) {
    void* room[8];
    hz::SlotArray out{room, 0};
    unsigned owners = 0;
    if (steal) {
      Depot::steal(global, owners, Spans::kBin, want, true, out);
    } else {
      Depot::take(global, 0, Spans::kBin, want, out);
    }
    for (unsigned i = 0; i < out.count; ++i) take_one(room[i]);
    return out.count;
  }

  Spans spans;
  Depot::Global& global;
};

void depot(Execution& e, bool by_one) {
  auto& shelves = e.make_of<Shelves>();
  void* slot[2];
  for (unsigned i = 0; i < 2; ++i) starts_outside(slot[i] = shelves.spans.slot(1, i));
  e.thread([&shelves, one = slot[0], by_one] {
    by_one ? shelves.give_one(one) : shelves.give(one);
    shelves.take(1, false);
  });
  e.thread([&shelves, other = slot[1], by_one] {
    on_cpu(by_one ? 0 : 1);
    by_one ? shelves.give_one(other) : shelves.give(other);
  });
  e.thread([&shelves] {
    on_cpu(2);
    shelves.take(1, false);
  });
  e.finally([&shelves] {
    // From a processor that has nothing of its own: what the bits do not show is not found.
    on_cpu(3);
    while (shelves.take(1, false) != 0) {
    }
    expect(outside() == 2, "a magazine was lost, or is not found");
  });
}
const Scenario full("depot.full", [](Execution& e) { depot(e, false); });
const Scenario single("depot.single", [](Execution& e) { depot(e, true); });

// --- inboxes

using Mail = hz::MessageBatch<Line>;

struct Inboxes {
  explicit Inboxes(Execution& e) : spans(e, 4), global(e.make<Mail::Global>()) {
    begin_stores();
    for (auto& thread : batches) thread = &e.make<Mail::PerThread>();
  }
  void send(unsigned by, void* slot) {
    Spans::use(slot);
    given(slot);
    Mail::defer(*batches[by], 0, Spans::kBin, slot);
    Mail::Drain drain(global, *batches[by], 0, true);
    hz::Parcel<hz::SlotArray> parcel;
    while (drain.next(parcel)) drain.send(parcel);
    expect(parcel.slots.count == 0, "a parcel was not sent");
  }
  unsigned collect(unsigned want) {
    void* room[8];
    hz::SlotArray out{room, 0};
    Mail::collect(global, 0, Spans::kBin, want, out);
    for (unsigned i = 0; i < out.count; ++i) take_one(room[i]);
    return out.count;
  }

  Spans spans;
  Mail::Global& global;
  Mail::PerThread* batches[2];
};

const Scenario mail("inbox", [](Execution& e) {
  auto& inboxes = e.make_of<Inboxes>();
  void* slot[3];
  for (unsigned i = 0; i < 3; ++i) starts_outside(slot[i] = inboxes.spans.slot(1, i));
  e.thread([&inboxes, one = slot[0], two = slot[1]] {
    inboxes.send(0, one);
    inboxes.send(0, two);
  });
  e.thread([&inboxes, one = slot[2]] {
    inboxes.send(1, one);
    inboxes.collect(1);
  });
  e.thread([&inboxes] { inboxes.collect(1); });
  e.finally([&inboxes] {
    while (inboxes.collect(8) != 0) {
    }
    expect(outside() == 3, "a message was lost");
  });
});

// --- claims

// Of strangers that free one slot at once one gets it, and it arrives once.
const Scenario claims("claims", [](Execution& e) {
  using Guard = hz::SlotState<Line>;
  struct It {
    explicit It(Execution& execution) : spans(execution, 1) {}
    Spans spans;
    std::array<bool, 3> got{};
  };
  auto& it = e.make_of<It>();
  void* const table = e.room(Guard::kTableBytesPerGranule, 64);
  Guard::open(it.spans.base, reinterpret_cast<std::uintptr_t>(table), 1);
  void* const slot = it.spans.slot(0, 1);
  Guard::on_alloc(slot, Spans::kBin);
  for (unsigned i = 0; i < 3; ++i)
    e.thread([&it, slot, i] { it.got[i] = Guard::claim({}, slot, Spans::kBin) != nullptr; });
  e.finally([&it, slot] {
    expect(it.got[0] + it.got[1] + it.got[2] == 1, "a claim is granted to two, or to none");
    expect(Guard::arrive(slot, Spans::kBin) && !Guard::arrive(slot, Spans::kBin), "it arrives once");
  });
});

}  // namespace
}  // namespace hz_test::explorer
