// SPDX-License-Identifier: Apache-2.0
//
// A guard that knows where each slot is in its life. One byte per slot, in tables beside the arena, holds its
// phase and its generation; the heap tells it of every move, and a move that kSteps does not have is reported
// where it happens. So a slot is in one place only, and that is checked, not hoped for. Used by hz6. Costs a
// load, a compare and a store each malloc and each free, and the same for each slot that crosses the
// boundary.
//
// The generation goes on with each allocation (and with a free that a full bin turned away). A thread that
// claims a remote slot seals it: the pointer in the outbox carries the generation that was claimed, and opens
// only while that is still the slot's. The owner may free a slot, and a remote thread may claim it between
// the owner's read and its store. Then the entry in the outbox is void. It is reported, and not taken twice.
// Of two entries for a slot one at most opens, so that no move but the claim needs a locked instruction. It
// has kGenerations values; it begins again when the pages of the table have been given back, which is when
// all slots there are released.
#pragma once

#include "base/slot_bytes.hpp"
#include "box/guard/report.hpp"

namespace hz {

// A step of a slot's life, and its cause.
struct Step {
  Phase from, to;
  const char* by;
};

inline constexpr Step kSteps[] = {
    {Phase::kReleased, Phase::kLocalFree, "a refill carves it from a span"},
    {Phase::kCentralFree, Phase::kLocalFree, "a refill takes it from its span"},
    {Phase::kTransferFree, Phase::kLocalFree, "a refill takes it from the transfer cache"},
    {Phase::kRemotePending, Phase::kLocalFree, "a refill of the freeing thread recalls it"},
    {Phase::kLocalFree, Phase::kAllocated, "malloc; its generation begins"},
    {Phase::kAllocated, Phase::kLocalFree, "free by its owner"},
    {Phase::kAllocated, Phase::kRemotePending, "free by a remote thread, which claims it"},
    {Phase::kRemotePending, Phase::kTransferFree, "a delivery of the outbox"},
    {Phase::kRemotePending, Phase::kOrphan, "a delivery that finds the owner without a thread"},
    {Phase::kRemotePending, Phase::kCentralFree, "a delivery when nothing more may wait"},
    {Phase::kLocalFree, Phase::kTransferFree, "a full bin"},
    {Phase::kLocalFree, Phase::kCentralFree,
     "a full bin when nothing more may wait; a revocation of a cache"},
    {Phase::kTransferFree, Phase::kCentralFree, "back-pressure: the transfer cache has no room"},
    {Phase::kOrphan, Phase::kCentralFree, "the delivery: the span's next owner finds it there"},
    {Phase::kCentralFree, Phase::kReleased, "the span retires"},
};

template <class Line>
struct Lifecycle : SlotBytes<Line>, WithoutSeals {
  static constexpr bool kMarks = false;
  static constexpr bool kProves = true;
  static constexpr bool kClaims = true;
  static constexpr bool kTracks = true;

  static constexpr unsigned kPhaseBits = 3, kPhases = 7, kGenerations = 1U << (8 - kPhaseBits);
  static constexpr std::uint8_t kGeneration = 1U << kPhaseBits;

  struct PerThread {};

  static void join(PerThread&) {}
  HZ_INLINE static bool on_alloc(void* slot, Bin bin) {
    const std::uint8_t word = get(slot, bin);
    if (HZ_UNLIKELY(phase_of(word) != Phase::kLocalFree)) return false;
    set(slot, bin, static_cast<std::uint8_t>(gone(word, Phase::kLocalFree, Phase::kAllocated) + kGeneration));
    return true;
  }
  HZ_INLINE static bool may_free(const PerThread&, const void* slot, Bin bin) {
    return HZ_LIKELY(is_slot_start(bin, static_cast<std::uint16_t>(address(slot)))) &&
           HZ_LIKELY(phase_of(get(slot, bin)) == Phase::kAllocated);
  }
  HZ_INLINE static void on_free(const PerThread&, void* slot, Bin bin) {
    // A stranger may have claimed it since may_free.
    const auto generation = static_cast<unsigned>(get(slot, bin)) & ~(kGeneration - 1U);
    set(slot, bin, static_cast<std::uint8_t>(generation | static_cast<unsigned>(Phase::kLocalFree)));
  }

