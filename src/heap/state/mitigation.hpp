// SPDX-License-Identifier: Apache-2.0
//
// Mitigation: what a line does against attackers beyond its boxes. It decides how much room a block has, what
// a slot looks like when it is handed out, and what lies around a run. Each line names one: `Bare` here,
// which leaves blocks all of their slots, or `Seals` (security/seals.hpp). Called by all floors of the heap.
// Bare costs nothing: its answers are constants.
#pragma once

#include <concepts>
#include <cstring>

#include "base/bytes.hpp"
#include "box/source/contract.hpp"
#include "heap/state/state.hpp"

namespace hz {

template <class M>
concept MitigationContract = requires(void* slot, const void* block, Bin bin, std::size_t bytes,
                                      std::size_t alignment, std::uintptr_t at, Run run, Demand demand) {
  // --- sizes
  // Bytes behind a block that its slot has to have
  { M::kMargin } -> std::convertible_to<std::size_t>;
  // A block has exactly the bytes that were asked for, and may have none; else it has all of its slot
  { M::kExactSizes } -> std::convertible_to<bool>;
  // The hot paths find slots for so many bytes, with an alignment, and with calloc
  { M::kMostAtHand } -> std::convertible_to<std::size_t>;
  { M::kMostAlignedAtHand } -> std::convertible_to<std::size_t>;
  { M::kMostCleared } -> std::convertible_to<std::size_t>;
  { M::room(bytes, alignment) } -> std::same_as<std::size_t>;  // hot; bytes that its slot needs
  { M::is_at_hand(bytes) } -> std::same_as<bool>;  // hot; with an alignment, its room is no overflow
  { M::bin_for(bytes) } -> std::same_as<Bin>;      // kHugeBin: a run
  { M::bin_for(bytes, alignment) } -> std::same_as<Bin>;
  { M::bin_without_run(bytes, alignment) } -> std::same_as<Bin>;  // where no run is to be had; kHugeBin: none
  { M::bytes_of(block, bin) } -> std::same_as<std::size_t>;       // hot; of a live block in a slot

  // --- slots
  { M::kSlotsAreZero } -> std::convertible_to<bool>;  // when they are handed out
  // Free slots have bytes that must stay: their pages do not go from between live blocks
  { M::kKeepsFreeSlots } -> std::convertible_to<bool>;
  // A free that finds the bin full is undone, and the slow path does it again
  { M::kUndoesFrees } -> std::convertible_to<bool>;
  { M::is_beyond_hand(bin) } -> std::same_as<bool>;         // hot; such slots need the `much` functions
  { M::hand_out(slot, bin, bytes) } -> std::same_as<bool>;  // hot; from a bin; false: it was not free
  { M::hand_out_much(slot, bin, bytes) } -> std::same_as<bool>;
  { M::finish(slot, bin, bytes) } -> std::same_as<void>;  // from the boundary, which has handed it out
  { M::cleared(slot, bytes) } -> std::same_as<void*>;     // hot; for calloc
  { M::take_back_much(slot, bin) } -> std::same_as<void>;
  // The block has `bytes` now, where it lies. False: it cannot
  { M::resize_in_slot(slot, bytes) } -> std::same_as<bool>;

  // --- realloc
  { M::may_stay(bytes, bytes) } -> std::same_as<bool>;  // hot; new and old size: the block stays as it is
  // Realloc may keep it in its slot, or on the last page of its run; it does so where the answer is true
  { M::stays_in_slot(slot, bytes) } -> std::same_as<bool>;
  { M::grows_in_page(slot, bytes) } -> std::same_as<bool>;
  // Old and new size of a run: it is resized, and not copied
  { M::resizes_run(block, bytes, bytes) } -> std::same_as<bool>;
  // A block of so many bytes that grows gets a run while no other thread could take what lies behind it
  { M::kGrowsAsRun } -> std::convertible_to<std::size_t>;

  // --- spans
  { M::open() } -> std::same_as<void>;                      // with the heap
  { M::acquire_span(bytes, demand) } -> std::same_as<Run>;  // of so many granules
  { M::prepare_span(run, bin) } -> std::same_as<void>;
  { M::release_span(at, bytes) } -> std::same_as<std::size_t>;  // returns the bytes of it that were purged
  { M::release_waiting() } -> std::same_as<void>;               // when memory cannot be had

  // --- runs
  { M::acquire_run(bytes, bytes, bytes, demand) } -> std::same_as<Run>;  // granules, alignment in these, size
  { M::release_run(at) } -> std::same_as<bool>;                          // false: the heap releases it
  { M::is_run_whole(block) } -> std::same_as<bool>;                      // nothing was written behind it
  { M::run_bytes(block) } -> std::same_as<std::size_t>;                  // whole granules
  { M::usable_in_run(block, bin) } -> std::same_as<std::size_t>;         // `bin`: its class if it is a sample
  { M::noted_in_run(block, bin, bytes) } -> std::same_as<std::size_t>;   // the same without reading it
  // Where it lies; false: it cannot, or reusing free memory is asked for and possible elsewhere
  { M::resize_run(slot, bytes, true) } -> std::same_as<bool>;
  { M::room_behind(bytes) } -> std::same_as<std::size_t>;             // for a run that grows often
  { M::open_runs(block, bytes, slot, bytes) } -> std::same_as<bool>;  // whole granules, to be moved
  { M::bequeath_run(block, slot) } -> std::same_as<bool>;  // moved to there; false: the heap releases it
  { M::open_granule(slot) } -> std::same_as<bool>;
  { M::kMostSamples } -> std::convertible_to<std::size_t>;  // runs of samples at a time

  { M::look_at_exit() } -> std::same_as<void>;
};

// The mitigation of a line. A line that is derived from another one has its own, because their states differ.
template <class Line>
using MitigationOf = typename Line::template Mitigation<Line>;

template <class Line>
struct Bare {
  using S = State<Line>;
  using Source = typename Line::Source;
  using Guard = typename Line::Guard;

