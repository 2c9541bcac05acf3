// SPDX-License-Identifier: Apache-2.0
//
// Slots that wait between threads, in the exchange: for their owner, or for any thread of it. Retention says
// how many bytes may; what is more returns to its spans. Called from the boundary (boundary.hpp) with the
// thread's lock held.
#pragma once

#include <type_traits>

#include "heap/spans/span_return.hpp"

namespace hz {

template <class Line>
struct TransferCache {
  using S = State<Line>;
  using Spans = SpanReturn<Line>;
  using Thread = typename S::Thread;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Exchange = typename Line::Exchange;
  using Route = typename Line::Route;
  using Retain = typename Line::Retain;
  using Observe = typename Line::Observe;
  using Guard = typename Line::Guard;

 private:
  // Where slots lie on their way from one shared place to another: in a magazine, for a stack may be small;
  // without memory for one, one at a time. It is had when there is something to lie there.
  class InMagazine {
   public:
    InMagazine() = default;
    ~InMagazine() { Exchange::give_empty(magazine_); }
    InMagazine(const InMagazine&) = delete;
    InMagazine& operator=(const InMagazine&) = delete;

    // Nothing yet, with room for so many as `at_most` says after it.
    Bundle empty() {
      if (magazine_ == nullptr) magazine_ = Exchange::take_empty();
      return {magazine_ != nullptr ? magazine_->slots : &single_, 0};
    }
    unsigned at_most(unsigned n) const {
      const unsigned room = magazine_ != nullptr ? Front::Magazine::kSlots : 1;
      return n < room ? n : room;
    }

   private:
    typename Front::Magazine* magazine_ = nullptr;
    void* single_ = nullptr;
  };
  // A list needs no place.
  struct InList {
    static Bundle empty() { return {}; }
    static unsigned at_most(unsigned n) { return n; }
  };

 public:
  using Scratch = std::conditional_t<FrontOfMagazines<Front>, InMagazine, InList>;

  static constexpr unsigned kAll = ~0U;
  static constexpr unsigned kBatch = kPage / kMinAlign;  // a page of the smallest slots
  static constexpr unsigned kLooks = 2 * kBins;          // lists that one crossing trims
  static constexpr unsigned kUnproved = 16;              // batches of which one is proved

  static unsigned lists() { return S::global.owners.end() * kBins; }

  // Into an empty bundle; of an array, at most `want`.
  static void take(Thread& t, unsigned owner, Bin bin, unsigned want, Bundle& out) {
    collect(t, owner, bin, want, out);
    if (out.count == 0) take_waiting(t, owner, bin, want, out);
  }
  // What strangers sent.
  static void collect(Thread& t, unsigned owner, Bin bin, unsigned want, Bundle& out) {
    const unsigned told = Exchange::collect(S::shelves.exchange, owner, bin, want, out);
    if (out.count == 0) return;
    Observe::count(t.observe, Event::kRemoteCollected, out.count);
    Retain::waiting_taken(t.retain, told * bin_size(bin));
    if constexpr (Exchange::kUntold) arrived(t, bin, out);
  }
  // What threads of the same owner left.
  static void take_waiting(Thread& t, unsigned owner, Bin bin, unsigned want, Bundle& out) {
    if (!Exchange::holds(bin)) return;
    Exchange::take(S::shelves.exchange, owner, bin, want, out);
    if (out.count != 0) Retain::waiting_taken(t.retain, out.count * bin_size(bin));
    own(t, bin, out);
  }

