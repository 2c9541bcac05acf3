// SPDX-License-Identifier: Apache-2.0
//
// Takes slots out of a thread: some of a bin, its outbox, or all of its cache when it ends, has freed most of
// its memory, or memory is unavailable. Called by boundary.hpp and by revocations of threads' caches, with
// the thread's lock held.
#pragma once

#include "heap/exchange/transfer_cache.hpp"

namespace hz {

template <class Line>
struct Reclaim {
  using S = State<Line>;
  using Spans = SpanReturn<Line>;
  using Transfer = TransferCache<Line>;
  using Thread = typename S::Thread;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Exchange = typename Line::Exchange;
  using Retain = typename Line::Retain;
  using Observe = typename Line::Observe;

  // At most `n` slots of a bin leave the thread; whether any did.
  static bool drain(Thread& t, Bin bin, unsigned n, bool to_spans) {
    return drain(t, t.front, bin, n, to_spans) != 0;
  }
  // The same of the quota. What was counted as allocated is not.
  static bool drain_quota(Thread& t, Bin bin, bool to_spans) {
    typename S::Quota& quota = *t.quota.peek();
    const unsigned count = drain(t, quota.front, bin, Transfer::kAll, to_spans);
    quota.countdown.left[bin] += count;
    return count != 0;
  }
  // It holds no slots.
  static void leave(Thread& t) {
    Front::leave(t.front);
    if (t.quota.peek() != nullptr) Front::leave(t.quota.peek()->front);
  }

  // What is in the outbox goes to where its owners find it, all of it or what made it full.
  static void send(Thread& t, bool everything) {
    typename Exchange::Drain outbox(S::shelves.exchange, t.exchange, t.owner, everything);
    Parcel<Bundle> parcel;
    while (outbox.next(parcel)) {
      const std::size_t size = bin_size(parcel.bin);
      t.gave(parcel.bin, parcel.slots.count);
      Spans::check_marks(t, parcel.bin, parcel.slots);
      // No thread would collect slots that wait for an owner without a thread. In its span any thread finds
      // such a slot.
      const bool orphans = S::global.owners.threads(parcel.owner) == 0;
      if (orphans) {
        Spans::move(parcel.bin, parcel.slots, Phase::kOrphan);
      } else if (parcel.slots.count != 0 && Spans::may_wait(t, size)) {
        Transfer::prove_some(t, parcel.bin, parcel.slots);
        const unsigned count = parcel.slots.count;
        if (HZ_UNLIKELY(count == 0)) continue;  // every slot was reported
        Retain::waiting_added(t.retain, count * size);
        outbox.send(parcel);
        if (parcel.slots.count != 0) Retain::waiting_taken(t.retain, parcel.slots.count * size);
        Observe::count(t.observe, Event::kRemoteSent, count - parcel.slots.count);
        if (Exchange::kAnybodys)
          Observe::count(t.observe, Event::kRemoteCollected, count - parcel.slots.count);
      }
      if (!orphans) Observe::count(t.observe, Event::kRemoteRefused, parcel.slots.count);
      Spans::put_back(t, parcel.bin, parcel.slots);
    }
  }

  // Empties a thread's bins and its outbox.
  static void give_up(Thread& t, bool to_spans) {
    send(t, true);
    empty(t, to_spans);
  }

  // A thread's end: what it holds goes to its heirs, the threads of the same owner; without any, all that
  // waits for the owner returns to its spans.
  static void thread_exit(Thread& t) {
    // A hint: see Threads::on_thread_exit.
    const bool last = S::global.owners.threads(t.owner) == 1;
    Retain::bins_shrunk(t.retain, t.capacity_bytes);
    give_up(t, last);
    if (last) Transfer::flush_left(t, t.owner, S::global.thread_count.load(std::memory_order_relaxed) - 1);
    Spans::purge_if_due(t);
  }

  // Returns what this thread and all shared lists hold to the spans, and pages beyond `keep_dirty` bytes to
  // the system. What the purger took from a list a moment ago and holds in its hands is waited for.
  static std::size_t reclaim(Thread& t, std::size_t keep_dirty) {
    give_up(t, true);
    Transfer::flush_all(t);
    { const typename S::Hold purger(S::purger_state.lock, os::Rank::kPurger); }
    MitigationOf<Line>::release_waiting();
    return Spans::purge(t, keep_dirty, SIZE_MAX);
  }

 private:
  // Its frame is not on the stack while the outbox is sent.
  HZ_SLOW static void empty(Thread& t, bool to_spans) {
    for (Bin bin = 1; bin < kBins; ++bin) {
      while (drain(t, bin, Transfer::kAll, to_spans)) continue;
      while (t.quota.peek() != nullptr && drain_quota(t, bin, to_spans)) continue;
    }
  }
  static unsigned drain(Thread& t, typename Front::PerThread& front, Bin bin, unsigned n, bool to_spans) {
    Bundle bundle = Front::drain(front, bin, n);
    const unsigned count = bundle.count;
    if (count == 0) return 0;
    t.gave(bin, count);
    Spans::check_marks(t, bin, bundle);
    if (to_spans) {
      Spans::put_back(t, bin, bundle);
    } else {
      Transfer::put(t, bin, bundle);
    }
    Front::drained(front, bin, count);
    return count;
  }
};

}  // namespace hz
