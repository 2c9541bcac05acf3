// SPDX-License-Identifier: Apache-2.0
//
// A free: into this thread's bin, or else by the slow path, which finds the block's kind, its owner, and
// whether it may be freed at all. Called by heap.hpp, whose doors are the slow paths; a free that the bin
// takes costs what the guard costs, any other one a lock, or a place in an outbox.
#pragma once

#include "heap/api/counts.hpp"
#include "heap/api/judge.hpp"
#include "heap/api/quotas.hpp"

namespace hz {

template <class Line>
struct Release {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using B = Boundary<Line>;
  using H = Huge<Line>;
  using J = Judge<Line>;
  using F = Heaps<Line>;
  using M = MitigationOf<Line>;
  using Route = typename Line::Route;
  using Tag = typename Route::Tag;
  using Front = typename Line::Front;
  using Guard = typename Line::Guard;
  using Exchange = typename Line::Exchange;
  using Observe = typename Line::Observe;
  using Entered = typename Threads<Line>::Entered;

  // --- into a bin, without a lock

  // Frees a slot of this thread's, if it is one.
  HZ_INLINE static void own(Thread& t, Bin bin, void* block) {
    if (HZ_UNLIKELY(!Guard::may_free(t.guard, block, bin))) return Heap<Line>::free_slow(block);
    take_in(t, bin, block);
  }
  // Takes in a slot that may be freed.
  HZ_INLINE static void take_in(Thread& t, Bin bin, void* block) {
    if (HZ_UNLIKELY(M::is_beyond_hand(bin))) return Heap<Line>::take_in_much(t, bin, block);
    Guard::on_free(t.guard, block, bin);
    take_in_cleared(t, bin, block);
  }
  HZ_INLINE static void take_in_cleared(Thread& t, Bin bin, void* block) {
    if (HZ_UNLIKELY(!Front::admit(t.front, bin, block))) {
      if constexpr (!M::kUndoesFrees) return Heap<Line>::turned_away(t, bin, block);
      Front::turn_away(t.front, bin);
      Guard::on_alloc(block, bin);
      return Heap<Line>::free_slow(block);
    }
    Front::put(t.front, bin, block);
  }
  // Takes in a slot that is free already, and whose bin is full.
  HZ_INLINE static void turned_away(Thread& t, Bin bin, void* block) {
    Front::turn_away(t.front, bin);
    Entered here;
    Counts<Line>::freed(here.thread(), bin, block);
    put_or_flush(here.thread(), bin, block);
  }

  // --- another owner's

  // Frees a slot that is not this thread's: most often a remote free, which needs no lock.
  HZ_INLINE static void elsewhere(void* block) {
    // With one owner no free is remote: this thread's state was hidden a moment ago
    // (heap/process/revoke.hpp), and may be back.
    if constexpr (Exchange::kOwners == 1) return Heap<Line>::free_slow(block);
    const Tag tag = Route::find(S::global.route, address(block));
    const Bin bin = Route::bin(tag);
    Thread& t = S::fast();
    if (HZ_UNLIKELY(!t.alive || bin > kLastBin || bin == 0 || !Guard::may_free(t.guard, block, bin)))
      return Heap<Line>::free_slow(block);
    if (Exchange::moves_span(bin)) return whole(t, bin, block);
    if (HZ_UNLIKELY(!deferred(t, Route::owner(tag), bin, block))) return Heap<Line>::free_slow(block);
    if (HZ_UNLIKELY(Exchange::help_due(t.exchange, bin))) help(Route::owner(tag));
  }

  // --- any block

  HZ_INLINE static void slow(void* block) {
    if (block == nullptr) return;
    const Block<Line> found = classify<Line>(block);
    switch (found.kind) {
      case Kind::kInHeap: return F::free(block);
      case Kind::kExtension: return of_extension(block);
      case Kind::kNothing:
      case Kind::kSlot:
      case Kind::kRun:
        if (J::plausible(found, block)) here(block, found);
    }
  }
  // Frees a run of a first-class heap, which has looked at it.
  static void run(void* block) {
    Entered here;
    run_here(here.thread(), block);
  }

