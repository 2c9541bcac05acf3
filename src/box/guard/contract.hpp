// SPDX-License-Identifier: Apache-2.0
//
// Role: what is checked when a block is freed, and what happens when the check fails? `may_free` runs on the
// hot path; `diagnose` runs after it said no and names the fault; `report` tells the user and, by default,
// ends the program.
#pragma once

#include <concepts>

#include "base/free_list.hpp"
#include "base/size_classes.hpp"

namespace hz {

enum class Fault : unsigned {
  kNone = 0,
  kForeign = 1,         // E01: not an address of this heap
  kNotAllocated = 2,    // E02: in the arena, but nothing was handed out there
  kDoubleFree = 3,      // E03
  kInterior = 4,        // E04: not the start of a slot
  kSizeMismatch = 5,    // E05: never fatal
  kWriteAfterFree = 6,  // E06: a free slot was written to
  kNoHeap = 7,          // E07: a first-class heap that has ended, or never was
  kUseAfterFree = 8,    // E08: a block on a guarded page was touched after its free
  kOutOfBounds = 9      // E09: memory beside a block was touched
};

static_assert(sizeof(FreeSlot) <= kMinAlign, "link and mark lie in every free slot");

// When a fault is found.
enum class Seen : unsigned char {
  kNow,       // in the call that is wrong
  kLater,     // in a later call
  kWithLock,  // in a later call, while a lock of the heap is held: the stack must not be walked
};

// The phase of a slot's life, for a guard that checks each move; see lifecycle.hpp.
enum class Phase : std::uint8_t {
  kReleased,       // not carved: its span has no slots yet, or none any more
  kCentralFree,    // in its span
  kLocalFree,      // a thread's
  kAllocated,      // the program's
  kRemotePending,  // freed by a stranger, and in that one's outbox
  kTransferFree,   // in the exchange, for any thread
  kOrphan          // freed by a stranger, and its owner has no thread
};

template <class G>
concept GuardContract = requires(typename G::PerThread& thread, const typename G::PerThread& seen, void* slot,
                                 const FreeSlot* free_slot, Bin bin, Fault fault, const void* at,
                                 const char* line, Seen how, void*& taken, Phase phase, std::uintptr_t span) {
  { G::kMarks } -> std::convertible_to<bool>;  // free slots carry a mark: a late write shows
  // May_free says no to a slot that is free: it looks at what lies there
  { G::kProves } -> std::convertible_to<bool>;
  { G::kClaims } -> std::convertible_to<bool>;  // of two strangers that claim a slot one fails
  { G::join(thread) } -> std::same_as<void>;
  { G::on_alloc(slot, bin) } -> std::same_as<bool>;        // hot; false: it was not free
  { G::may_free(seen, slot, bin) } -> std::same_as<bool>;  // hot; bin is valid, the slot may be anything
  { G::on_free(seen, slot, bin) } -> std::same_as<void>;   // hot; by its owner, after may_free
  // The same by a stranger: the slot as an outbox keeps it; nullptr: another was quicker
  { G::claim(seen, slot, bin) } -> std::same_as<void*>;
  { G::arrive(slot, bin) } -> std::same_as<bool>;  // a claimed slot is back; false: it was freed twice
  { G::diagnose(seen, slot, bin) } -> std::same_as<Fault>;
  { G::intact(seen, free_slot) } -> std::same_as<bool>;  // at the boundary: is it still as on_free left it?
  { G::report(fault, at, bin, line, how) } -> std::same_as<void>;  // returns only if the program is to go on

  { G::kTracks } -> std::convertible_to<bool>;  // the heap reports the following to it
  // Called by the slot's holder. A pointer in the form of an outbox becomes a plain one. False: the slot is
  // not where it may come from.
  { G::move(taken, bin, phase) } -> std::same_as<bool>;
  // The span has no slots any more; one that was not in it, or none
  { G::retire(span, bin) } -> std::same_as<const void*>;

  // Bytes behind each block that are the guard's; 0: none, and the heap does not call the functions of a
  // guard with seals (sealed.hpp)
  { G::kSealBytes } -> std::convertible_to<std::size_t>;
  { G::fault_of_free(slot, bin) } -> std::same_as<Fault>;  // of a slot that on_alloc refused
};

// The answers of a guard that leaves blocks all of their slots.
struct WithoutSeals {
  static constexpr std::size_t kSealBytes = 0;
  static constexpr Fault fault_of_free(const void*, Bin) { return Fault::kDoubleFree; }
};

// The answers of a guard that does not ask where slots are between two owners.
struct WithoutPhases : WithoutSeals {
  static constexpr bool kTracks = false;
  static constexpr bool move(void*&, Bin, Phase) { return true; }
  static constexpr const void* retire(std::uintptr_t /*span*/, Bin) { return nullptr; }
};

}  // namespace hz
