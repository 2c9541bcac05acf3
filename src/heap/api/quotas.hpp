// SPDX-License-Identifier: Apache-2.0
//
// How samples (heap/samples/sampling.hpp) are chosen, without a word on the hot path. A bin is last in, first
// out: the malloc that finds it empty stands where its depth has a new minimum, so it is no random one, and
// which of two calls in turn it is may be the same for ever. So the number of mallocs between two crossings
// has to be known, whatever is freed meanwhile.
//
//   While there are samples, malloc takes from bins of its own, the quota, and free puts into the thread's
//   front as ever. What comes into a quota is counted down as allocated (Countdown), what leaves it for
//   elsewhere is counted up again:
//
//     left[class] allocations of the class, less those that the quota has slots for, until one is a sample
//     a quota with slots: left >= 1
//
//   So the malloc for which the quota ends is the sample, or gets the next quota: what the front has, or,
//   where that is little, what a refill brings. left is drawn from a geometric distribution each time, so
//   every allocation is as likely a sample as any other of its class.
//
// A sample that an extension records lies in a run, as a huge block does (heap/huge/huge.hpp). Others are
// the extension's, outside of the arena. All that is done with a sample takes the slow path. Called
// by heap.hpp with the thread's lock held; costs a crossing each time that a quota ends, and a run and a walk
// along the stack for a sample. Samples of either kind begin, pause and change their rate while the process
// runs: a thread learns of it in its next crossing.
#pragma once

#include "base/bytes.hpp"
#include "heap/boundary/boundary.hpp"
#include "heap/huge/huge.hpp"

namespace hz {

template <class Line>
struct Quotas {
  using S = State<Line>;
  using H = Huge<Line>;
  using Thread = typename S::Thread;
  using Front = typename Line::Front;
  using Bundle = typename Front::Bundle;
  using Quota = typename S::Quota;

  // Where there are or were samples, before a slot of the class is taken as ever: a slot of the quota, or a
  // sample, of which is noted who called when no lock is held; nullptr: neither.
  HZ_SLOW static void* before(Thread& t, Bin bin, std::size_t size, std::size_t alignment, bool& zeroed,
                              Sample& sample) {
    if (!counts(t)) return nullptr;
    if (Quota* const quota = t.quota.peek()) {
      if (void* slot = SpanSupply<Line>::popped(quota->front, bin)) return slot;
    }
    const Sample next = Sampling::next(*t.countdown, bin, bin_size(bin), S::is_own_work());
    if (next == Sample::kRecorded) {
      const std::size_t bytes = MitigationOf<Line>::kExactSizes ? size : bin_size(bin);
      void* const block = has_mappings() ? H::allocate(t, bytes, 1, zeroed, 0, false) : nullptr;
      if (block != nullptr) {
        H::count_as_sample(t, block, bin);
        return sample = next, block;
      }
      Extensions::give_up();
    } else if (next == Sample::kOwned) {
      if (void* block = Extensions::take(bin, size, alignment)) return zeroed = true, sample = next, block;
    }
    Sampling::draw(*t.countdown, bin, bin_size(bin));
    // All that the front has, so that there is an empty bin to refill.
    if (has_quota(t) && Front::count(t.front, bin) < few(bin)) fill(t, bin);
    return nullptr;
  }
  // Behind it: `slot` is what the caller gets, nullptr if there was no memory.
  HZ_SLOW static void after(Thread& t, Bin bin, const void* slot) {
    if (t.countdown == nullptr) return;
    if (slot == nullptr) {
      ++t.countdown->left[bin];
    } else if (has_quota(t) && Front::count(t.quota.peek()->front, bin) == 0 && t.countdown->left[bin] != 0) {
      fill(t, bin);
    }
  }

  // Returns what a new run is. A huge block that realloc resized is another allocation.
  static Sample of_run(Thread& t, const void* run) {
    return HZ_UNLIKELY(Extensions::records()) && counts(t)
               ? Sampling::next(*t.countdown, kHugeBin, H::run_bytes(run), S::is_own_work())
               : Sample::kNone;
  }
  // Notes a sample. Lock: none.
  HZ_COLD static void add(Sample sample, const void* block, Bin bin, const void* caller) {
    bool& walking = S::tls().walking;
    if (sample == Sample::kOwned) return Extensions::note(block, caller, walking);
    const typename Faults<Line>::Telling telling;  // announces the lock of the record to fork hooks
    Extensions::add(block, bin, bin == kHugeBin ? H::run_bytes(block) : bin_size(bin), caller, walking);
  }