  // --- by size

  // Frees by size what the hot path leaves: another owner's slot, a size beyond the table, a block shrunk in
  // place, or a wrong size.
  HZ_INLINE static void judged(void* block, std::size_t size, std::size_t alignment, bool shrunk) {
    if (alignment == 0) alignment = 1;  // as aligned_alloc takes it
    const Block<Line> found = classify<Line>(block);
    if (HZ_UNLIKELY(!fits(found, block, size, alignment, shrunk)))
      return mismatched(block, found.kind == Kind::kExtension ? Extensions::look(block).bin : found.bin);
    Heap<Line>::free(block);  // reports where there is no block
  }

 private:
  // --- another owner's

  // A remote slot that is all of its span needs no way back: span and slot are this thread's from here on.
  static void whole(Thread& t, Bin bin, void* block) {
    if (HZ_UNLIKELY(Guard::claim(t.guard, block, bin) == nullptr)) return Heap<Line>::free_slow(block);
    TransferCache<Line>::own(t, bin, block);
    take_in(t, bin, block);
  }
  // This thread has sent so many slots that it collects some that wait for their owner.
  HZ_SLOW static void help(unsigned owner) {
    Entered here;
    Exchange::helped(here.thread().exchange);
    TransferCache<Line>::help(here.thread(), owner);
  }
  // The outbox is ours while the flag is up and we still see our own state after that: see revoke.hpp.
  HZ_INLINE static bool deferred(Thread& t, unsigned owner, Bin bin, void* block) {
    t.deferring.put(true);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    void* claimed = nullptr;
    if (HZ_LIKELY(&S::fast() == &t) && Exchange::admit(t.exchange, owner, bin) &&
        !Exchange::is_latest(t.exchange, block))
      claimed = Guard::claim(t.guard, block, bin);
    if (HZ_LIKELY(claimed != nullptr)) defer(t, owner, bin, claimed);
    // Release: a thread that finds the flag down finds the outbox as we left it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t.deferring.set_last(false);
    return claimed != nullptr;
  }
  // Returns true if its owner can have it from now on.
  HZ_INLINE static bool defer(Thread& t, unsigned owner, Bin bin, void* claimed) {
    const std::size_t sent = Exchange::defer(t.exchange, owner, bin, claimed);
    if (sent == 0) return false;
    Observe::count(t.observe, Event::kRemoteSent, 1);
    Observe::count(t.observe, Event::kBytesSent, sent);
    t.gave(sent);
    return true;
  }

  // --- an extension's block

  HZ_COLD static void of_extension(void* block) {
    const auto enter = [] { return Entered(typename Entered::Unborn{}); };
    const Extensions::Found found = Extensions::free(enter, block, S::tls().walking);
    if (found.fault == Fault::kNone || found.fault == Fault::kOutOfBounds) count_freed(block, found.bin);
    if (found.fault == Fault::kNone) return;
    Guard::report(found.fault, found.at == nullptr ? block : found.at, found.bin, Line::kName);
  }
  HZ_COLD static void count_freed(const void* block, Bin bin) {
    Entered here;
    Counts<Line>::freed(here.thread(), bin, block);
  }

  // --- a slot or a run