  // The same by the magazine; nullptr if none waits for this processor.
  static auto* take_magazine(Thread& t, Bin bin) {
    auto* full = Exchange::holds(bin) ? Exchange::take(S::shelves.exchange, bin) : nullptr;
    if (full == nullptr) return full;
    Retain::waiting_taken(t.retain, full->count * bin_size(bin));
    Bundle slots = {full->slots, full->count};
    own(t, bin, slots);
    full->count = slots.count;
    return full;
  }
  // One with slots, or none: it may wait, or they return to their spans.
  static void put_magazine(Thread& t, Bin bin, auto* magazine) {
    if (magazine == nullptr) return;
    Bundle slots = {magazine->slots, magazine->count};
    if (may_wait(t, bin)) {
      prove_some(t, bin, slots);
      magazine->count = slots.count;
      const std::size_t bytes = slots.count * bin_size(bin);
      Retain::waiting_added(t.retain, bytes);
      if (slots.count != 0 && Exchange::give(S::shelves.exchange, bin, magazine)) return;
      Retain::waiting_taken(t.retain, bytes);
    }
    Spans::put_back(t, bin, slots);
    Exchange::give_empty(magazine);
    trim(t);
  }
  static void own(const Thread& t, Bin bin, Bundle& slots) {
    Spans::move(bin, slots, Phase::kLocalFree);
    if constexpr (Exchange::kUntold)
      for (unsigned i = 0; Exchange::moves_span(bin) && i < slots.count; ++i) own(t, bin, slots.slots[i]);
  }
  // For a slot that is all of its span: the thread that takes it owns it.
  static void own(const Thread& t, Bin bin, const void* slot) {
    Route::bind(S::global.route, address(slot), kPage, bin, t.owner);
  }

  // For batches on their way into the exchange. If the guard proves nothing at a free, this proves the first
  // batch that does not return to its spans, then one in so many, and all batches of an ending thread.
  static void prove_some(Thread& t, Bin bin, Bundle& bundle) {
    Spans::move(bin, bundle, Phase::kTransferFree);
    if (t.given_batches++ % kUnproved == 0 || t.local.peek() == nullptr) Spans::prove(bin, bundle);
  }

  static void put(Thread& t, Bin bin, Bundle& bundle) {
    if (!put_where_it_may(t, bin, bundle)) trim(t);
  }

  // Returns to their spans what waits for an owner.
  static void flush(Thread& t, unsigned owner) {
    Scratch scratch;
    for (Bin bin = 1; bin < kBins; ++bin)
      while (put_back_some(t, scratch, owner, bin, kAll) != 0) continue;
  }

  // The same for an owner that has no thread any more. Slots for any thread stay, while there is one.
  static void flush_left(Thread& t, unsigned owner, unsigned others) {
    if (Exchange::kByOwner || others == 0) return flush(t, owner);
    Scratch scratch;
    for (Bin bin = 1; bin < kBins; ++bin) {
      for (bool some = true; some;) {
        Bundle bundle = scratch.empty();
        collect(t, owner, bin, scratch.at_most(kAll), bundle);
        some = bundle.count != 0;
        Spans::put_back(t, bin, bundle);
      }
    }
  }

  static void flush_all(Thread& t) {
    for (unsigned owner = 0; owner < S::global.owners.end(); ++owner) flush(t, owner);
    flush(t, Exchange::kOrphans);
    shrink();
  }
  // Some of what waits in one list; how many bytes, 0 if there was nothing.
  static std::size_t flush_some(Thread& t, unsigned owner, Bin bin) {
    Scratch scratch;
    return put_back_some(t, scratch, owner, bin, 8 * kBatch) * bin_size(bin);
  }
  // Memory of the lists' own that they do not need goes back.
  static void shrink() { Exchange::shrink(S::shelves.exchange, S::global.owners.end()); }

  // Passes on the slots that remote threads sent without a parcel, beyond those that the owner wants: see
  // Exchange::backlog.
  static void pass_on_backlog(Thread& t, Bin bin) {
    bool full = false;
    Scratch scratch;
    Backlog some;
    for (unsigned n = 0; Exchange::backlog(S::shelves.exchange, t.exchange, t.owner, bin, n, some); ++n)
      full |= pass_on(t, scratch, some.owner, some.bin, some.most);
    if (full) trim(t);
  }
  // The same for an owner to whom this thread has sent a lot.
  static void help(Thread& t, unsigned owner) {
    bool full = false;
    Scratch scratch;
    for (Bin bin = 1; bin < kBins; ++bin) full |= pass_on(t, scratch, owner, bin, kAll);
    if (full) trim(t);
    Spans::purge_if_due(t);
  }

