// SPDX-License-Identifier: Apache-2.0
//
// A malloc that misses: one crossing of the boundary, or a run, and once more when other threads have given
// up what they cache. Called by heap.hpp, by resize.hpp, and by first-class heaps for their runs; costs a
// lock and a refill. `caller` is the return address in the program, for the heap profile.
#pragma once

#include <cerrno>
#include <cstring>

#include "base/zeroes.hpp"
#include "heap/api/counts.hpp"
#include "heap/api/quotas.hpp"
#include "heap/process/purger.hpp"

namespace hz {

template <class Line>
struct Allocation {
  using S = State<Line>;
  using Thread = typename S::Thread;
  using B = Boundary<Line>;
  using H = Huge<Line>;
  using M = MitigationOf<Line>;
  using Front = typename Line::Front;
  using Guard = typename Line::Guard;
  using Source = typename Line::Source;
  using Policy = typename Line::Policy;
  using Entered = typename Threads<Line>::Entered;
  using Unborn = typename Entered::Unborn;

  // --- from a bin, without a lock

  HZ_INLINE static void* popped(Bin bin, std::size_t size) {
    void* slot = Front::pop(S::supply(), bin);
    if (HZ_LIKELY(slot != nullptr) && HZ_UNLIKELY(!M::hand_out(slot, bin, size))) return not_free(slot, bin);
    return slot;
  }
  // The same of any class.
  HZ_INLINE static void* popped_any(Bin bin, std::size_t size) {
    if (!M::is_beyond_hand(bin)) return popped(bin, size);
    void* slot = Front::pop(S::supply(), bin);
    return slot == nullptr || HZ_LIKELY(M::hand_out_much(slot, bin, size)) ? slot : not_free(slot, bin);
  }

  // --- a block

  HZ_INLINE static void* of_size(std::size_t size, const void* caller) {
    const Bin bin = M::bin_for(size);
    // Beyond the table that the hot path looks into, the bin may well have some.
    void* slot = size > M::kMostAtHand - M::kMargin && bin != kHugeBin ? popped_any(bin, size) : nullptr;
    return slot != nullptr ? slot : crossed(bin, size, 1, caller);
  }
  // `alignment` is a power of two.
  HZ_INLINE static void* aligned(std::size_t alignment, std::size_t size, const void* caller) {
    if (size > PTRDIFF_MAX) return no_memory();
    const Bin bin = M::bin_for(size, alignment);
    void* slot = bin == kHugeBin ? nullptr : popped_any(bin, size);
    return slot != nullptr ? slot : crossed(bin, size, alignment, caller);
  }
  // Its `size` bytes read as zero.
  HZ_INLINE static void* zeroed(std::size_t alignment, std::size_t size, const void* caller) {
    if (size > PTRDIFF_MAX) return no_memory();
    const Bin bin = M::bin_for(size, alignment);
    bool zeroed = M::kSlotsAreZero;
    void* block = bin == kHugeBin ? nullptr : popped_any(bin, size);
    if (block == nullptr) block = allocate(bin, size, alignment, zeroed, caller, true);
    if (block != nullptr && !M::kSlotsAreZero && !zeroed && !(bin == kHugeBin && H::cleared(block)))
      size < kPage ? void(std::memset(block, 0, size)) : clear_pages(block, size);
    return block;
  }
  HZ_SLOW static void* crossed(Bin bin, std::size_t size, std::size_t alignment, const void* caller) {
    bool zeroed = false;
    return allocate(bin, size, alignment, zeroed, caller);
  }
  // Returns a huge block, with no way to a class's slots or to a thread's birth: the caller is deep in the
  // stack already. The caller also holds a lock, and adds a sample of the heap profile when it holds none.
  static void* huge(std::size_t size, std::size_t alignment, bool& zeroed, Sample* sample) {
    return twice(size, [&] { return huge_here(size, alignment, zeroed, sample, Unborn()); });
  }

  HZ_COLD static void* no_memory() {
    errno = ENOMEM;
    return nullptr;
  }

