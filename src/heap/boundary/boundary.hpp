// SPDX-License-Identifier: Apache-2.0
//
// The boundary: the one place where memory changes hands. A bin that ran empty gets a batch (refill), a bin
// that ran full gives one away (flush), an outbox is delivered. Called from the slow paths of heap.hpp with
// the thread's lock held.
//
//   refill:  own outbox -> what others sent -> what own threads left -> spans with free slots -> what waits
//            for no thread, or where memory would be mapped for others -> a new span
//            (with owners: own spans; others' only if a new one may not be had)
//   flush:   the exchange while retention lets slots wait there, else back to their spans; empty spans retire
#pragma once

#include "heap/boundary/capacities.hpp"
#include "heap/boundary/halving.hpp"
#include "heap/boundary/span_supply.hpp"

namespace hz {

template <class Line>
struct Boundary {
  using S = State<Line>;
  using Spans = SpanReturn<Line>;
  using Transfer = TransferCache<Line>;
  using R = Reclaim<Line>;
  using C = Capacities<Line>;
  using Supply = SpanSupply<Line>;
  using Thread = typename S::Thread;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Exchange = typename Line::Exchange;
  using Pool = typename Line::Pool;
  using Policy = typename Line::Policy;
  using Observe = typename Line::Observe;

  static constexpr unsigned kWaits = 1000;  // for spans that others look through, before there is no memory

  // A slot for the caller, and more for the bin; nullptr when memory cannot be had. `zeroed`: it reads as
  // zero. A caller that wants zeroes gets a slot of a page or more alone: another one would be read to know
  // whether it is zero, and written later, which are two page faults where it is untouched.
  HZ_INLINE static void* refill(Thread& t, Bin bin, bool& zeroed, bool wants_zeroes) {
    unsigned goal = 0;
    void* const slot = refill(t, bin, zeroed, wants_zeroes, goal);
    if (goal != 0) Supply::top_up(t, bin, goal);
    return slot;
  }
  // The same from one place. `goal`: so many slots the bin should come to have, from further spans, and the
  // one that is returned; 0: it has enough. Has a separate frame for small stacks: test/stack.
  HZ_SLOW static void* refill(Thread& t, Bin bin, bool& zeroed, bool wants_zeroes, unsigned& goal) {
    Observe::count(t.observe, Event::kRefill, 1);
    if (swap(t, bin)) {
      if (void* slot = Supply::popped(t, bin)) return slot;
    }
    if (HZ_UNLIKELY(!Halving<Line>::has_help())) Halving<Line>::noted(t);
    C::grow(t, bin);
    C::look_at_one(t, bin);
    const bool alone = wants_zeroes && !Pool::kWholePages && bin_size(bin) >= kPage;
    const bool fills = !alone && (!Front::kInBand || bin_size(bin) < kPage) && goes_on(t, bin, true);
    const unsigned want = alone ? 1 : Policy::refill_batch(bin, Front::capacity(t.front, bin), fills);
    Bundle bundle = Front::space(t.front, bin, want);
    Exchange::recall(t.exchange, bin, want, bundle);
    Spans::move(bin, bundle, Phase::kLocalFree);
    if (bundle.count == 0) Transfer::collect(t, t.owner, bin, want, bundle);
    if (bundle.count == 0 && exchanges(t, bin)) {
      if (take_magazine(t, bin)) {
        if (void* slot = Supply::popped(t, bin)) return slot;
      }
    } else if (bundle.count == 0) {
      Transfer::take_waiting(t, t.owner, bin, want, bundle);
    }
    void* waiting = stock(t, bin, bundle);
    Transfer::pass_on_backlog(t, bin);
    if (waiting != nullptr) return waiting;
    bool apart = Supply::keeps_apart(t);
    unsigned waits = kWaits;
    for (bool reclaimed = false;;) {
      if (void* slot = Supply::take_from_spans(t, bin, want, !apart, zeroed)) {
        if (fills) goal = want;
        return slot;
      }
      bundle = Front::space(t.front, bin, want);
      Transfer::steal(t, bin, want, Supply::maps(bin), bundle);
      if (void* slot = stock(t, bin, bundle)) return slot;
      // Another thread may be about to map memory for what lies in the outbox.
      if (Exchange::outbox_due(t.exchange) || reclaimed) deliver(t, true);
      if (!apart || Supply::has_room(bin)) {
        if (void* slot = Supply::take_from_new(t, bin, want, zeroed, reclaimed)) {
          if (fills) goal = want;
          return slot;
        }
      }
      if (apart) {  // from now on of any owner
        apart = false;
        continue;
      }
      if (reclaimed && !(waits != 0 && Discard<Line>::in_flight())) return nullptr;
      if (reclaimed) {
        --waits;
        os::give_way();
        continue;
      }
      R::reclaim(t, 0);
      reclaimed = true;
    }
  }

