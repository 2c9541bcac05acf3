// SPDX-License-Identifier: Apache-2.0
//
// A guard against attackers: what slot_state.hpp proves, and that nobody wrote where no block is. Used by
// line secure; every malloc and every free of a slot go through it, at a cost that grows with the slot.
//
//   slot       [ the block | fence | seal ]     seal: the last 8 bytes (elsewhere: a canary); fence: what
//              lies between, up to 64 bytes of it (elsewhere: a redzone)
//   seal    == key of its place ^ bytes between block and seal, twice   of a free slot: of the last block
//              there, 0 if there was none; the seal of every slot of a span is there at any time
//   fence   == eight bytes that the process chose at random, again and again; none of them is zero, nor is
//              the first byte of a seal that follows its block: what is one byte too long often ends in zero
//   free    => every byte before the seal is zero, from the free to the next allocation
//   live    => so is every byte between fence and seal
//
// A free proves its own seal and fence, and the seal below the block: so what was written behind a block or
// before it is found there, and so is one byte. An allocation proves that its slot stayed as the free left
// it, as far as block and fence will reach (a slot of up to kMostAtHand bytes as a whole, in place): so a
// late write is found by who would get it, and not used by anybody. A look at all slots (`look`) finds the
// rest when the program ends. Of two threads that free a block one gets it, by compare-and-swap.
//
// Key, factor and fence are three draws of the process's generator (os/random.cpp): none tells of another.
// Whoever can read memory reads the fence behind any block, which is the same for all, and from several seals
// and their places may solve for key and factor. The child of a fork keeps all three, for live blocks carry
// them.
//
// A block in a run of its own has no seal; its size stands beside the arena, where no block can reach it, and
// its fence goes to the end of the page, where its run's fence of pages begins (security/fences.hpp).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "base/bytes.hpp"
#include "base/lanes.hpp"
#include "base/slot_bytes.hpp"
#include "base/zeroes.hpp"
#include "box/guard/report.hpp"
#include "os/os.hpp"

namespace hz {

template <class Line>
struct Sealed : SlotBytes<Line>, WithoutPhases {
  using Bytes = SlotBytes<Line>;

  static constexpr bool kMarks = false;
  static constexpr bool kProves = true;
  static constexpr bool kClaims = true;

  static constexpr std::size_t kSealBytes = sizeof(std::uint64_t);
  // A slot may be so large; what is larger has a run and fences of its own.
  static constexpr std::size_t kMostSlot = 32 * kKiB;
  // What a hot path clears and proves in place; of what is larger there are `much` functions.
  static constexpr std::size_t kMostAtHand = 512;
  static constexpr Bin kLastAtHand = scan_bin(kMostAtHand);
  static constexpr std::size_t kFence = 64;

  static constexpr std::size_t kTables[] = {Bytes::kDenseBytes, Bytes::kWideBytes, Bytes::kSparseBytes,
                                            sizeof(std::size_t)};
  static constexpr std::size_t kTableBytesPerGranule = Bytes::kTableBytesPerGranule + sizeof(std::size_t);

  enum State : std::uint8_t { kNothing = 0, kLive, kFree };

  struct PerThread {};

  static void open(std::uintptr_t base, std::uintptr_t table, std::size_t granules) {
    Bytes::open(base, table, granules);
    Zeroes::open();
    sizes.set(table + granules * Bytes::kTableBytesPerGranule -
              (base >> kGranuleShift) * sizeof(std::size_t));
    turn.set(os::random_word() | 1);
    key.set(os::random_word());
    fence.set(os::random_word() | 0x0101010101010101);
  }
  static void join(PerThread&) {}

  // --- a slot