 private:
  // Reports a slot that a bin held although it was not free. It stays out of circulation.
  HZ_COLD static void* not_free(void* slot, Bin bin) {
    Guard::report(Guard::fault_of_free(slot, bin), slot, bin, Line::kName, Seen::kLater);
    return nullptr;
  }
  // Does not write to pages that read as zero: those of a slot that waited in a bin since its span was new
  // have no memory yet. Has a separate frame for small stacks: test/stack.
  HZ_SLOW static void clear_pages(void* block, std::size_t size) {
    const std::uintptr_t end = address(block) + size;
    for (std::uintptr_t at = address(block), next = 0; at != end; at = next) {
      next = (at & ~(kPage - 1)) + kPage;
      if (next > end) next = end;
      if (!Zeroes::are_words(at, next)) std::memset(pointer(at), 0, next - at);
    }
  }

  // `wants_zeroes`: the caller clears the block unless it is `zeroed`.
  static void* allocate(Bin bin, std::size_t size, std::size_t alignment, bool& zeroed, const void* caller,
                        bool wants_zeroes = false) {
    Sample sample = Sample::kNone;
    void* block = twice(size, [&]() -> void* {
      if (bin == kHugeBin) {
        void* const run = huge_here(size, alignment, zeroed, &sample);
        if (run == nullptr) bin = M::bin_without_run(size, alignment);
        if (bin == kHugeBin) return run;
      }
      return allocate_here(bin, size, alignment, zeroed, sample, wants_zeroes);
    });
    if (HZ_UNLIKELY(sample != Sample::kNone)) {
      Quotas<Line>::add(sample, block, bin, caller);
    } else if (bin != kHugeBin) {
      M::finish(block, bin, size);
    }
    return block;
  }
  template <class Here>
  HZ_INLINE static void* twice(std::size_t size, Here here) {
    void* block = here();
    // Other threads may cache what is missing.
    if (HZ_UNLIKELY(block == nullptr) && size < Source::bytes(S::global.source) &&
        Revocation<Line>::revoke_others())
      block = here();
    if (HZ_UNLIKELY(Source::owes_recall(S::global.source))) recall();
    Purger<Line>::start_if_worth();
    return HZ_LIKELY(block != nullptr) ? block : no_memory();
  }

  // Returns memory past the soft limit: what other threads cache, and free pages in spans. While this thread
  // forks, it holds the locks that this needs; the next slow path after the fork does it.
  HZ_COLD static void recall() {
    if (!S::tls().forking && Source::took_recall(S::global.source)) Heap<Line>::trim(0);
  }

  template <class... Way>
  HZ_SLOW static void* huge_here(std::size_t size, std::size_t alignment, bool& zeroed, Sample* sample,
                                 Way... way) {
    Entered here(way...);
    Thread& t = here.thread();
    if (!Start<Line>::is_open()) return nullptr;
    void* block = H::allocate(t, size, alignment, zeroed);
    if (block == nullptr) return nullptr;
    if (sample != nullptr) *sample = Quotas<Line>::of_run(t, block);
    Counts<Line>::allocated(t, kHugeBin, block);
    return block;
  }
  HZ_SLOW static void* allocate_here(Bin bin, std::size_t size, std::size_t alignment, bool& zeroed,
                                     Sample& sample, bool wants_zeroes) {
    Entered here;
    Thread& t = here.thread();
    if (!Start<Line>::is_open()) return nullptr;
    const bool sampled = HZ_UNLIKELY(Sampling::is_on());
    void* block = sampled ? Quotas<Line>::before(t, bin, size, alignment, zeroed, sample) : nullptr;
    if (block == nullptr) block = SpanSupply<Line>::popped(t, bin);
    if (block == nullptr) {
      block = B::refill(t, bin, zeroed, wants_zeroes);
      tell_policy(t, bin, size, alignment);
    }
    if (sampled && sample == Sample::kNone) Quotas<Line>::after(t, bin, block);
    if (block != nullptr) Counts<Line>::allocated(t, bin, block);
    return block;
  }
  // Tells the policy a size whose classes keep the alignment.
  static void tell_policy(Thread& t, Bin bin, std::size_t size, std::size_t alignment) {
    if (!Policy::notes_size(t.policy)) return;
    const std::size_t room = size + M::kMargin;
    const unsigned slots = Policy::watches() ? Front::count(t.front, bin) + 1 : 1;
    Policy::refilled(t.policy, bin, align_up(room == 0 ? 1 : room, alignment), slots);
  }
};

}  // namespace hz
