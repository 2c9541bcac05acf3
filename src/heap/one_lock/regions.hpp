// SPDX-License-Identifier: Apache-2.0
//
// All regions: which of their granules are in use, which regions have free ones, and how their memory comes
// from the system and goes back. Free granules keep their pages until there are more than may be. Those that
// were freed longest ago go first, and a region without spans is unmapped. Called when a span begins or ends,
// and to purge; never by a malloc or free that stays within a span.
// Lock: the caller holds HeapLock. What takes a Hold opens it while the system works.
#pragma once

#include <new>

#include "heap/one_lock/account.hpp"
#include "heap/one_lock/lock.hpp"
#include "heap/one_lock/region.hpp"

namespace hz::one_lock {

struct Regions {
  static std::size_t bytes_of(std::uint64_t granules) {
    return static_cast<std::size_t>(__builtin_popcountll(granules)) << kGranuleShift;
  }

  // Regions with free granules, by whether any of these has pages.
  static inline constinit Link with_dirty, with_clean;
  // No region without pages had so many neighbours when all were scanned; such a region has more only when
  // its pages went.
  static inline constinit unsigned lacking = kGranules;
  // The first region, while only its first granules are mapped: a small process that locks its memory locks
  // all that is mapped. The others count as used, so it is never unmapped.
  static inline constinit Region* in_part = nullptr;
  static constexpr unsigned kFirstGranules = 16;
  static constexpr std::uint64_t kLaterGranules = ~std::uint64_t{0} << kFirstGranules;
  static constexpr std::size_t kLaterBytes = kRegion - kFirstGranules * kGranule;
  // Where the next region would make one mapping with the last: a process may have some 65,000.
  static inline constinit std::uintptr_t below_last = 0;
  // Purges under way: what they are at is in no list.
  static inline constinit unsigned leaving = 0;

  // --- granules

  static void acquire(Region& region, std::uint64_t run) {
    Account::used_bytes += bytes_of(run);
    region.used |= run;
    if (const std::uint64_t dirty = run & region.dirty; dirty != 0) {
      Account::dirty_bytes -= bytes_of(dirty);
      region.dirty &= ~dirty;
    }
    enlist(region);
  }
  static void release(Region& region, std::uint64_t run, bool dirty) {
    const std::size_t bytes = bytes_of(run);
    Account::used_bytes -= bytes;
    region.used &= ~run;
    if (dirty) {
      Account::dirty_bytes += bytes;
      region.dirty |= run;
    }
    enlist(region);
  }
  static void enlist(Region& region) {
    region.remove();
    if (!region.full()) region.insert(region.dirty != 0 ? with_dirty : with_clean);
  }
  // Returns a region that has `count` free neighbours at a multiple; one with pages first, nullptr if there
  // is none. Of regions without pages it scans the newest alone if none had so many granules the last time:
  // each region of large blocks has some that are free, and too few.
  static Region* with_free(unsigned count, std::size_t multiple) {
    constexpr unsigned kNewest = 8;
    if (Region* const found = first_with(with_dirty, ~0U, count, multiple)) return found;
    if (count >= lacking) return first_with(with_clean, kNewest, count, multiple);
    Region* const found = first_with(with_clean, ~0U, count, multiple);
    if (found == nullptr && multiple == 1) lacking = count;
    return found;
  }

  // What lies at an address in a region.
  static Found find(std::uintptr_t at) {
    Region& region = Region::of(at);
    if (&region == in_part && Region::granule_of(at) >= kFirstGranules)
      return Found::nothing(Fault::kForeign);
    return region.find(at);
  }

  // --- from the system, and back

  // Maps a region, or what the first one lacks. Returns false if the system refuses.
  HZ_SLOW static bool map() {
    if (in_part != nullptr && complete()) return true;
    void* const next = pointer(below_last);
    void* at = HeapLock::meanwhile([&] {
      const bool there = next != nullptr && os::extend(next, kRegion) == os::Placed::kHere;
      return there ? next : os::map(kRegion, kRegion, os::Use::kBlocks);
    });
    if (at == nullptr) return false;
    if (!Table::mark(address(at), 1, Table::Kind::kSpans))
      return HeapLock::meanwhile([&] { return os::unmap(at, kRegion); }), false;
    const bool first = below_last == 0;
    ++Account::regions;
    below_last = address(at) - kRegion;
    auto* const region = ::new (at) Region;
    if (first && os::unmap(region->at(kFirstGranules, 0), kRegion - kFirstGranules * kGranule)) {
      in_part = region;
      region->used |= kLaterGranules;
    }
    enlist(*region);
    return true;
  }
  // Purges free pages until at most `keep` bytes of them are left, or some `most` have gone. Returns true if
  // any have.
  HZ_SLOW static bool purge(std::size_t keep, std::size_t most = SIZE_MAX) {
    const std::uint64_t before = Account::purged_bytes;
    while (Account::dirty_bytes > keep && Account::purged_bytes - before < most) {
      Region& region = *static_cast<Region*>(with_dirty.previous);
      if (!(region.empty() ? unmap(region) : purge_run(region))) break;
    }
    if (Account::purged_bytes != before) ++Account::purges;
    return Account::purged_bytes != before;
  }

 private:
  static Region* first_with(Link& list, unsigned most, unsigned count, std::size_t multiple) {
    for (Link* at = list.next; at != &list && most != 0; at = at->next, --most) {
      auto* region = static_cast<Region*>(at);
      if (region->find_free(count, multiple) != 0) return region;
    }
    return nullptr;
  }
  // Maps the granules that the first region lacks. Returns false if another mapping is in the way.
  static bool complete() {
    Region& region = *in_part;
    in_part = nullptr;
    const bool there = HeapLock::meanwhile(
        [&] { return os::extend(region.at(kFirstGranules, 0), kLaterBytes) == os::Placed::kHere; });
    if (!there) return in_part = &region, false;
    region.used &= ~kLaterGranules;
    return enlist(region), true;
  }
  static bool unmap(Region& region) {
    const std::size_t dirty = bytes_of(region.dirty);
    region.remove();
    Account::dirty_bytes -= dirty;
    Table::mark(address(&region), 1, Table::Kind::kGone);
    ++leaving;
    const bool gone = HeapLock::meanwhile([&] { return os::unmap(&region, kRegion); });
    has_left();
    if (gone) {
      Account::purged_bytes += dirty;
      --Account::regions;
      return true;
    }
    Table::mark(address(&region), 1, Table::Kind::kSpans);
    Account::dirty_bytes += dirty;
    enlist(region);
    return false;
  }
  // Purges the first free granules that have pages. They count as used meanwhile.
  static bool purge_run(Region& region) {
    const auto first = static_cast<unsigned>(__builtin_ctzll(region.dirty));
    const auto count = static_cast<unsigned>(__builtin_ctzll(~(region.dirty >> first)));
    const std::uint64_t run = Region::mask(first, count);
    const std::size_t bytes = std::size_t{count} << kGranuleShift;
    acquire(region, run);
    ++leaving;
    const bool gone = HeapLock::meanwhile([&] { return os::purge(region.at(first, 0), bytes); });
    has_left();
    if (gone) Account::purged_bytes += bytes, lacking = kGranules;
    release(region, run, !gone);
    // Meanwhile the last of its spans may have ended.
    return gone && region.empty() && region.dirty == 0 ? unmap(region) : gone;
  }
  static void has_left() {
    if (HZ_LIKELY(leaving != 0)) --leaving;  // it is zero in a child that recovered the heap meanwhile
  }
};

}  // namespace hz::one_lock