  // Sealed with the generation that was claimed.
  HZ_INLINE static void* claim(const PerThread&, void* slot, Bin bin) {
    const std::uint8_t word = get(slot, bin);
    const bool claimed =
        phase_of(word) == Phase::kAllocated &&
        SlotBytes<Line>::change(slot, bin, word, gone(word, Phase::kAllocated, Phase::kRemotePending));
    return HZ_LIKELY(claimed) ? pointer(address(slot) | seal_of(word) << kSealShift) : nullptr;
  }
  static bool arrive(void* slot, Bin bin) {
    void* sealed = pointer(address(slot) | seal_of(get(slot, bin)) << kSealShift);
    return move(sealed, bin, Phase::kLocalFree);
  }

  static bool move(void*& slot, Bin bin, Phase to) {
    const std::uintptr_t seal = address(slot) >> kSealShift;
    slot = pointer(address(slot) & kPlain);
    const std::uint8_t word = get(slot, bin);
    const Phase from = phase_of(word);
    const std::uintptr_t expected = from == Phase::kRemotePending ? seal_of(word) : 0;
    if (HZ_UNLIKELY(seal != expected || !may_follow(from, to))) return false;
    set(slot, bin, gone(word, from, to));
    return true;
  }
  // All of them are released, whatever they were.
  static const void* retire(std::uintptr_t span, Bin bin) {
    const void* wrong = nullptr;
    for (unsigned i = 0; i < bin_slots(bin); ++i) {
      void* const slot = pointer(span + i * bin_size(bin));
      const std::uint8_t word = get(slot, bin);
      const Phase from = phase_of(word);
      if (from != Phase::kCentralFree && from != Phase::kReleased) wrong = slot;
      set(slot, bin, gone(word, from, Phase::kReleased));
    }
    return wrong;
  }

  HZ_INLINE static Fault diagnose(const PerThread&, const void* slot, Bin bin) {
    if (!is_slot_start(bin, static_cast<std::uint16_t>(address(slot)))) return Fault::kInterior;
    const Phase phase = phase_of(get(slot, bin));
    if (HZ_LIKELY(phase == Phase::kAllocated)) return Fault::kNone;
    return phase == Phase::kReleased ? Fault::kNotAllocated : Fault::kDoubleFree;
  }
  static bool intact(const PerThread&, const void*) { return true; }

  static void report(Fault fault, const void* at, Bin bin, const char* line, Seen seen = Seen::kNow) {
    FaultReport::send(fault, at, bin, line, seen);
  }

  static constexpr bool may_follow(Phase from, Phase to) {
    return (kFollowers[static_cast<unsigned>(from)] >> static_cast<unsigned>(to) & 1) != 0;
  }

 private:
  using SlotBytes<Line>::get, SlotBytes<Line>::set;

  // Above every address that a program has, also with page tables of five levels.
  static constexpr unsigned kSealShift = 58;
  static constexpr std::uintptr_t kPlain = (std::uintptr_t{1} << kSealShift) - 1;
  static_assert(kGenerations + 1 <= (1U << (64 - kSealShift)));

  struct Followers {
    std::uint8_t of[1U << kPhaseBits] = {};
    constexpr std::uint8_t operator[](unsigned phase) const { return of[phase]; }
  };
  static constexpr Followers kFollowers = [] {
    Followers followers;
    for (const Step& step : kSteps)
      followers.of[static_cast<unsigned>(step.from)] |= std::uint8_t(1U << static_cast<unsigned>(step.to));
    return followers;
  }();

  // In a pointer; that of a plain one is 0.
  HZ_INLINE static constexpr std::uintptr_t seal_of(std::uint8_t word) { return 1U + (word >> kPhaseBits); }
  HZ_INLINE static constexpr Phase phase_of(std::uint8_t word) {
    return static_cast<Phase>(word & ((1U << kPhaseBits) - 1));
  }
  // Of a slot that is in `from`.
  HZ_INLINE static constexpr std::uint8_t gone(std::uint8_t word, Phase from, Phase to) {
    return static_cast<std::uint8_t>(word + static_cast<unsigned>(to) - static_cast<unsigned>(from));
  }
};

}  // namespace hz
