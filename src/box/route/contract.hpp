// SPDX-License-Identifier: Apache-2.0
//
// Role: which class and owner does this address belong to? A free asks once; the answer is one word, the tag.
// The heap binds tags when slots are carved and clears them when a span is retired, so a tag of zero means
// that nothing was ever handed out there (MISS outside of the arena, INVALID inside; the guard tells them
// apart).
#pragma once

#include <concepts>

#include "base/size_classes.hpp"

namespace hz {

template <class R>
concept RouteContract = requires(typename R::Global& g, const typename R::Global& seen,
                                 typename R::PerThread& thread, typename R::Tag tag, std::uintptr_t at,
                                 std::size_t bytes, Bin bin, unsigned owner) {
  { R::kOwned } -> std::convertible_to<bool>;  // tags name an owner; else every valid tag is everybody's
  { R::kMostOwners } -> std::convertible_to<unsigned>;  // then: so many, counted from 0
  { R::kByPages } -> std::convertible_to<bool>;  // it knows whole pages: what starts in one was handed out
  { R::kTableBytesPerGranule } -> std::convertible_to<std::size_t>;
  { R::open(g, at, bytes) } -> std::same_as<void>;  // once: the arena, with the route's table at its start
  // The arena is so long by now, and so is the table; it only grows
  { R::cover(g, bytes) } -> std::same_as<void>;
  { R::find(seen, at) } -> std::same_as<typename R::Tag>;  // hot; any address; 0 if nothing is there
  { R::covers(seen, at) } -> std::same_as<bool>;           // within the arena?
  // Slots that start here are about to be handed out
  { R::bind(g, at, bytes, bin, owner) } -> std::same_as<void>;
  { R::clear(g, at, bytes) } -> std::same_as<void>;  // nothing here is handed out any more
  { R::bin(tag) } -> std::same_as<Bin>;
  { R::owner(tag) } -> std::same_as<unsigned>;
  { R::join(thread, owner) } -> std::same_as<void>;  // this thread frees for `owner`
  // Hot; 0 or above kLastBin unless the slot is ours
  { R::local_bin(tag, thread) } -> std::same_as<typename R::Tag>;
};

}  // namespace hz