  // What waits for others: of owners without a thread, and of whom the exchange lends from when memory would
  // be mapped.
  static void steal(Thread& t, Bin bin, unsigned want, bool maps, Bundle& out) {
    const unsigned sent = Exchange::steal(S::shelves.exchange, S::global.owners, bin, want, maps, out);
    if (out.count == 0) return;
    Observe::count(t.observe, Event::kRemoteCollected, sent);
    Retain::waiting_taken(t.retain, out.count * bin_size(bin));
    own(t, bin, out);
  }
  // At most so many of the slots of a class that wait for an owner are given to others, or return to their
  // spans. Whether the caller has to trim afterwards: for all that it passes on, once.
  HZ_SLOW static bool pass_on(Thread& t, Scratch& scratch, unsigned owner, Bin bin, unsigned most) {
    bool all_wait = true;
    while (most != 0 && Exchange::waits(S::shelves.exchange, owner, bin)) {
      Bundle bundle = scratch.empty();
      collect(t, owner, bin, scratch.at_most(most), bundle);
      if (bundle.count == 0) break;
      most = bundle.count < most ? most - bundle.count : 0;
      all_wait &= put_where_it_may(t, bin, bundle);
    }
    return !all_wait;
  }

  // More waits than may: a bounded part of it returns to its spans, list by list in turn; if it is far more,
  // first what waits for this thread's owner, although the thread may want it soon. Returns how many slots
  // went.
  static unsigned trim(Thread& t) {
    constexpr unsigned kMost = 4 * kBatch;
    if (Retain::waiting_bytes(t.retain) == 0 || Spans::may_wait(t, bin_size(kBins - 1))) return 0;
    Scratch scratch;
    unsigned room = kMost;
    const unsigned at = S::global.trim_cursor.fetch_add(kLooks, std::memory_order_relaxed);
    const auto look = [&](unsigned owner, Bin bin) {
      if (bin != 0 && Exchange::waits(S::shelves.exchange, owner, bin))
        room = trim_list(t, scratch, owner, bin, room);
    };
    for (unsigned i = 0; Retain::must_go(S::global.retain, t.retain) && i < kBins && room != 0; ++i)
      look(t.owner, (at + i) % kBins);
    const unsigned all = lists();
    for (unsigned i = 0; i < (all < kLooks ? all : kLooks) && room != 0; ++i) {
      const unsigned list = (at + i) % all;
      look(list / kBins, list % kBins);
    }
    return kMost - room;
  }

 private:
  static bool may_wait(const Thread& t, Bin bin) {
    return Exchange::holds(bin) && Spans::may_wait(t, bin_size(bin));
  }

  // Whether all of it may wait.
  static bool put_where_it_may(Thread& t, Bin bin, Bundle& bundle) {
    if (may_wait(t, bin)) {
      prove_some(t, bin, bundle);
      const unsigned count = bundle.count;
      if (HZ_UNLIKELY(count == 0)) return true;  // every slot was reported
      Exchange::give(S::shelves.exchange, t.owner, bin, bundle);
      Retain::waiting_added(t.retain, (count - bundle.count) * bin_size(bin));
      if (bundle.count == 0) return true;
    }
    return Spans::put_back(t, bin, bundle), false;
  }

  // Leaves the slots that a remote thread claimed and no other thread has freed.
  static void arrived(Thread& t, Bin bin, Bundle& bundle) {
    const unsigned count = bundle.count;
    bundle.count = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (HZ_LIKELY(Guard::arrive(bundle.slots[i], bin))) {
        bundle.push(bundle.slots[i]);
      } else {
        Faults<Line>::note(Fault::kDoubleFree, bundle.slots[i], bin);
      }
    }
    Observe::count(t.observe, Event::kBytesCollected, count * bin_size(bin));
  }

  // A batch, or as much of it as lies in a magazine; how many went.
  static unsigned put_back_some(Thread& t, Scratch& scratch, unsigned owner, Bin bin, unsigned most) {
    if (!Exchange::waits(S::shelves.exchange, owner, bin)) return 0;
    Bundle bundle = scratch.empty();
    take(t, owner, bin, scratch.at_most(most), bundle);
    const unsigned count = bundle.count;
    Spans::put_back(t, bin, bundle);
    return count;
  }

  // What is left of `room` slots.
  static unsigned trim_list(Thread& t, Scratch& scratch, unsigned owner, Bin bin, unsigned room) {
    unsigned gone = 0;
    for (unsigned n = 1; n != 0 && gone < kBatch / 2; gone += n)
      n = put_back_some(t, scratch, owner, bin, kBatch);
    return gone < room ? room - gone : 0;
  }
};

}  // namespace hz
