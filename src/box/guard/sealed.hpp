// SPDX-License-Identifier: Apache-2.0
//
// A guard against attackers: proves what slot_state.hpp proves, and that no byte outside of a block was
// written. Used by: line secure, at every malloc and free of a slot. Cost: grows with the slot.
//
//   slot    [ the block | redzone | zeroes | canary ]    canary.hpp, redzone.hpp
//   every slot of a span has its canary at any time: other threads check it from the slot above
//   free => every byte before the canary is zero, from the free to the next allocation
//
// A free proves its own canary and redzone, and the canary below the block. So it finds what was written
// behind a block or before it, down to one byte. An allocation proves that its slot stayed as the free left
// it, as far as block and redzone will reach (a slot of up to kMostAtHand bytes as a whole, in place). So a
// late write is found before another block has the slot. A check of all slots (`look`) finds the rest when
// the program ends. Of two threads that free a block one gets it, by compare-and-swap.
//
// The redzone is the same behind any block, so a thread that can read memory can write it. The child of a
// fork keeps the random words of both, for live blocks carry them. Blocks in runs: sealed_runs.hpp.
#pragma once

#include <atomic>
#include <cstring>

#include "base/bytes.hpp"
#include "base/lanes.hpp"
#include "base/slot_bytes.hpp"
#include "base/zeroes.hpp"
#include "box/guard/canary.hpp"
#include "box/guard/redzone.hpp"
#include "box/guard/report.hpp"
#include "box/guard/sealed_runs.hpp"

namespace hz {

template <class Line>
struct Sealed : SlotBytes<Line>, SealedRuns, WithoutPhases {
  using Bytes = SlotBytes<Line>;

  static constexpr bool kMarks = false;
  static constexpr bool kProves = true;
  static constexpr bool kClaims = true;

  static constexpr std::size_t kSealBytes = Canary::kBytes;
  // A slot may be so large; larger blocks have their own run and guard pages.
  static constexpr std::size_t kMostSlot = 32 * kKiB;
  // What a hot path clears and proves in place; of what is larger there are `much` functions.
  static constexpr std::size_t kMostAtHand = 512;
  static constexpr Bin kLastAtHand = scan_bin(kMostAtHand);
  static constexpr std::size_t kFence = Redzone::kMost;

  static constexpr std::size_t kTables[] = {Bytes::kDenseBytes, Bytes::kWideBytes, Bytes::kSparseBytes,
                                            SealedRuns::kBytesPerGranule};
  static constexpr std::size_t kTableBytesPerGranule =
      Bytes::kTableBytesPerGranule + SealedRuns::kBytesPerGranule;

  enum State : std::uint8_t { kNothing = 0, kLive, kFree };

  struct PerThread {};

  static void open(std::uintptr_t base, std::uintptr_t table, std::size_t granules) {
    Bytes::open(base, table, granules);
    Zeroes::open();
    SealedRuns::open(base, table + granules * Bytes::kTableBytesPerGranule);
    Canary::open();
    Redzone::open();
  }
  static void join(PerThread&) {}

  // --- a slot

  // Returns false if any byte is not as its free left it. The slot becomes live after it has its seal: `look`
  // finds one in each live slot.
  static bool on_alloc(void* slot, Bin bin) {
    return HZ_LIKELY(get(slot, bin) != kLive) && HZ_LIKELY(is_untouched(slot, bin));
  }
  // The same, and the block has `size` bytes: there is room for the seal. Of a slot at hand.
  HZ_INLINE static bool on_alloc(void* slot, Bin bin, std::size_t size) {
    const std::uintptr_t end = end_of(slot, bin);
    return on_alloc(slot, bin, size, end, [slot, end] { return Zeroes::are(address(slot), end); });
  }
  // Of a larger one, as far as the block and its fence reach.
  static bool on_alloc_much(void* slot, Bin bin, std::size_t size) {
    const std::uintptr_t end = end_of(slot, bin);
    return on_alloc(slot, bin, size, end,
                    [=] { return Zeroes::are_much(address(slot), reach(slot, end, size)); });
  }
  // Of a slot that on_alloc refused.
  static Fault fault_of_free(const void* slot, Bin bin) {
    if (get(slot, bin) == kLive) return Fault::kDoubleFree;
    const std::uintptr_t end = end_of(slot, bin);
    return Canary::is_valid(end) ? Fault::kWriteAfterFree : Fault::kOutOfBounds;
  }
  // After the first on_alloc.
  static void seal(void* slot, Bin bin, std::size_t size) {
    const std::uintptr_t end = end_of(slot, bin);
    put_seal(slot, end, Canary::key_of(end), size);
    make_live(at(slot, bin));
  }
  // The same of a block that keeps its place: what it had and lost is fenced, what it gains reads as zero.
  static void seal_again(void* slot, Bin bin, std::size_t size) {
    set(slot, bin, kFree);                                // and at rest nowhere, until it is whole again
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as in make_live()
    const std::size_t before = bytes(slot, bin), kept = size < before ? size : before;
    const std::uintptr_t end = end_of(slot, bin);
    std::uintptr_t to = reach(slot, end, before);
    if (address(slot) + size > to) to = address(slot) + size;
    std::memset(pointer(address(slot) + kept), 0, to - address(slot) - kept);  // no lock is held
    // No lanes, which would write bytes of the block, too: another thread may do so meanwhile.
    const std::size_t between = end - address(slot) - size;
    Redzone::write(address(slot) + size, between < kFence ? between : kFence);
    Canary::write(end, Canary::key_of(end), between);
    make_live(at(slot, bin));
  }
  // Returns the requested size of a live block. It is never more than the slot has, even if the program
  // writes to the seal meanwhile.
  HZ_INLINE static std::size_t bytes(const void* slot, Bin bin) {
    const std::uintptr_t end = end_of(slot, bin), all = end - address(slot);
    const std::uint64_t between = Canary::distance_in(Canary::at(end) ^ Canary::key_of(end));
    return HZ_LIKELY(between <= all) ? all - between : 0;
  }

