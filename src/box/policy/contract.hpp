// SPDX-License-Identifier: Apache-2.0
//
// Role: every number that follows what the program does. Which capacities and batch sizes do the slow paths
// use, how much may a thread cache, how much may the process retain, which size deserves its own class? Told
// of refills, flushes, spans and times at the boundary, never of an operation of the hot path. A box is
// Learned around one of the rules (frozen.hpp, size_bands.hpp) for the former.
#pragma once

#include <concepts>

#include "base/text.hpp"
#include "box/policy/size_watch.hpp"

namespace hz {

// Bytes that one bin may hold, by its band of sizes: see size_bands.hpp; 0: as the line says. A policy that
// takes bounds has `set(const BandBytes&)`, which is called once, before any thread has a bin.
struct BandBytes {
  std::size_t small = 0, run = 0, large = 0;
};

// What a policy does with what it sees: nothing; it gives classes to sizes that waste much; it notes all for
// a profile; it acts on all.
enum class Learning : std::uint8_t { kFrozen, kSizes, kObserve, kLearn };

// CAP: what a policy that learns may do at most, and from when on. Each can be set: HZ_LEARN_CLASSES and so
// on, also later.
struct Cap {
  unsigned classes = kSpares;      // spare classes that it may deal out
  std::size_t cache = 256 * kKiB;  // bytes that a calm thread may cache in any case
  unsigned retain = 105;           // per cent of live bytes that a calm process may hold
  unsigned looks = 32;             // granules that it looks at for free pages, for each new span
  unsigned busy = 40;              // a thread is, from so many 1024ths of its time at the boundary on
  unsigned purger = 32;            // 1024ths of a processor for useless scans of the purger; 0: any
};

// What else bounds a thread's cache.
struct Allowance {
  std::size_t asked = 0;                // bytes, by the user; 0: nothing
  std::size_t share = ~std::size_t{0};  // of a small container
  // Where no purger can take the cache back: the thread's live bytes, and whether they shrink, so that a
  // cached slot may keep a span for good.
  std::size_t live = ~std::size_t{0};
  bool shrinks = false;
  std::size_t all_slots = 0;  // bytes of one slot of the class for each thread of the process
};

// What follows when a bin is not given a larger capacity, for the thread's budget is spent.
enum class Denial : std::uint8_t { kStays, kOneGives, kOneGivesAtThatTime };  // the last: denied_often(), too

// What a policy sets for the process; each is no more than the user, the line and its retention say.
struct Bounds {
  unsigned percent = ~0U;               // of live bytes may be held
  std::size_t floor = ~std::size_t{0};  // free bytes that may stay in any case
  bool follows = true;                  // slots may wait for as much as there recently was
};

// The process's memory in bytes, by holder: the program, the exchange, threads' bins at most, spans that
// slots keep open, and free pages that are dirty.
struct Held {
  std::size_t blocks = 0, waiting = 0, cached = 0, in_spans = 0, dirty = 0;
  std::size_t idle() const { return waiting + cached + dirty; }
  std::size_t all() const { return blocks + idle() + in_spans; }
};

// What a policy came to so far.
struct Decisions {
  bool tight = false;  // the process is held tight
  bool calm = false;   // so far its threads were hardly ever busy: more memory would gain them nothing
  std::uint64_t windows = 0, busy = 0;  // of a thread's time, and those in which it was
  unsigned turns = 0;                   // times that it came to be held tight, or no longer
  const char* preset = "";              // in force, of those that it rates
  unsigned moves = 0;                   // times that another preset took over
};

template <class P>
concept PolicyContract = requires(Bin bin, unsigned capacity, std::size_t size, Learning learning,
                                  const Cap& cap, typename P::PerThread& t, const typename P::PerThread& seen,
                                  const Allowance& allowance, std::uint64_t microseconds,
                                  std::uint16_t fingerprint, bool comes, bool goes_on, const Held& held,
                                  TextView name) {
  { P::first_capacity(bin) } -> std::same_as<unsigned>;                   // of a bin when it is first used
  { P::max_capacity(bin) } -> std::same_as<unsigned>;                     // never more
  { P::next_capacity(bin, capacity) } -> std::same_as<unsigned>;          // after it ran empty or full
  { P::refill_batch(bin, capacity, goes_on) } -> std::same_as<unsigned>;  // at least 1
  { P::flush_batch(bin, capacity, goes_on) } -> std::same_as<unsigned>;
  // Of a thread, with its lock. All zero bytes would do for a new one, but for its budget.
  // A bin is refilled, or flushed: so were the last times, and the only thread is filling or draining.
  { P::goes_on(t, bin, comes) } -> std::same_as<bool>;
  { P::budget(seen, allowance) } -> std::same_as<std::size_t>;  // what its bins' capacities may sum up to
  { P::denied(t) } -> std::same_as<Denial>;
  { P::denied_often(t, microseconds) } -> std::same_as<void>;  // at that time
  { P::next_to_give(t) } -> std::same_as<Bin>;                 // 0 and what has no capacity is passed over
  { P::next_to_look_at(t) } -> std::same_as<Bin>;
  // Has it not moved since the last look, so that it is to give up half?
  { P::is_unused(t, bin, fingerprint) } -> std::same_as<bool>;
  // Is the capacities' sum more than it should come to be, so that it is to give up half, too?
  { P::is_over(seen, allowance, size) } -> std::same_as<bool>;
  // Any thread reports new spans and refills; the other events at the boundary while the policy watches.
  // Once, when the heap opens; on so many processors
  { P::set_learning(learning, cap, capacity) } -> std::same_as<void>;
  { P::cap() } -> std::same_as<Cap>;
  { P::change(cap, cap) } -> std::same_as<void>;  // at any time: what differs between these two
  { P::watches() } -> std::same_as<bool>;
  { P::notes_size(seen) } -> std::same_as<bool>;  // of the refill that ended: it is to be reported
  // So many slots of a class, by a thread that missed one for that size
  { P::refilled(t, bin, size, capacity) } -> std::same_as<void>;
  { P::span_acquired(t, bin) } -> std::same_as<void>;  // with no lock of the pool's or the source's held
  { P::span_retired(bin) } -> std::same_as<void>;      // likewise
  { P::is_timed(t) } -> std::same_as<bool>;            // of a crossing that begins: its times are asked for
  // From when to when; a window of time ended: bounds are to be set again
  { P::crossed(t, microseconds, microseconds) } -> std::same_as<bool>;
  { P::bounds(microseconds) } -> std::same_as<Bounds>;
  { P::holds(microseconds, held) } -> std::same_as<void>;  // at that time; presets are rated by it
  // The purger's pause, usually so many milliseconds, after scans of so many microseconds that found nothing
  { P::purger_rest(capacity, microseconds) } -> std::same_as<unsigned>;
  { P::looks() } -> std::same_as<unsigned>;  // granules to look at for free pages, for each new span; 0: none
  { P::watched() } -> std::same_as<const SizeWatch&>;  // for a profile
  { P::peak() } -> std::same_as<Held>;                 // the highest that was reported, likewise
  { P::begin_process() } -> std::same_as<void>;        // in the child of a fork
  { P::decisions() } -> std::same_as<Decisions>;
  // Once, when the heap opens: of the presets that it rates, that one is in force, whether it learns or not.
  // False: there is none
  { P::fix(name) } -> std::same_as<bool>;
};

}  // namespace hz
