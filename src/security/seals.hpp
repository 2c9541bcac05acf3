// SPDX-License-Identifier: Apache-2.0
//
// The mitigation of line secure, for a guard with seals (box/guard/sealed.hpp): a block has the bytes that
// were asked for, a seal stands behind it, its slot reads as zero when it is handed out, and runs stand
// between inaccessible pages (security/fences.hpp). MitigationContract lists the calls; each costs a seal
// that is read or written.
#pragma once

#include "heap/state/block.hpp"
#include "heap/state/mitigation.hpp"
#include "security/exit_look.hpp"
#include "security/fences.hpp"

namespace hz {

template <class Line>
struct Seals {
  using Guard = typename Line::Guard;
  using Fence = Fences<Line>;

  static constexpr std::size_t kMargin = Guard::kSealBytes;
  static constexpr bool kExactSizes = true;
  static constexpr std::size_t kMostAtHand = Guard::kMostAtHand, kMostAlignedAtHand = kMostAtHand;
  static constexpr std::size_t kMostCleared = kMostAtHand - kMargin;
  HZ_INLINE static std::size_t room(std::size_t size, std::size_t alignment) {
    return align_up(size + kMargin, alignment);
  }
  HZ_INLINE static bool is_at_hand(std::size_t size) { return size - 1 < kMostAtHand - kMargin; }
  HZ_INLINE static Bin bin_for(std::size_t size) { return bin_for(size, 1); }
  // A block of no bytes is a run without access, as long as there are few.
  HZ_INLINE static Bin bin_for(std::size_t size, std::size_t alignment) {
    if (size == 0 ? Fence::may_be_empty() : size - 1 >= Guard::kMostSlot - kMargin) return kHugeBin;
    return bin_of_slot(size, alignment);
  }
  static Bin bin_without_run(std::size_t size, std::size_t alignment) {
    return size == 0 ? bin_of_slot(size, alignment) : kHugeBin;
  }
  HZ_INLINE static std::size_t bytes_of(const void* block, Bin bin) { return Guard::bytes(block, bin); }

  static constexpr bool kSlotsAreZero = true;
  static constexpr bool kKeepsFreeSlots = true;
  // Or the guard would clear the slot twice.
  static constexpr bool kUndoesFrees = false;
  HZ_INLINE static bool is_beyond_hand(Bin bin) { return bin > Guard::kLastAtHand; }
  HZ_INLINE static bool hand_out(void* slot, Bin bin, std::size_t size) {
    return Guard::on_alloc(slot, bin, size);
  }
  static bool hand_out_much(void* slot, Bin bin, std::size_t size) {
    return Guard::on_alloc_much(slot, bin, size);
  }
  static void finish(void* slot, Bin bin, std::size_t size) {
    if (HZ_LIKELY(slot != nullptr)) Guard::seal(slot, bin, size);
  }
  static constexpr void* cleared(void* slot, std::size_t) { return slot; }
  static void take_back_much(void* slot, Bin bin) { Guard::on_free_much(slot, bin); }
  // The guard compares the size when it reads the seal, which it does but once.
  template <class Of>
  HZ_INLINE static bool has_size(const Of& guard, Bin local, const void* block, std::size_t size) {
    return local <= kLastBin && HZ_LIKELY(Guard::may_free(guard, block, local, size));
  }
  template <class Of>
  static constexpr bool may_free_of_size(const Of&, void*, Bin) {
    return true;
  }
  HZ_INLINE static bool resize_in_slot(void* block, std::size_t size) {
    return resealed(block, size, [](std::size_t) { return true; });
  }