  HZ_INLINE static void here(void* block, const Block<Line>& found) {
    Entered here;
    found.kind == Kind::kRun ? run_here(here.thread(), block) : slot_here(here.thread(), block, found);
  }
  static void run_here(Thread& t, void* block) {
    if (HZ_UNLIKELY(!H::claim(block)))
      return Faults<Line>::note(Fault::kDoubleFree, block, kHugeBin, Seen::kNow);
    Counts<Line>::freed(t, H::end_sample(t, block), block);
    H::free(t, block);
  }
  HZ_INLINE static void slot_here(Thread& t, void* block, const Block<Line>& found) {
    const Bin bin = found.bin;
    Counts<Line>::freed(t, bin, block);
    if (Route::kOwned && Route::owner(found.tag) != t.owner) {
      void* const claimed = Guard::claim(S::shared.guard, block, bin);
      if (HZ_UNLIKELY(claimed == nullptr))
        return Faults<Line>::note(Fault::kDoubleFree, block, bin, Seen::kNow);
      if (!Exchange::admit(t.exchange, Route::owner(found.tag), bin)) B::deliver(t, false);
      const bool sent = defer(t, Route::owner(found.tag), bin, claimed);
      return B::pass_on_if_halved(t, Route::owner(found.tag), bin, sent);
    }
    // The wait for the lock may have been long.
    if (Guard::kClaims && HZ_UNLIKELY(!Guard::may_free(S::shared.guard, block, bin)))
      return Faults<Line>::note(Fault::kDoubleFree, block, bin, Seen::kNow);
    M::is_beyond_hand(bin) ? M::take_back_much(block, bin) : Guard::on_free(S::shared.guard, block, bin);
    put_or_flush(t, bin, block);
  }
  static void put_or_flush(Thread& t, Bin bin, void* block) {
    if (Front::admit(t.front, bin, block)) {
      Front::put(t.front, bin, block);
    } else {
      Front::turn_away(t.front, bin);
      B::flush(t, bin, block);
    }
  }

  // --- by size

  // Returns true if a block of that size and alignment may lie there, and for what is no block, which the
  // free reports.
  static bool fits(const Block<Line>& found, const void* block, std::size_t size, std::size_t alignment,
                   bool shrunk) {
    switch (found.kind) {
      case Kind::kNothing: return true;
      case Kind::kExtension: return fits_extension(block, size, alignment, shrunk);
      case Kind::kInHeap: return F::fits(block, size, shrunk);
      case Kind::kRun: {
        Forks<Line>::notice_process();
        const Bin bin = H::bin_of(block);
        return bin == kHugeBin ? H::fits(block, size, shrunk)
                               : fits_slot(found, bin, block, size, alignment, shrunk);
      }
      case Kind::kSlot: return fits_slot(found, found.bin, block, size, alignment, shrunk);
    }
    return true;
  }
  static bool fits_slot(const Block<Line>& found, Bin bin, const void* block, std::size_t size,
                        std::size_t alignment, bool shrunk) {
    if constexpr (M::kExactSizes)
      return J::look(found, block).fault != Fault::kNone || size == Heap<Line>::bytes_at(block);
    // By sizes: a spare class may have been dealt out since, or before.
    const std::size_t bytes = bin_size(bin), least = size == 0 ? 1 : size;
    if (bytes < least) return false;
    // realloc leaves a block where it happens to lie right, also if its class keeps no such alignment.
    if (shrunk && least >= bytes / 2 && (address(block) & (alignment - 1)) == 0) return true;
    const Bin most = most_aligned_bin(least, alignment);
    if (most == kHugeBin || (!is_large(bin) && (bytes & (alignment - 1)) != 0)) return false;
    return bytes <= size_of_bin(most);
  }
  HZ_COLD static bool fits_extension(const void* block, std::size_t size, std::size_t alignment,
                                     bool shrunk) {
    const std::size_t usable = Extensions::look(block).bytes, least = size == 0 ? 1 : size;
    if (usable == 0) return true;
    if ((address(block) & (alignment - 1)) != 0) return false;
    return least == usable || (shrunk && !M::kExactSizes && least < usable && least >= usable / 2);
  }
  HZ_COLD static void mismatched(void* block, Bin bin) {
    Guard::report(Fault::kSizeMismatch, block, bin, Line::kName);
    Heap<Line>::free(block);
  }
};

}  // namespace hz