  // Whether the thread counts down; at the rates of now.
  static bool counts(Thread& t) {
    const Rates now = Sampling::rates();
    if (HZ_UNLIKELY(now != (t.countdown != nullptr ? t.countdown->rates : Rates{}))) {
      if (t.countdown != nullptr) end(t);
      if (now != Rates{}) begin(t, now);
    }
    return t.countdown != nullptr;
  }
  // The state goes. With the list's lock.
  static void leave(Thread& t) {
    if (t.quota.peek() != nullptr) Sampling::unmap_quota(t.quota.peek(), kBytes);
  }

 private:
  // Slots of a class that a busy thread has in turn between front and quota, so that it does not cross for
  // each malloc.
  static constexpr std::size_t kTurning = 128, kTurningBytes = 64 * kKiB;
  static constexpr unsigned kMost = [] {
    if constexpr (FrontOfMagazines<Front>) return unsigned{Front::Magazine::kSlots};
    return 256U;
  }();
  static constexpr unsigned kFew = 16;  // what needs no magazine

  static bool has_mappings() {
    using M = MitigationOf<Line>;
    return M::kMostSamples == SIZE_MAX || Extensions::samples() < M::kMostSamples;
  }

  // Who looks from outside reads as many bytes of a quota as of a state.
  static constexpr std::size_t kBytes = sizeof(Quota) < sizeof(Thread) ? sizeof(Thread) : sizeof(Quota);

  HZ_COLD static void begin(Thread& t, const Rates& rates) {
    if (&t == &S::shared) {
      t.countdown = &S::shared_countdown;
    } else {
      if (t.quota.peek() == nullptr) {
        void* const at = Sampling::map_quota(kBytes);
        if (at == nullptr) return;
        auto* const quota = ::new (at) Quota;
        Front::join(quota->front, quota->store);
        t.quota.set_last(quota);
      }
      t.countdown = &t.quota.peek()->countdown;
      show(t);
    }
    t.countdown->rates = rates;
  }
  // What was drawn was for the rates that were.
  HZ_COLD static void end(Thread& t) {
    for (Bin bin = 1; bin < kBins; ++bin) {
      while (t.quota.peek() != nullptr && Reclaim<Line>::drain_quota(t, bin, false)) continue;
      t.countdown->left[bin] = 0;
    }
    t.countdown = nullptr;
    show(t);
  }
  static void show(Thread& t) {
    if (t.local.peek() != nullptr && t.local.peek()->fast.load(std::memory_order_relaxed) == &t)
      S::show(t, true);
  }

  // Nobody's states have none, and of one who is not to see its own state every malloc crosses anyway.
  static bool has_quota(const Thread& t) {
    return t.quota.peek() != nullptr && t.closed == nullptr && t.local.peek() != nullptr;
  }

  static std::size_t few(Bin bin) {
    const std::size_t turning = kTurningBytes / bin_size(bin);
    return (turning < kTurning ? turning : kTurning) / 2;
  }

  // From the front into the quota, as many as come before the next sample.
  static void fill(Thread& t, Bin bin) {
    typename Front::PerThread& to = t.quota.peek()->front;
    std::uint64_t& left = t.countdown->left[bin];
    unsigned n = Front::count(t.front, bin);
    if (n > left - 1) n = static_cast<unsigned>(left - 1);
    if (n > kMost) n = kMost;
    if (n != 0 && Front::capacity(to, bin) < n) {
      const unsigned want = n <= kFew ? kFew : kMost, most = Front::most(bin);
      Front::set_capacity(to, bin, want < most ? want : most);
    }
    const unsigned room = Front::capacity(to, bin) - Front::count(to, bin);
    if (n > room) n = room;
    if (n == 0) return;
    const Bundle from = Front::drain(t.front, bin, n);
    Bundle into = Front::space(to, bin, from.count);
    if constexpr (Front::kInBand) {
      into = from;
    } else {
      copy_bytes(into.slots, from.slots, from.count * sizeof(void*));
      into.count = from.count;
    }
    Front::drained(t.front, bin, from.count);
    Front::fill(to, bin, into);
    left -= from.count;
  }
};

}  // namespace hz