  HZ_INLINE static bool may_stay(std::size_t size, std::size_t old_size) {
    return size - 1 < old_size && size == old_size;
  }
  HZ_INLINE static bool stays_in_slot(void* block, std::size_t size) {
    return resealed(block, size, [size](std::size_t all) { return size >= all / 2; });
  }
  // Returns false for what is no block.
  static bool grows_in_page(void* block, std::size_t size) {
    if (static_cast<std::uint16_t>(address(block)) != 0 || classify<Line>(block).kind != Kind::kRun ||
        Huge<Line>::bin_of(block) != kHugeBin)
      return false;
    const std::size_t before = Guard::run_bytes(block);
    if (size <= before || before == 0 || size > align_up(before, os::page_bytes())) return false;
    if (!Guard::is_run_sealed_up_to(block, size)) return false;
    Guard::grow_run(block, size);
    return true;
  }
  static constexpr std::size_t kGrowsAsRun = SIZE_MAX;  // none
  // A block that shrinks keeps its place while it is a run and fills half of it. The rest of the run has no
  // pages and no access.
  static bool resizes_run(const void* block, std::size_t old_size, std::size_t size) {
    if (size > old_size) return old_size != 0;
    return bin_for(size) == kHugeBin && size >= (Fence::block_granules(address(block)) << kGranuleShift) / 2;
  }

  static void open() { Fence::open(); }
  static Run acquire_span(std::size_t granules, const Demand& demand) {
    return Fence::acquire_span(granules, demand);
  }
  static void prepare_span(const Run& run, Bin bin) { Guard::prepare(run.at, bin, run.zeroed); }
  static std::size_t release_span(std::uintptr_t at, std::size_t bytes) {
    return Fence::release_span(at), bytes;
  }
  static void release_waiting() { Fence::release_all(); }

  static Run acquire_run(std::size_t granules, std::size_t alignment, std::size_t size,
                         const Demand& demand) {
    return Fence::acquire(granules, alignment, size, demand);
  }
  static bool release_run(std::uintptr_t at) { return Fence::release(at), true; }
  static bool is_run_whole(const void* block) { return Guard::is_run_sealed(block); }
  static std::size_t run_bytes(const void* block) {
    const std::size_t bytes = Guard::run_bytes(block);
    return align_up(bytes == 0 ? 1 : bytes, kGranule);
  }
  static std::size_t usable_in_run(const void* block, Bin) { return Guard::run_bytes(block); }
  static std::size_t noted_in_run(const void* block, Bin, std::size_t) {
    return align_up(Guard::run_bytes(block), os::page_bytes());
  }
  static bool resize_run(void* block, std::size_t size, bool /*reuses*/) {
    if (size > Guard::run_bytes(block)) return Fence::grow(address(block), size);
    return Fence::shrink(address(block), size), true;
  }
  // Where addresses are limited, they are better spent on blocks.
  static std::size_t room_behind(std::size_t bytes) { return Fence::addresses_limited() ? bytes / 8 : bytes; }
  static bool open_runs(const void* block, std::size_t bytes, void* to, std::size_t kept) {
    return Fence::expose(block, bytes) && Fence::expose(to, kept);
  }
  static bool bequeath_run(const void* block, void* to) { return Fence::bequeath(block, to), true; }
  static bool open_granule(void* granule) { return os::commit(granule, kGranule); }
  // A sample is two mappings, of which a process has 65,530: a quarter of them.
  static constexpr std::size_t kMostSamples = 8192;

  static void look_at_exit() { ExitLook<Line>::run(); }

 private:
  // The block has `size` bytes now, where it lies, if `may` it stay in a slot of so many.
  HZ_INLINE static bool resealed(void* block, std::size_t size, auto may) {
    const Block<Line> found = classify<Line>(block);
    if (found.kind != Kind::kSlot || size > bin_size(found.bin) - kMargin || !may(bin_size(found.bin)))
      return false;
    Guard::seal_again(block, found.bin, size);
    return true;
  }
  static Bin bin_of_slot(std::size_t size, std::size_t alignment) {
    const Bin bin = aligned_bin(room(size, alignment), alignment);
    return bin == kHugeBin || bin_size(bin) > Guard::kMostSlot ? kHugeBin : bin;
  }
};

}  // namespace hz