  // A bin was full when `slot` came: makes room and takes it in.
  static void flush(Thread& t, Bin bin, void* slot) {
    Observe::count(t.observe, Event::kFlush, 1);
    Halving<Line>::give_up_if_halved(t);
    Halving<Line>::sweep_if_due(t);
    if (!swap(t, bin)) make_room(t, bin);
    Front::check(t.front, bin, os::is_forked());
    if (Front::admit(t.front, bin, slot)) return Front::put(t.front, bin, slot);
    Front::turn_away(t.front, bin);
    Bundle bundle = Bundle::of(slot);  // this thread caches nothing of the class
    t.gave(bin, 1);
    Transfer::put(t, bin, bundle);
    Spans::purge_if_due(t);
  }

  // Passes a remote slot on then that was just deferred, instead of leaving it to its owner.
  static void pass_on_if_halved(Thread& t, unsigned owner, Bin bin, bool sent) {
    if (HZ_LIKELY(!Halving<Line>::give_up_if_halved(t))) return;
    R::send(t, true);
    if (sent) {
      typename Transfer::Scratch scratch;
      Transfer::pass_on(t, scratch, owner, bin, Transfer::kAll);
    }
    Transfer::trim(t);
    Spans::purge_if_due(t);
  }

  // Sends remote frees on their way: all of them, or those for which there was no room.
  static void deliver(Thread& t, bool everything) {
    R::send(t, everything);
    Transfer::trim(t);
    Spans::purge_if_due(t);
  }

 private:
  // Returns true if the only thread of the process fills this bin, or drains it. Threads that share spans
  // take no more than they need, and the child of a fork does not, because slots of its parent's spans cost
  // copies of pages.
  static bool goes_on(Thread& t, Bin bin, bool comes) {
    const bool shares = S::global.thread_count.load(std::memory_order_relaxed) > 1 || os::is_forked();
    return !shares && Policy::goes_on(t.policy, bin, comes);
  }

  static void make_room(Thread& t, Bin bin) {
    C::grow(t, bin);
    C::look_at_one(t, bin);
    if (!give_magazine(t, bin)) {
      const unsigned capacity = Front::capacity(t.front, bin);
      const unsigned count = Front::count(t.front, bin);
      if (count < capacity) return;
      const unsigned keep =
          capacity == 0 ? 0 : capacity - Policy::flush_batch(bin, capacity, goes_on(t, bin, false));
      R::drain(t, bin, count - keep, false);
    }
    Spans::purge_if_due(t);
  }
  // Swaps the two magazines of a bin, if the other one helps where the one at hand is empty or full.
  static bool swap(Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) return Front::swap(t.front, bin);
    return false;
  }
  // Returns true if slots come from the exchange, and go there, by whole magazines.
  static bool exchanges(const Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) return Front::exchanges(t.front, bin);
    return false;
  }
  // Returns true if one came.
  static bool take_magazine(Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) {
      auto* full = Transfer::take_magazine(t, bin);
      if (full == nullptr || full->count == 0) return Exchange::give_empty(full), false;
      t.took(bin, full->count);
      Exchange::give_empty(Front::exchange(t.front, bin, full));
      return true;
    }
    return false;
  }
  static bool give_magazine(Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) {
      auto* empty = exchanges(t, bin) ? Exchange::take_empty() : nullptr;
      if (empty == nullptr) return false;
      auto* full = Front::exchange(t.front, bin, empty);
      if (full != nullptr) t.gave(bin, full->count);
      Transfer::put_magazine(t, bin, full);
      return true;
    }
    return false;
  }

  // First slot to the caller, the rest into the bin; nullptr if there is none.
  static void* stock(Thread& t, Bin bin, const Bundle& bundle) {
    if (bundle.count == 0) return nullptr;
    t.took(bin, bundle.count);
    Front::fill(t.front, bin, bundle);
    return Supply::popped(t, bin);
  }
};

}  // namespace hz