  // The slot is this caller's from here on.
  HZ_INLINE static bool may_free(const PerThread&, const void* slot, Bin bin) {
    return HZ_LIKELY(is_start(slot, bin)) && HZ_LIKELY(is_sealed(slot, bin)) &&
           HZ_LIKELY(Bytes::change(slot, bin, kLive, kFree));
  }
  // The same of a block of `size` bytes.
  HZ_INLINE static bool may_free(const PerThread&, const void* slot, Bin bin, std::size_t size) {
    return HZ_LIKELY(is_start(slot, bin)) &&
           HZ_LIKELY(is_sealed(slot, bin, [size](std::size_t bytes) { return HZ_LIKELY(bytes == size); })) &&
           HZ_LIKELY(Bytes::change(slot, bin, kLive, kFree));
  }
  HZ_INLINE static void on_free(const PerThread&, void* slot, Bin bin) {
    Zeroes::write(address(slot), end_of(slot, bin));
  }
  // Of a slot that is not at hand.
  static void on_free_much(void* slot, Bin bin) {
    const std::uintptr_t end = end_of(slot, bin);
    Zeroes::write_much(address(slot), reach(slot, end, bytes(slot, bin)));
  }
  // No thread is remote: all threads have one owner.
  HZ_INLINE static void* claim(const PerThread& thread, void* slot, Bin bin) {
    if (!may_free(thread, slot, bin)) return nullptr;
    bin <= kLastAtHand ? on_free(thread, slot, bin) : on_free_much(slot, bin);
    return slot;
  }
  static bool arrive(void* slot, Bin bin) { return get(slot, bin) == kFree; }

  HZ_INLINE static Fault diagnose(const PerThread&, const void* slot, Bin bin) {
    if (HZ_UNLIKELY(!is_start(slot, bin))) return Fault::kInterior;
    const std::uint8_t state = get(slot, bin);
    if (HZ_LIKELY(state == kLive))
      return is_sealed_beside_others(slot, bin) && is_sealed_below(slot) ? Fault::kNone : Fault::kOutOfBounds;
    return state == kNothing ? Fault::kNotAllocated : Fault::kDoubleFree;
  }
  static bool intact(const PerThread&, const void*) { return true; }

  // --- a span

  // Before the first of its slots is handed out: each gets its seal, and all that was there is gone.
  static void prepare(std::uintptr_t span, Bin bin, bool zeroed) {
    if (!zeroed) clear_bytes(pointer(span), kGranule);
    for (unsigned i = 0; i < bin_slots(bin); ++i) {
      const std::uintptr_t end = span + (i + 1) * bin_size(bin) - kSealBytes;
      Canary::write(end, Canary::key_of(end), 0);
    }
  }
  // Checks all of a span: returns the first place with a wrong write, in a live slot or in an idle one. It
  // reads a slot twice: a thread that is not counted may be resizing its block, which is not live meanwhile.
  static const void* look(std::uintptr_t span, Bin bin, Fault& fault, auto is_at_rest) {
    const std::size_t size = bin_size(bin), used = bin_slots(bin) * size;
    for (std::uintptr_t at = span; at < span + used; at += size) {
      const void* const slot = pointer(at);
      bool is_right = false;
      for (int times = 0; times < 2 && !is_right; ++times)
        is_right = get(slot, bin) == kLive ? is_sealed_beside_others(slot, bin) : is_untouched(slot, bin);
      if (is_right || (get(slot, bin) != kLive && !is_at_rest(slot))) continue;
      fault = get(slot, bin) == kLive ? Fault::kOutOfBounds : fault_of_free(slot, bin);
      return slot;
    }
    for (std::uintptr_t at = span + used; at < span + kGranule; at += sizeof(std::uint64_t)) {
      if (*static_cast<const Canary::Word*>(pointer(at)) != 0)
        return fault = Fault::kOutOfBounds, pointer(span + used - size);
    }
    return nullptr;
  }

