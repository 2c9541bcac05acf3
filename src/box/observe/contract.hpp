// SPDX-License-Identifier: Apache-2.0
//
// Role: counts events at the boundary and on slow paths, per thread, and sums them on request. Counting never
// steers behaviour.
#pragma once

#include <concepts>
#include <cstdint>

#include "base/layout.hpp"

namespace hz {

enum class Event : unsigned {
  kAllocSmall,
  kAllocMedium,
  kAllocLarge,  // in this order: see kind_of
  kFreeSmall,
  kFreeMedium,
  kFreeLarge,
  kRefill,
  kFlush,
  kRemoteSent,
  kRemoteCollected,
  kRemoteRefused,
  kSpanAcquired,
  kSpanRetired,
  kPurge,
  kPurgedBytes,
  kRevoked,
  kBytesAllocated,
  kBytesFreed,  // while counting: sizes of slots
  kBytesSent,
  kBytesCollected,  // of slots that a stranger freed without an outbox
  kCount
};
inline constexpr unsigned kEvents = static_cast<unsigned>(Event::kCount);

// For readers from outside.
inline constexpr const char* kEventNames[kEvents] = {
    "event.alloc_small",     "event.alloc_medium",     "event.alloc_large",    "event.free_small",
    "event.free_medium",     "event.free_large",       "event.refills",        "event.flushes",
    "event.remote_sent",     "event.remote_collected", "event.remote_refused", "event.spans_acquired",
    "event.spans_retired",   "event.purges",           "event.bytes_purged",   "event.revocations",
    "event.bytes_allocated", "event.bytes_freed",      "event.bytes_sent",     "event.bytes_collected"};

template <class O>
concept ObserveContract = requires(typename O::PerThread& thread, const typename O::PerThread& seen,
                                   Event event, std::uint64_t n, std::uint64_t* sums) {
  { O::count(thread, event, n) } -> std::same_as<void>;  // by the thread itself
  { O::add_to(seen, sums) } -> std::same_as<void>;       // kEvents sums; any thread
};

}  // namespace hz