  // False: it is not as its free left it, no byte of it. It is live when it has its seal, not before: who
  // looks at a live slot finds one (`look`).
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
    return is_seal(end) ? Fault::kWriteAfterFree : Fault::kOutOfBounds;
  }
  // After the first on_alloc.
  static void seal(void* slot, Bin bin, std::size_t size) {
    const std::uintptr_t end = end_of(slot, bin);
    put_seal(slot, end, key_of(end), size);
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
    write_fence(address(slot) + size, between < kFence ? between : kFence);
    store_seal(end, key_of(end) ^ between * kTwice);
    make_live(at(slot, bin));
  }
  // Of a live block: what was asked for. Never more than the slot has, whoever writes to the seal meanwhile.
  HZ_INLINE static std::size_t bytes(const void* slot, Bin bin) {
    const std::uintptr_t end = end_of(slot, bin), all = end - address(slot);
    const std::uint64_t between = static_cast<std::uint16_t>(seal_at(end) ^ key_of(end));
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
  // Nobody is a stranger where threads have one owner.
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
      store_seal(end, key_of(end));
    }
  }
  // All of a span: the first place where somebody wrote who should not have, in a live slot or in one that is
  // at rest. A slot is looked at twice: a thread that nobody counts may be making another size of its block,
  // which is not live meanwhile.
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
      if (load(at) != 0) return fault = Fault::kOutOfBounds, pointer(span + used - size);
    }
    return nullptr;
  }

  // --- a run

  static std::size_t run_bytes(const void* block) { return noted(block) / 2; }
  // Whether there is a fence of pages below it.
  static bool has_fence_below(const void* block) { return noted(block) % 2 != 0; }
  // A block of `size` bytes begins there, and its last page has been had.
  static void seal_run(void* block, std::size_t size, bool fence_below) {
    const std::uintptr_t end = address(block) + size;
    write_fence(end, align_up(end, os::page_bytes()) - end);
    note(block, size, fence_below);
  }
  // The same of a block that becomes larger and keeps its place, whose pages have been had: what it gains
  // reads as zero. A fence stands behind it at any moment.
  static void grow_run(void* block, std::size_t size) {
    const std::size_t before = run_bytes(block), with_fence = align_up(before, os::page_bytes());
    if (size <= with_fence) {
      note(block, size, has_fence_below(block));
    } else {
      seal_run(block, size, has_fence_below(block));
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as in make_live()
    const std::size_t gained = size < with_fence ? size : with_fence;
    clear_bytes(pointer(address(block) + before), gained - before);
  }
  // The same of a block that becomes smaller and keeps its place.
  static void seal_run_again(void* block, std::size_t size) {
    const std::size_t with_fence = align_up(run_bytes(block), os::page_bytes());
    clear_bytes(pointer(address(block) + size), with_fence - size);
    seal_run(block, size, has_fence_below(block));
  }
  static bool is_run_sealed(const void* block) {
    const std::uintptr_t end = address(block) + run_bytes(block);
    return is_fenced(end, align_up(end, os::page_bytes()));
  }
  // Returns true if the fence is whole up to `size`, and for kFence bytes at least. For a block that grows to
  // that size on its last page: the rest of the fence stays.
  static bool is_run_sealed_up_to(const void* block, std::size_t size) {
    const std::uintptr_t end = address(block) + run_bytes(block), to = align_up(end, os::page_bytes());
    const std::uintptr_t least = size < run_bytes(block) + kFence ? end + kFence : address(block) + size;
    return is_fenced(end, least < to ? least : to);
  }

  static void report(Fault fault, const void* at, Bin bin, const char* line, Seen seen = Seen::kNow) {
    FaultReport::send(fault, at, bin, line, seen, true);
  }

 private:
  using Bytes::at, Bytes::get, Bytes::set;
  static bool is_fenced(std::uintptr_t begin, std::uintptr_t end) {
    return end - begin < kFence ? has_fence(begin, end - begin) : has_long_fence(begin, end);
  }
  // Where bytes are read as words, whatever the program keeps there; a seal lies right for its own.
  struct __attribute__((packed, may_alias)) Word {
    std::uint64_t value;
  };
  using Seal = std::uint64_t __attribute__((may_alias));

  HZ_INLINE static std::uint64_t load(std::uintptr_t at) {
    return static_cast<const Word*>(pointer(at))->value;
  }
  HZ_INLINE static void store(std::uintptr_t at, std::uint64_t value) {
    static_cast<Word*>(pointer(at))->value = value;
  }
  // Neighbours of other threads look at it, so it is right at any moment.
  HZ_INLINE static std::uint64_t seal_at(std::uintptr_t at) {
    return __atomic_load_n(static_cast<const Seal*>(pointer(at)), __ATOMIC_RELAXED);
  }
  HZ_INLINE static void store_seal(std::uintptr_t at, std::uint64_t value) {
    __atomic_store_n(static_cast<Seal*>(pointer(at)), value, __ATOMIC_RELAXED);
  }
  static unsigned char& byte(std::uintptr_t at) { return *static_cast<unsigned char*>(pointer(at)); }

  HZ_INLINE static bool is_start(const void* slot, Bin bin) {
    return is_slot_start(bin, static_cast<std::uint16_t>(address(slot)));
  }
  HZ_INLINE static std::uintptr_t end_of(const void* slot, Bin bin) {
    return address(slot) + bin_size(bin) - kSealBytes;
  }
  // One seal and its place do not tell another one: both factors are secret. Two or more do.
  HZ_INLINE static std::uint64_t key_of(std::uintptr_t end) { return (end ^ key.get()) * turn.get() | 1; }

  // Of any slot of a span.
  HZ_INLINE static bool is_seal(std::uintptr_t end) { return is_twice(seal_at(end) ^ key_of(end)); }
  HZ_INLINE static bool is_twice(std::uint64_t word) {
    return word == std::uint64_t{static_cast<std::uint16_t>(word)} * kTwice;
  }
  HZ_INLINE static bool on_alloc(void* slot, Bin bin, std::size_t size, std::uintptr_t end, auto is_clear) {
    std::uint8_t* const state = Bytes::at(slot, bin);
    const std::uint64_t key_here = key_of(end);
    if (HZ_UNLIKELY(!is_twice(seal_at(end) ^ key_here)) ||
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
    put_fence(end - between, end, end - address(slot));
    store_seal(end, key_here ^ between * kTwice);
  }

  HZ_INLINE static bool is_sealed(const void* slot, Bin bin) {
    return is_sealed(slot, bin, [](std::size_t) { return true; });
  }
  // And the block's bytes are what they should be.
  HZ_INLINE static bool is_sealed(const void* slot, Bin bin, auto is_size) {
    const std::uintptr_t end = end_of(slot, bin);
    const std::uint64_t word = seal_at(end) ^ key_of(end), between = static_cast<std::uint16_t>(word);
    return HZ_LIKELY(is_twice(word)) && HZ_LIKELY(between <= end - address(slot)) &&
           is_size(end - address(slot) - between) &&
           HZ_LIKELY(is_fenced(end - between, end, end - address(slot))) && HZ_LIKELY(is_sealed_below(slot));
  }
  // The same of the block itself, no byte of which is read: its threads may be writing to it.
  static bool is_sealed_beside_others(const void* slot, Bin bin) {
    const std::uintptr_t end = end_of(slot, bin);
    const std::uint64_t word = seal_at(end) ^ key_of(end), between = static_cast<std::uint16_t>(word);
    return is_twice(word) && between <= end - address(slot) &&
           has_fence(end - between, between < kFence ? between : kFence);
  }
  // Whether a byte below a block was written: that of a span's first slot belongs to whoever is there.
  HZ_INLINE static bool is_sealed_below(const void* slot) {
    if (HZ_UNLIKELY(address(slot) % kGranule == 0)) return true;
    return is_seal(address(slot) - kSealBytes);
  }
  // A number of 16 bits times this stands there twice: of a word that is changed in part one differs.
  static constexpr std::uint64_t kTwice = 0x10001;
  static_assert(kMostSlot < (std::size_t{1} << 16));

  // Of a slot that nobody has yet, with `room` bytes before the seal: of those from where the block will end
  // those that the fence takes. By lanes, of which what lies before the fence is left out: one of them in a
  // slot of up to 128 bytes, whose class is next to no other by more than that, four in larger ones. So how
  // many bytes there are is nothing that a processor has to guess. Where that does not fit, by words.
  HZ_INLINE static void put_fence(std::uintptr_t begin, std::uintptr_t end, std::size_t room) {
    const auto put = [](LaneAt& lane, Lane word, Lane mask) { lane.value ^= (lane.value ^ word) & mask; };
    if (is_in_one_lane(begin, end, room)) return for_lanes<1>(begin, end, put);
    if (HZ_LIKELY(room >= kFence)) return for_lanes<kFence / sizeof(Lane)>(begin, end, put);
    if (end - begin >= sizeof(Word)) {
      for_words(begin, end, [](std::uintptr_t at, std::uint64_t word) { return store(at, word), true; });
    } else if (begin != end) {
      const std::uint64_t theirs = kAll >> (end - begin) * 8;
      store(end - sizeof(Word), (load(end - sizeof(Word)) & theirs) | (fence.get() & ~theirs));
    }
  }
  HZ_INLINE static bool is_fenced(std::uintptr_t begin, std::uintptr_t end, std::size_t room) {
    Lane differs{};
    const auto look = [&differs](const LaneAt& lane, Lane word, Lane mask) {
      differs |= (lane.value ^ word) & mask;
    };
    if (is_in_one_lane(begin, end, room)) {
      for_lanes<1>(begin, end, look);
    } else if (HZ_LIKELY(room >= kFence)) {
      for_lanes<kFence / sizeof(Lane)>(begin, end, look);
    } else if (end - begin >= sizeof(Word)) {
      return for_words(begin, end, [](std::uintptr_t at, std::uint64_t word) { return load(at) == word; });
    } else {
      return begin == end || (load(end - sizeof(Word)) ^ fence.get()) >> (8 - (end - begin)) * 8 == 0;
    }
    return (differs[0] | differs[1]) == 0;
  }
  HZ_INLINE static bool is_in_one_lane(std::uintptr_t begin, std::uintptr_t end, std::size_t room) {
    constexpr std::size_t kMost = 128 - kSealBytes;
    return HZ_LIKELY(room - sizeof(Lane) <= kMost - sizeof(Lane)) && HZ_LIKELY(end - begin <= sizeof(Lane));
  }
  // What stands in a fence from there on: its bytes go by addresses.
  HZ_INLINE static std::uint64_t fence_at(std::uintptr_t at) {
    return std::rotr(fence.get(), static_cast<int>(at % sizeof(Word) * 8));
  }
  // These bytes and no other, which another thread may be writing to.
  static bool has_fence(std::uintptr_t begin, std::size_t bytes) {
    const std::uintptr_t end = begin + bytes;
    if (bytes >= sizeof(Word))
      return for_words(begin, end, [](std::uintptr_t at, std::uint64_t word) { return load(at) == word; });
    for (std::uintptr_t at = begin; at < end; ++at)
      if (byte(at) != static_cast<unsigned char>(fence_at(at))) return false;
    return true;
  }
  // Returns true if the whole range holds the fence. Requires: at least kFence bytes. Reads no other byte.
  static bool has_long_fence(std::uintptr_t begin, std::uintptr_t end) {
    return Zeroes::is_wide() ? has_wide_fence(begin, end) : has_fence_in_lanes(begin, end);
  }
  HZ_WIDE static bool has_wide_fence(std::uintptr_t begin, std::uintptr_t end) {
    return has_fence_in_lanes(begin, end);
  }
  // Compares kFence bytes a step; the last step may repeat bytes of the one before it.
  HZ_INLINE static bool has_fence_in_lanes(std::uintptr_t begin, std::uintptr_t end) {
    const std::uint64_t first = fence_at(begin), last = fence_at(end);
    const WideLane word = {first, first, first, first}, last_word = {last, last, last, last};
    const WideLaneAt* lane = wide_lanes_at(end - kFence);
    WideLane differs = (lane[0].value ^ last_word) | (lane[1].value ^ last_word);
    for (; begin + kFence < end; begin += kFence) {
      lane = wide_lanes_at(begin);
      differs |= (lane[0].value ^ word) | (lane[1].value ^ word);
    }
    return (differs[0] | differs[1] | differs[2] | differs[3]) == 0;
  }
  static void write_fence(std::uintptr_t begin, std::size_t bytes) {
    const std::uintptr_t end = begin + bytes;
    std::uintptr_t at = begin;
    for (const std::uint64_t word = fence_at(at); at + sizeof(Word) <= end; at += sizeof(Word))
      store(at, word);
    for (; at < end; ++at) byte(at) = static_cast<unsigned char>(fence_at(at));
  }
  // Of which one half is before the fence, and one in it.
  static constexpr auto kMasks = [] {
    std::array<unsigned char, 2 * kFence> masks{};
    for (std::size_t i = kFence; i < masks.size(); ++i) masks[i] = 0xff;
    return masks;
  }();
  // Lanes from the fence on, or the last ones before the seal; one lane is only asked for what fits into the
  // last.
  template <std::size_t kLanes>
  HZ_INLINE static void for_lanes(std::uintptr_t begin, std::uintptr_t end, auto visit) {
    constexpr std::size_t kBytes = kLanes * sizeof(Lane);
    const std::uintptr_t at = kBytes == kFence && begin < end - kBytes ? begin : end - kBytes;
    const std::uint64_t word = kBytes == kFence ? fence_at(at) : fence.get();
    const unsigned char* const masks = &kMasks[kFence - (begin - at)];
    for (std::size_t i = 0; i < kBytes; i += sizeof(Lane))
      visit(*lanes_at(at + i), Lane{word, word}, lanes_at(address(masks) + i)->value);
  }
  // Word by word, the last two of which may share bytes, as long as `visit` says so.
  HZ_INLINE static bool for_words(std::uintptr_t begin, std::uintptr_t end, auto visit) {
    const std::uint64_t word = fence_at(begin);
    for (std::uintptr_t at = begin; at + sizeof(Word) < end; at += sizeof(Word))
      if (HZ_UNLIKELY(!visit(at, word))) return false;
    return visit(end - sizeof(Word), fence_at(end));
  }
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  // A slot is whole lanes; the second half of the last one is the seal.
  static_assert(kMinAlign % sizeof(Lane) == 0 && kSealBytes * 2 == sizeof(Lane));

  static bool is_untouched(const void* slot, Bin bin) {
    const std::uintptr_t end = end_of(slot, bin);
    return HZ_LIKELY(is_seal(end)) && HZ_LIKELY(Zeroes::are_much(address(slot), end));
  }

  // The compiler's order alone, as in make_live(): a handler that ends the program looks at runs, too.
  static void note(const void* block, std::size_t size, bool fence_below) {
    std::atomic_signal_fence(std::memory_order_release);
    __atomic_store_n(size_of(block), size * 2 + (fence_below ? 1 : 0), __ATOMIC_RELAXED);
  }
  static std::size_t noted(const void* block) { return __atomic_load_n(size_of(block), __ATOMIC_RELAXED); }
  // Twice the size of the huge block there, and 1.
  static std::size_t* size_of(const void* block) {
    return static_cast<std::size_t*>(
        pointer(sizes.get() + (address(block) >> kGranuleShift) * sizeof(std::size_t)));
  }

  static inline constinit OnceWord<std::uintptr_t> sizes{0};  // as if the table began at address 0
  static inline constinit OnceWord<std::uint64_t> key{0}, turn{0}, fence{0};
};

}  // namespace hz