  static void report(Fault fault, const void* at, Bin bin, const char* line, Seen seen = Seen::kNow) {
    FaultReport::send(fault, at, bin, line, seen, true);
  }

 private:
  using Bytes::at, Bytes::get, Bytes::set;
  HZ_INLINE static bool is_start(const void* slot, Bin bin) {
    return is_slot_start(bin, static_cast<std::uint16_t>(address(slot)));
  }
  HZ_INLINE static std::uintptr_t end_of(const void* slot, Bin bin) {
    return address(slot) + bin_size(bin) - kSealBytes;
  }
  HZ_INLINE static bool on_alloc(void* slot, Bin bin, std::size_t size, std::uintptr_t end, auto is_clear) {
    std::uint8_t* const state = Bytes::at(slot, bin);
    const std::uint64_t key_here = Canary::key_of(end);
    if (HZ_UNLIKELY(!Canary::is_distance(Canary::at(end) ^ key_here)) ||
        HZ_UNLIKELY(__atomic_load_n(state, __ATOMIC_RELAXED) == kLive) || HZ_UNLIKELY(!is_clear()))
      return false;
    put_seal(slot, end, key_here, size);
    make_live(state);
    return true;
  }
  // Relaxed, and the compiler's order alone: a handler that ends the program looks at this thread's slots.
  HZ_INLINE static void make_live(std::uint8_t* state) {
    std::atomic_signal_fence(std::memory_order_release);
    __atomic_store_n(state, kLive, __ATOMIC_RELAXED);
  }
  // Where a block of `size` bytes ends with its fence, rounded up to the middle of a lane.
  static std::uintptr_t reach(const void* slot, std::uintptr_t end, std::size_t size) {
    const std::uintptr_t fenced =
        align_up(address(slot) + size + kFence - kSealBytes, sizeof(Lane)) + kSealBytes;
    return fenced < end ? fenced : end;
  }
  HZ_INLINE static void put_seal(void* slot, std::uintptr_t end, std::uint64_t key_here, std::size_t size) {
    const std::size_t between = end - address(slot) - size;
    Redzone::put(end - between, end, end - address(slot));
    Canary::write(end, key_here, between);
  }

  HZ_INLINE static bool is_sealed(const void* slot, Bin bin) {
    return is_sealed(slot, bin, [](std::size_t) { return true; });
  }
  // And the block's bytes are what they should be.
  HZ_INLINE static bool is_sealed(const void* slot, Bin bin, auto is_size) {
    const std::uintptr_t end = end_of(slot, bin);
    const std::uint64_t word = Canary::at(end) ^ Canary::key_of(end), between = Canary::distance_in(word);
    return HZ_LIKELY(Canary::is_distance(word)) && HZ_LIKELY(between <= end - address(slot)) &&
           is_size(end - address(slot) - between) &&
           HZ_LIKELY(Redzone::is_whole(end - between, end, end - address(slot))) &&
           HZ_LIKELY(is_sealed_below(slot));
  }
  // The same of the block itself, no byte of which is read: its threads may be writing to it.
  static bool is_sealed_beside_others(const void* slot, Bin bin) {
    const std::uintptr_t end = end_of(slot, bin);
    const std::uint64_t word = Canary::at(end) ^ Canary::key_of(end), between = Canary::distance_in(word);
    return Canary::is_distance(word) && between <= end - address(slot) &&
           Redzone::has(end - between, between < kFence ? between : kFence);
  }
  // Returns false if a byte below a block was written. The byte below a span's first slot belongs to another
  // span.
  HZ_INLINE static bool is_sealed_below(const void* slot) {
    if (HZ_UNLIKELY(address(slot) % kGranule == 0)) return true;
    return Canary::is_valid(address(slot) - kSealBytes);
  }
  static_assert(kMostSlot < (std::size_t{1} << 16), "a distance has 16 bits");

  // A slot is whole lanes; the second half of the last one is the seal.
  static_assert(kMinAlign % sizeof(Lane) == 0 && kSealBytes * 2 == sizeof(Lane));

  static bool is_untouched(const void* slot, Bin bin) {
    const std::uintptr_t end = end_of(slot, bin);
    return HZ_LIKELY(Canary::is_valid(end)) && HZ_LIKELY(Zeroes::are_much(address(slot), end));
  }
};

}  // namespace hz
