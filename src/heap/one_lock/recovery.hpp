// SPDX-License-Identifier: Apache-2.0
//
// What is free and where is counted anew, in the child of a fork that before_fork() did nothing for. Its one
// thread may have been about to wait for the lock, or have interrupted itself with it. Another thread may
// have had the lock, and have been anywhere. Live are the slots whose bits say so, and the huge blocks that
// have notes. Called by HeapLock, at most once in a process; costs a scan of all regions.
#pragma once

#include "heap/one_lock/huge.hpp"

namespace hz::one_lock {

HZ_COLD inline void recount(Region& region) {
  std::uint64_t used = 1;  // the notes
  ::new (static_cast<Link*>(&region)) Link;
  for (unsigned granule = 1; granule < kGranules;) {
    Span& span = region.spans[granule];
    ::new (static_cast<Link*>(&span)) Link;
    const unsigned live = (region.used >> granule & 1) != 0 ? region.count(span) : 0;
    const unsigned count = live == 0 ? 1 : Region::granules_of(span);
    if (live != 0) {
      used |= Region::mask(granule, count);
      span.used = static_cast<std::uint16_t>(live);
      span.first_word = 0;
      if (live < span.slots) span.insert(Spans::inherited[span.bin]);
    }
    granule += count;
  }
  const bool whole = (region.used & Regions::kLaterGranules) != Regions::kLaterGranules ||
                     os::is_mapped(region.at(Regions::kFirstGranules, 0), Regions::kLaterBytes);
  if (!whole) Regions::in_part = &region;
  const std::uint64_t missing = whole ? 0 : Regions::kLaterGranules;
  region.dirty = (region.dirty | region.used) & ~(used | missing);
  region.used = used | missing;
  ++Account::regions;
  Account::used_bytes += Regions::bytes_of(used & ~std::uint64_t{1});
  Account::dirty_bytes += Regions::bytes_of(region.dirty);
  Regions::enlist(region);
}

inline void HeapLock::recover() {
  mine().fork = Fork::kNone;
  lock.reset();
  at_work = Regions::leaving = 0;
  Account::used_bytes = Account::dirty_bytes = Account::huge_bytes = 0;
  Account::huge_blocks = Account::regions = Spans::empty = 0;
  Regions::lacking = kGranules;
  for (Link* list : {&Regions::with_dirty, &Regions::with_clean}) ::new (list) Link;
  Spans::open();
  Table::for_each([](std::uintptr_t at, Table::Kind kind) {
    if (kind == Table::Kind::kSpans) recount(*static_cast<Region*>(pointer(at)));
    if (kind != Table::Kind::kHuge) return;
    const auto& notes = *static_cast<HugeBlocks::Notes*>(pointer(at));
    if (notes.usable == 0) return;  // it was about to be made
    ++Account::huge_blocks;
    Account::huge_bytes += notes.usable;
  });
}

}  // namespace hz::one_lock
