// SPDX-License-Identifier: Apache-2.0
//
// Role: what is counted? Events are counted at the boundary and on slow paths, per thread, and summed when
// somebody asks. Counting never steers behaviour.
#pragma once

#include <concepts>
#include <cstdint>

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

template <class O>
concept ObserveContract = requires(typename O::PerThread& thread, const typename O::PerThread& seen,
                                   Event event, std::uint64_t n, std::uint64_t* sums) {
  { O::count(thread, event, n) } -> std::same_as<void>;  // by the thread itself
  { O::add_to(seen, sums) } -> std::same_as<void>;       // kEvents sums; any thread
};

}  // namespace hz
