// SPDX-License-Identifier: Apache-2.0
//
// Role: where do spans come from? The source deals out runs of granules and takes them back; it alone talks
// to the operating system about user memory. Free runs it holds are dirty (backed by memory) until purged.
#pragma once

#include <concepts>

#include "base/units.hpp"

namespace hz {

struct Run {
  std::uintptr_t at = 0;   // 0: memory cannot be had
  bool zeroed = false;     // reads as zero
  std::size_t purged = 0;  // bytes behind what is used of it
};

// A run, and its holder at that time. `at` 0: none.
struct HeldRun {
  std::uintptr_t at = 0;
  unsigned holder = 0;
};

// Granules in a row, by number, from the first one to before the end. None: these are the same.
struct Rows {
  std::size_t begin = 0, end = 0;
};

// What the user says about memory: bytes, or per cent of what the process may use; 0 of both: no limit.
struct MemoryLimit {
  std::size_t bytes = 0;
  unsigned percent = 0;
  bool given = false;
};

struct Limits {
  MemoryLimit soft, hard;
};

struct Demand {
  bool force = false;          // caches were returned: only the hard limit may refuse now
  std::size_t instead_of = 0;  // granules that go back to the system as soon as the new ones are there
  std::size_t paid = 0;        // the source's own note: bytes purged for it
  std::size_t room = 0;        // granules behind the run that it alone may get by resize(),
                               // without memory, if there are any
  std::size_t used = 0;  // bytes of the run that will ever be touched: all but a part of the last granule;
                         // 0: all. What lies behind has no pages, and does not count as held
};

// A table that the source sets aside, one row a granule. The first one is the route's: it begins at the
// arena's base.
struct TableShape {
  std::size_t row_bytes = 0;
  bool lasts = true;  // its rows are of meaning even where granules are free; else their pages go with those
                      // of granules
  bool counts = false;  // as held, where granules are
};

// How a run is resized. kPurged: what it loses has no memory any more. kReuses: it does not grow into pages
// without memory while a dirty run elsewhere holds all of it.
enum class RunResize : std::uint8_t { kUsual, kPurged, kReuses };

template <class S>
concept SourceContract = requires(typename S::Global& g, const typename S::Global& seen, std::uintptr_t at,
                                  std::size_t bytes, std::size_t granules, std::size_t alignment, bool fresh,
                                  Demand demand, MemoryLimit soft, MemoryLimit hard, const TableShape* shapes,
                                  unsigned table, unsigned milliseconds, unsigned holder, RunResize how,
                                  std::ptrdiff_t difference, void (*told)(std::size_t)) {
  { S::kMostTables } -> std::convertible_to<unsigned>;
  // So many tables, which stand side by side but for the first
  { S::open(g, shapes, table) } -> std::same_as<bool>;
  { S::base(seen) } -> std::same_as<std::uintptr_t>;
  { S::bytes(seen) } -> std::same_as<std::size_t>;  // addresses from base on that may become ours
  { S::table(seen, table) } -> std::same_as<std::uintptr_t>;
  // Of the addresses from base on, how many the first table can be asked about: now, and each time that it is
  // more, before a run lies there. Rows of other tables can be touched where runs are.
  { S::tell(g, told) } -> std::same_as<void>;
  // Before the first run, or there is no limit; and at any time later: what is not given stays
  { S::limit(g, soft, hard) } -> std::same_as<void>;
  { S::limits(g) } -> std::same_as<Limits>;  // in bytes
  // Alignment in granules. Refused past a limit; with `force`, only past the hard one.
  { S::acquire(g, granules, alignment, demand) } -> std::same_as<Run>;
  // Lets one of the threads that want to release the run that starts there. Not fresh: it does not release it
  // after all.
  { S::claim(g, at, fresh) } -> std::same_as<bool>;
  { S::release(g, at, fresh) } -> std::same_as<void>;  // fresh: its pages went back already
  // The run that starts there becomes two, the first one of so many granules; fewer than it has, not 0
  { S::part(g, at, granules) } -> std::same_as<void>;
  // So many granules more (or fewer) are in use and have no pages: they do not count as held. None when they
  // are released
  { S::without_pages(g, difference) } -> std::same_as<void>;
  { S::resize(g, at, granules) } -> std::same_as<bool>;  // in place or not at all; refused past a limit
  { S::resize(g, at, granules, how) } -> std::same_as<bool>;
  // The run at `at` gets a holder, a number that is not 0, and stands beside another one of that holder, or
  // alone (0); the same, beside one that may have none; it has none any more, as after its release.
  { S::hold(g, at, holder, at) } -> std::same_as<void>;
  { S::join(g, at, at) } -> std::same_as<void>;
  { S::drop(g, at) } -> std::same_as<void>;
  { S::holder(g, at) } -> std::same_as<unsigned>;  // 0: none
  // Removes the next run from the ring of the holder of the run at `at`, and returns it
  { S::drop_next(g, at) } -> std::same_as<HeldRun>;
  // Within a run in use: pages that came from elsewhere begin or end
  { S::note_mapping_boundary(g, at) } -> std::same_as<void>;
  { S::in_pieces(g, at) } -> std::same_as<bool>;  // there is such a boundary
  // Of the run at `at`, from that offset, to the next boundary
  { S::piece(g, at, bytes) } -> std::same_as<std::size_t>;
  { S::granules(g, at) } -> std::same_as<std::size_t>;  // of the run that starts at `at`
  { S::start(g, at) } -> std::same_as<std::uintptr_t>;  // of the run in use around `at`, 0 if none
  { S::dirty_bytes(seen) } -> std::same_as<std::size_t>;
  { S::held_bytes(g) } -> std::same_as<std::size_t>;  // had from the system and not given back
  { S::has_room(g, bytes) } -> std::same_as<bool>;    // with so much more it is within every limit
  // What a thread may cache in this container at most
  { S::thread_share(seen) } -> std::same_as<std::size_t>;
  { S::owes_recall(seen) } -> std::same_as<bool>;        // past the soft limit: caches are to come back
  { S::took_recall(g) } -> std::same_as<bool>;           // true to one caller, who takes back what it can
  { S::reached_bytes(g) } -> std::same_as<std::size_t>;  // of the arena, so far
  // From that number on, so many that are or were in use, at most; the tables reach there
  { S::rows_from(g, granules, granules) } -> std::same_as<Rows>;
  { S::answers(g, milliseconds) } -> std::same_as<bool>;  // within that time; its holder may ask, too
  // Keep so much dirty, purge so much; what was purged
  { S::purge(g, bytes, bytes) } -> std::same_as<std::size_t>;
  { S::free_locks(g) } -> std::same_as<void>;  // in the child of a fork
  { S::make_whole(g) } -> std::same_as<void>;  // the same, if no fork hook was called
};

}  // namespace hz
