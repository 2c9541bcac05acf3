// SPDX-License-Identifier: Apache-2.0
//
// Role: bounds the free memory that is kept, and says when pages return. The boundary reports every byte that
// leaves or joins the spans and the shared lists. It asks whether slots may wait in the exchange, and how
// much may stay dirty. While no thread takes the slow path, the purger's tick asks instead.
#pragma once

#include <concepts>
#include <cstddef>

#include "base/layout.hpp"

namespace hz {

// What the user and the line's presets set; 0 and kUsual leave it as it is.
struct RetainSettings {
  static constexpr std::size_t kUsual = ~std::size_t{0};
  std::size_t percent = 0;     // of live bytes, may be held
  std::size_t floor = kUsual;  // free bytes that may stay in any case
};

// Memory that no thread has needed for a while.
struct Unneeded {
  std::size_t waiting = 0, dirty = 0;  // bytes
};

template <class R>
concept RetainContract = requires(typename R::Global& g, const typename R::Global& seen,
                                  typename R::PerThread& t, const typename R::PerThread& own,
                                  std::size_t bytes, unsigned sharers, bool yes,
                                  const RetainSettings& settings) {
  { R::set(g, settings) } -> std::same_as<void>;  // when the heap opens, and at any time later
  { R::settings(seen) } -> std::same_as<RetainSettings>;
  // By the policy, at any time: no more per cent, no larger floor; and whether slots may wait for as much as
  // there recently was
  { R::bound(g, sharers, bytes, yes) } -> std::same_as<void>;
  { R::set_purger(g, yes) } -> std::same_as<void>;  // a purger is at work, or no longer
  { R::has_purger(seen) } -> std::same_as<bool>;
  // By a thread, with its own part of the books.
  { R::slots_out(t, bytes) } -> std::same_as<void>;       // slots left their spans
  { R::slots_returned(t, bytes) } -> std::same_as<void>;  // ... and returned
  { R::span_used(t, bytes) } -> std::same_as<void>;       // a span for slots was had ...
  { R::span_retired(t, bytes) } -> std::same_as<void>;    // ... and given back
  { R::waiting_added(t, bytes) } -> std::same_as<void>;   // slots began to wait in the exchange
  { R::waiting_taken(t, bytes) } -> std::same_as<void>;
  { R::bins_grown(t, bytes) } -> std::same_as<void>;   // thread bins may hold so much more ...
  { R::bins_shrunk(t, bytes) } -> std::same_as<void>;  // ... or less
  // Around these, and around questions: reads what others folded, if it is time to; folds what was counted,
  // if it is so much. Of one sharer, always.
  { R::enter(seen, t, sharers) } -> std::same_as<void>;
  { R::leave(g, t, sharers) } -> std::same_as<void>;
  { R::fold(g, t) } -> std::same_as<void>;  // whatever it is
  // Read at once: before what is dear is done by what was read earlier
  { R::look(seen, t) } -> std::same_as<void>;
  { R::rest(g, yes) } -> std::same_as<void>;                // time has passed; idle: no thread is at work
  { R::at_rest(seen) } -> std::same_as<bool>;               // more of it would change nothing
  { R::may_wait(seen, own, bytes) } -> std::same_as<bool>;  // may slots of that size wait in shared lists?
  { R::must_go(seen, own) } -> std::same_as<bool>;  // ... so many that even their owner is to lose some
  // Purge when free dirty memory exceeds this ...
  { R::dirty_limit(seen, own) } -> std::same_as<std::size_t>;
  { R::dirty_target(seen, own) } -> std::same_as<std::size_t>;  // ... until it is down to that
  { R::paid_for(seen) } -> std::same_as<std::size_t>;           // ... so many bytes, without a purger ...
  { R::purged(g, bytes) } -> std::same_as<void>;                // ... and so much was
  { R::purged_before(g, bytes) } -> std::same_as<void>;  // so much of what will be purged has no memory
  // Of what waits and so much dirty; at each tick; all idle?
  { R::unneeded(g, bytes, yes) } -> std::same_as<Unneeded>;
  // Are many bytes of spans free slots? So many of the bytes that are out are no slots of spans, as in the
  // next ones; so many threads
  { R::has_slack(seen, own, bytes, sharers) } -> std::same_as<bool>;
  { R::little(seen) } -> std::same_as<std::size_t>;     // bytes that are not many
  { R::was_always_small(seen) } -> std::same_as<bool>;  // true if little ever lived in the process
  // Do few slots keep many spans?
  { R::sparse(seen, bytes) } -> std::same_as<bool>;
  // Returns true if a thread may have its own span although others' have free slots.
  { R::may_spread(own, bytes) } -> std::same_as<bool>;
  { R::live_bytes(own) } -> std::same_as<std::size_t>;
  { R::out_bytes(seen) } -> std::same_as<std::size_t>;
  // Of these, what waits or may be in the bins of threads
  { R::idle_bytes(seen) } -> std::same_as<std::size_t>;
  { R::waiting_bytes(seen) } -> std::same_as<std::size_t>;
  { R::span_bytes(seen) } -> std::same_as<std::size_t>;  // of spans in use
  { R::peak_bytes(seen) } -> std::same_as<std::size_t>;
};

// The ticks of the purger, see heap/process/purger.hpp.
template <class B>
concept BackgroundContract = requires(std::size_t bytes, unsigned ticks) {
  { B::kTickMilliseconds } -> std::convertible_to<unsigned>;
  { B::kRetryMilliseconds } -> std::convertible_to<unsigned>;  // after the system refused a thread
  { B::tidies(ticks) } -> std::same_as<bool>;                  // in this tick, although threads are at work?
  { B::worth(bytes) } -> std::same_as<bool>;                   // is a heap that holds so much worth a thread?
  { B::is_idle(ticks) } -> std::same_as<bool>;          // a thread that has not moved for so many ticks?
  { B::is_still(ticks) } -> std::same_as<bool>;         // a process of which no thread has?
  { B::outgrown(bytes, bytes) } -> std::same_as<bool>;  // the heap has shrunk: are caches from larger days?
  { B::at_rest(ticks) } -> std::same_as<bool>;          // so many ticks without work: sleep or end?
};

}  // namespace hz
