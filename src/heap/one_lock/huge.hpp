// SPDX-License-Identifier: Apache-2.0
//
// Huge blocks: each has its own mapping. Its notes stand at the start of its first 4 MiB, the block begins at
// the next granule, or where its alignment wants it. Called for blocks above the largest class; costs a
// system call or two. Lock: the caller holds HeapLock, which is open while the system works.
#pragma once

#include "heap/one_lock/spans.hpp"

namespace hz::one_lock {

struct HugeBlocks {
  using Kind = Table::Kind;

  struct Notes {
    std::uintptr_t block;
    std::size_t usable;  // 0: it is about to be made
    std::size_t room;    // bytes of the mapping behind it that it may grow into. They count when it has

    std::size_t mapped() const { return block - address(this) + usable + room; }
  };

  static std::size_t usable(std::size_t size) { return align_up(size + (size == 0), os::page_bytes()); }

  // Returns a zeroed block. `alignment` is a power of two. No more is returned to the system for it than
  // there are addresses.
  HZ_SLOW static void* take(std::size_t size, std::size_t alignment) {
    if ((size | alignment) >> Table::kAddressBits != 0) return nullptr;
    const std::size_t offset = alignment < kGranule ? kGranule : alignment < kRegion ? alignment : kRegion;
    const std::size_t bytes = usable(size), mapped = offset + bytes;
    Spans::pay(bytes);
    for (unsigned rounds = 0;;) {
      if (Account::has_room(bytes)) {
        Account::huge_bytes += bytes;  // before the lock opens: another thread may come meanwhile
        void* const start = HeapLock::meanwhile([&] { return map(mapped, offset, alignment); });
        if (start != nullptr && mark(start, mapped)) {
          ++Account::huge_blocks;
          ++Account::begun;
          os::probe::span_acquired(address(start), mapped);
          return pointer((::new (start) Notes{address(start) + offset, bytes, 0})->block);
        }
        Account::huge_bytes -= bytes;
        if (start != nullptr) return unmap_unused(start, mapped);
      }
      if (!Spans::reclaim(rounds)) return nullptr;
    }
  }
  // Gives a live block more bytes, where it is or elsewhere. Returns nullptr if it stays as it is.
  static void* grow(const void* block, std::size_t size) {
    if (size >> Table::kAddressBits != 0) return nullptr;
    const std::size_t before = notes_of(address(block)).usable, more = usable(size) - before;
    Spans::pay(more);
    if (!Account::has_room(more) || !is_live(address(block))) return nullptr;
    Notes& notes = notes_of(address(block));
    if (more > notes.room) return move(block, more, room_for(size, before));
    notes.room -= more;
    notes.usable += more;
    Account::huge_bytes += more;
    return pointer(notes.block);
  }
  // Frees a live block.
  HZ_SLOW static void put(const void* block) {
    Notes* const notes = &notes_of(address(block));
    const std::size_t mapped = notes->mapped();
    mark_gone(notes, mapped);
    Account::huge_bytes -= notes->usable;
    --Account::huge_blocks;
    ++Account::ended;
    os::probe::span_retired(address(notes), mapped - notes->room);
    // Where a mapping would have to be split and there are too many, at least the pages go.
    HeapLock::meanwhile([&] { return os::unmap(notes, mapped) || os::purge(notes, mapped); });
  }
  // What lies at an address of a huge block's mapping.
  static Found find(std::uintptr_t at) {
    if (is_live(at)) return {Fault::kNone, kHugeBin, notes_of(at).usable, nullptr, 0};
    const bool before = Table::kind(at) == Kind::kHuge && at < notes_around(at).block;
    return Found::nothing(before ? Fault::kNotAllocated : Fault::kInterior, kHugeBin);
  }

 private:
  // A block that begins with a region has its notes in the one before.
  static Notes& notes_of(std::uintptr_t block) { return notes_around(block - 1); }
  static Notes& notes_around(std::uintptr_t at) { return *static_cast<Notes*>(pointer(at & ~(kRegion - 1))); }
  static bool is_live(std::uintptr_t at) {
    return Table::kind(at - 1) == Kind::kHuge && at == notes_of(at).block;
  }
  static std::size_t regions_in(std::size_t bytes) { return (bytes + kRegion - 1) >> kRegionShift; }
  static bool mark(const void* start, std::size_t bytes) {
    return Table::mark(address(start), 1, Kind::kHuge) &&
           Table::mark(address(start) + kRegion, regions_in(bytes) - 1, Kind::kHugeRest);
  }
  static void mark_gone(const void* start, std::size_t bytes) {
    Table::mark(address(start), regions_in(bytes), Kind::kGone);
  }
  static void* map(std::size_t bytes, std::size_t offset, std::size_t alignment) {
    if (!os::promises(bytes)) return nullptr;
    if (alignment <= kRegion) return os::map(bytes, kRegion, os::Use::kBlocks);
    void* space = os::map(alignment + bytes - offset, alignment, os::Use::kBlocks);
    if (space == nullptr) return nullptr;
    void* start = pointer(address(space) + alignment - offset);
    os::unmap(space, alignment - offset);
    return start;
  }
  static void* unmap_unused(void* start, std::size_t bytes) {
    mark_gone(start, bytes);
    HeapLock::meanwhile([&] { return os::unmap(start, bytes); });
    return nullptr;
  }

  // A block that grows by less than half gets room for as much again, so that a program which adds a little
  // each time moves it seldom; less where addresses are limited.
  static std::size_t room_for(std::size_t size, std::size_t before) {
    if (size - before >= before / 2) return 0;
    const std::size_t share = os::address_space_limit() == SIZE_MAX ? 1 : kLimitedShare;
    return align_up(size / share, kGranule);
  }
  static constexpr std::size_t kLimitedShare = 8;
  // Moves a live block to a mapping that is `more` bytes larger, and has that room if it can be had.
  static void* move(const void* block, std::size_t more, std::size_t room) {
    const std::size_t usable = notes_of(address(block)).usable + more;
    const std::size_t offset = address(block) - address(&notes_of(address(block)));
    if (!os::promises(offset + usable)) return nullptr;
    void* const to = HeapLock::meanwhile([&] {
      void* const at = os::map(offset + usable + room, kRegion, os::Use::kBlocks);
      if (at != nullptr || room == 0) return at;
      room = 0;
      return os::map(offset + usable, kRegion, os::Use::kBlocks);
    });
    if (to == nullptr) return nullptr;
    const std::size_t bytes = offset + usable + room;
    if (!Account::has_room(more) || !is_live(address(block)) || !mark(to, bytes))
      return unmap_unused(to, bytes);
    Notes* const from = &notes_of(address(block));
    const std::size_t mapped = from->mapped();
    // Meanwhile another thread may map what the system has unmapped of the two, and marks that. There is
    // memory for the marks from now on.
    mark_gone(from, mapped);
    mark_gone(to, bytes);
    Account::huge_bytes += more;
    if (!HeapLock::meanwhile([&] { return os::move_mapping(from, mapped, to, bytes); })) {
      mark(from, mapped);
      Account::huge_bytes -= more;
      return nullptr;
    }
    mark(to, bytes);
    return pointer((::new (to) Notes{address(to) + offset, usable, room})->block);
  }
};

}  // namespace hz::one_lock
