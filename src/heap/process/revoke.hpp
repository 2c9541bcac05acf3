// SPDX-License-Identifier: Apache-2.0
//
// Taking back what another thread caches, without a lock or an atomic on its hot path. Called by the purger
// for threads that are idle, by trim, and when memory cannot be had. Costs two barriers on all threads, and a
// walk along the lists.
//
//   here   1  with the thread's lock: make it see `empty`
//          2  barrier: from here on it may finish the one hot operation that it is in; all else meets the
//             lock
//          3  exchange the head of every list for null
//          4  barrier: that operation has seen the list or will see none
//          5  a list is ours if its length and the owner's count agree; at most one does not: it stays
//             unresolved
//          and so is its ring, in a line with a quarantine
//   owner  the next slow path takes the lock and makes its state whole again (Threads::reattach)
//
// The operation of step 2 is anywhere between its load of `tls.fast` and its last store, for any time: the
// thread may have been interrupted there by a signal whose handler sleeps. A bin's count moves first and its
// head last, so the count tells afterwards what the operation did. The outbox has a flag of its own. A
// thread that has a quota (heap/api/quotas.hpp) has two fronts, and is inside of one of them at most.
#pragma once

#include "heap/process/fork.hpp"

namespace hz {

template <class Line>
struct Revocation {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using Hold = typename S::Hold;
  using Spans = SpanReturn<Line>;
  using Front = typename Line::Front;
  using FrontState = typename Front::PerThread;
  using Guard = typename Line::Guard;

  // Of all threads but the caller, which holds no lock; whether anything was taken.
  static bool revoke_others() {
    if (S::tls().forking) return false;
    bool any = false;
    const typename Faults<Line>::Telling telling;
    const Hold list(S::global.threads_lock);
    for (Thread* t = S::global.threads; t != nullptr; t = t->next) any |= t != S::tls().heap && revoke(*t);
    return any;
  }

  // With the list's lock, under which nobody may wait: who is at the boundary is not idle. False if so, if
  // there is nothing to take, if the thread may be gone, or without a barrier.
  static bool revoke(Thread& t) {
    const typename S::TryHold hold(t.lock);
    if (!hold.held || !t.hooked.peek()) return false;
    auto* const local = t.local.peek();
    if (local == nullptr || t.revoked.peek() || !is_there(t, *local)) return false;
    S::show(*local, S::empty);
    if (!os::barrier_on_all_threads()) return S::show(t, true), false;
    Line::Retain::enter(S::global.retain, t.retain, 1);
    const bool deferring = t.deferring.peek_first();
    take_lists(t);
    t.revoked.set(true);
    Line::Retain::bins_shrunk(t.retain, t.capacity_bytes);
    if (!deferring) Reclaim<Line>::send(t, true);
    Line::Retain::leave(S::global.retain, t.retain, 1);
    Line::Observe::count(t.observe, Event::kRevoked, 1);
    return true;
  }

 private:
  // A thread that allocates for the first time in the last round of destructors ends without our being told.
  // What it had of storage may be unmapped then, or serve others.
  static bool is_there(Thread& t, const typename S::Local& local) {
    const std::size_t page = os::page_bytes();
    if (!os::is_mapped(pointer(address(&local.fast) & ~(page - 1)), page)) return false;
    const Thread* seen = local.fast.load(std::memory_order_relaxed);
    return seen == &S::unless_counting(t) || seen == &S::empty;
  }

  // Between the barriers; under the list's lock. Here and not on the stack, which is anybody's: whoever needs
  // memory may come to this.
  static inline constinit typename Front::List lists[kBins]{}, lists_of_quota[kBins]{};
  static constexpr unsigned kMostWaiting = [] {
    if constexpr (FrontOfQuarantine<Front>) return Front::places(1);
    return 1U;
  }();
  static inline constinit void* waiting[kMostWaiting]{};

  static void take_lists(Thread& t) {
    typename S::Quota* const quota = t.quota.peek();
    for (Bin bin = 1; bin < kBins; ++bin) {
      lists[bin] = Front::detach(t.front, bin);
      if (quota != nullptr) lists_of_quota[bin] = Front::detach(quota->front, bin);
    }
    HeapRow::all_have_seen();
    for (Bin bin = 1; bin < kBins; ++bin) {
      if (lists[bin] != nullptr) put_back_detached(t, t.front, bin, lists[bin]);
      take_spare(t, bin);
      take_waiting(t, bin);
      // What was counted as allocated is not.
      if (quota != nullptr && lists_of_quota[bin] != nullptr)
        quota->countdown.left[bin] += put_back_detached(t, quota->front, bin, lists_of_quota[bin]);
    }
  }
  // The hot path knows nothing of it.
  static void take_spare(Thread& t, Bin bin) {
    if constexpr (FrontOfMagazines<Front>) {
      auto* const spare = Front::take_spare(t.front, bin);
      if (spare == nullptr) return;
      t.lost(bin, spare->count);
      Spans::put_back(t, bin, {spare->slots, spare->count});
      Line::Exchange::give_empty(spare);
    }
  }
  // A free that may be at the ring has room counted that its bin does not know of yet.
  static void take_waiting(Thread& t, Bin bin) {
    if constexpr (FrontOfQuarantine<Front>) {
      const unsigned listed = lists[bin] == nullptr ? 0 : Front::listed(t.front, bin, lists[bin]).count;
      if (!Front::accounts_for(t.front, bin, listed)) return;
      const unsigned count = Front::take_waiting(t.front, bin, waiting, Front::places(bin));
      if (count == 0) return;
      t.lost(bin, count);
      Spans::put_back(t, bin, {waiting, count});
    }
  }

  // How many slots went.
  static unsigned put_back_detached(Thread& t, FrontState& front, Bin bin, typename Front::List list) {
    const typename Front::Bundle slots = contents(t, front, bin, list);
    if (slots.count != 0 && Front::accounts_for(front, bin, slots.count)) {
      const unsigned count = slots.count;
      t.lost(bin, count);
      Spans::put_back(t, bin, slots);
      return count;
    }
    if (!Front::keep_unresolved(front, bin, list))
      Faults<Line>::note(Fault::kWriteAfterFree, list, bin);  // two cannot be unresolved
    return 0;
  }

  static typename Front::Bundle contents(const Thread& t, const FrontState& front, Bin bin,
                                         typename Front::List list) {
    if constexpr (Front::kInBand)
      return walked(t, bin, list);
    else
      return Front::listed(front, bin, list);
  }

  // The list as a chain, if it is one from end to end: its first slot may have been handed out a moment ago,
  // and then its link is whatever the user wrote.
  static Chain walked(const Thread& t, Bin bin, FreeSlot* list) {
    constexpr unsigned kLongest = 1U << 20;
    Chain chain = {list, list, 0};
    for (;;) {
      // Acquire: the mark is read after the link.
      FreeSlot* next = __atomic_load_n(&chain.last->next, __ATOMIC_ACQUIRE);
      if (!Guard::intact(t.guard, chain.last) || chain.count == kLongest) return {};
      ++chain.count;
      if (next == nullptr) return chain;
      if (!Spans::is_slot(next, bin)) return {};
      chain.last = next;
    }
  }
};

}  // namespace hz
