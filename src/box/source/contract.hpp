// SPDX-License-Identifier: Apache-2.0
//
// Role: where do spans come from? The source deals out runs of granules and takes them back; it alone talks to the
// operating system about user memory. Free runs it holds are dirty (backed by memory) until purged.
#pragma once

#include <concepts>

#include "base/units.hpp"

namespace hz {

struct Run {
  std::uintptr_t at = 0;  // 0: memory cannot be had
  bool zeroed = false;    // reads as zero
};

template <class S>
concept SourceContract = requires(typename S::Global& g, const typename S::Global& seen, std::uintptr_t at,
                                  std::size_t bytes, std::size_t granules, std::size_t alignment, bool fresh) {
  { S::open(g, bytes) } -> std::same_as<bool>;        // bytes of tables wanted per granule, before the first run
  { S::base(seen) } -> std::same_as<std::uintptr_t>;  // arena and tables
  { S::bytes(seen) } -> std::same_as<std::size_t>;
  { S::tables(seen) } -> std::same_as<std::uintptr_t>;          // the tables of the others
  { S::acquire(g, granules, alignment) } -> std::same_as<Run>;  // alignment in granules
  { S::release(g, at, fresh) } -> std::same_as<void>;           // fresh: its pages went back already
  { S::resize(g, at, granules) } -> std::same_as<bool>;         // in place or not at all
  { S::granules(g, at) } -> std::same_as<std::size_t>;          // of the run that starts at `at`
  { S::start(g, at) } -> std::same_as<std::uintptr_t>;          // of the run in use around `at`, 0 if none
  { S::dirty_bytes(seen) } -> std::same_as<std::size_t>;
  { S::reached_bytes(g) } -> std::same_as<std::size_t>;  // of the arena, so far
  { S::purge(g, bytes) } -> std::same_as<std::size_t>;   // keep at most this much dirty; what was purged
  { S::free_locks(g) } -> std::same_as<void>;            // in the child of a fork
};

}  // namespace hz