  static constexpr std::size_t kMargin = 0;
  static constexpr bool kExactSizes = false;
  static constexpr std::size_t kMostAtHand = kTableMax, kMostAlignedAtHand = kMediumMax;
  static constexpr std::size_t kMostCleared = kPage - 1;  // what is larger is cleared page by page
  static constexpr std::size_t room(std::size_t size, std::size_t /*alignment*/) { return size; }
  static constexpr bool is_at_hand(std::size_t) { return true; }
  HZ_INLINE static Bin bin_for(std::size_t size) {
    return size == 0 ? 1 : size <= kLargeMax ? bin_for_size(size) : kHugeBin;
  }
  HZ_INLINE static Bin bin_for(std::size_t size, std::size_t alignment) {
    return aligned_bin(size == 0 ? 1 : size, alignment);
  }
  static constexpr Bin bin_without_run(std::size_t, std::size_t /*alignment*/) { return kHugeBin; }
  HZ_INLINE static std::size_t bytes_of(const void*, Bin bin) { return bin_size(bin); }

  static constexpr bool kSlotsAreZero = false;
  static constexpr bool kKeepsFreeSlots = false;
  static constexpr bool kUndoesFrees = true;
  static constexpr bool is_beyond_hand(Bin) { return false; }
  HZ_INLINE static bool hand_out(void* slot, Bin bin, std::size_t) { return Guard::on_alloc(slot, bin); }
  static bool hand_out_much(void* slot, Bin bin, std::size_t) { return Guard::on_alloc(slot, bin); }
  static constexpr void finish(void*, Bin, std::size_t) {}
  HZ_INLINE static void* cleared(void* slot, std::size_t bytes) { return std::memset(slot, 0, bytes); }
  static constexpr void take_back_much(void*, Bin) {}
  static constexpr bool resize_in_slot(void*, std::size_t) { return false; }
  // `local`: what local_bin says of a slot of this thread's. A compare of bytes takes its operand from
  // memory.
  template <class Of>
  HZ_INLINE static bool has_size(const Of&, typename Line::Route::Tag local, const void*, std::size_t size) {
    const Bin bin = classes.of((size - 1) / kMinAlign);
    if constexpr (Line::Route::kOwned) return local == bin;
    return static_cast<std::uint8_t>(local) == static_cast<std::uint8_t>(bin);
  }
  template <class Of>
  HZ_INLINE static bool may_free_of_size(const Of& guard, void* block, Bin bin) {
    return Guard::may_free(guard, block, bin);
  }

  HZ_INLINE static bool may_stay(std::size_t size, std::size_t old_size) {
    return size - 1 < old_size && size >= old_size / 2;
  }
  static constexpr bool stays_in_slot(void*, std::size_t) { return false; }
  static constexpr bool grows_in_page(void*, std::size_t) { return false; }
  static constexpr std::size_t kGrowsAsRun = 2 * kGranule;
  static bool resizes_run(const void*, std::size_t old_size, std::size_t size) {
    return old_size > kGrowsAsRun && size > kGrowsAsRun;
  }

  static constexpr void open() {}
  static Run acquire_span(std::size_t granules, const Demand& demand) {
    return Source::acquire(S::global.source, granules, 1, demand);
  }
  static constexpr void prepare_span(const Run&, Bin) {}
  static std::size_t release_span(std::uintptr_t at, std::size_t /*bytes*/) {
    return Source::release(S::global.source, at, false), 0;
  }
  static constexpr void release_waiting() {}

  static Run acquire_run(std::size_t granules, std::size_t alignment, std::size_t /*size*/,
                         const Demand& demand) {
    return Source::acquire(S::global.source, granules, alignment, demand);
  }
  static constexpr bool release_run(std::uintptr_t) { return false; }
  static constexpr bool is_run_whole(const void*) { return true; }
  static std::size_t run_bytes(const void* block) {
    return Source::granules(S::global.source, address(block)) << kGranuleShift;
  }
  static std::size_t usable_in_run(const void* block, Bin bin) {
    return bin != kHugeBin ? bin_size(bin) : run_bytes(block);
  }
  static std::size_t noted_in_run(const void*, Bin bin, std::size_t bytes) {
    return bin != kHugeBin ? bin_size(bin) : bytes;
  }
  // A run in pieces is mapped anew by the source, which may refuse: then the block keeps its bytes.
  static bool resize_run(void* block, std::size_t size, bool reuses) {
    const std::size_t before = run_bytes(block), bytes = align_up(size == 0 ? 1 : size, kGranule);
    const bool purged = bytes < before && !Source::in_pieces(S::global.source, address(block)) &&
                        os::purge(pointer(address(block) + bytes), before - bytes);
    const RunResize how = purged ? RunResize::kPurged : reuses ? RunResize::kReuses : RunResize::kUsual;
    return Source::resize(S::global.source, address(block), bytes >> kGranuleShift, how);
  }
  static std::size_t room_behind(std::size_t bytes) { return bytes / 2; }
  static constexpr bool open_runs(const void*, std::size_t, void* /*to*/, std::size_t /*kept*/) {
    return true;
  }
  static constexpr bool bequeath_run(const void*, void* /*to*/) { return false; }
  static constexpr bool open_granule(void*) { return true; }
  static constexpr std::size_t kMostSamples = SIZE_MAX;

  static constexpr void look_at_exit() {}
};

}  // namespace hz
