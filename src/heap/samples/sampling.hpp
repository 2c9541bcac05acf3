// SPDX-License-Identifier: Apache-2.0
//
// Which allocations are samples: of the heap profile, a block of s bytes with probability 1 - exp(-s /
// interval); and of those that lie on guarded pages, one allocation in N. One countdown serves both: it runs
// to the next allocation that is either, and that one is the profile's with the profile's own probability,
// else the other's. So neither knows whether the other is there. Called by heap.hpp and heap/api/quotas.hpp,
// with the thread's lock held; costs two logarithms a sample.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"
#include "base/size_classes.hpp"
#include "heap/samples/guarded.hpp"
#include "heap/samples/heap_profile.hpp"

namespace hz {

// The extensions of every line of boxes.
using Extensions = ExtensionList<HeapProfile, GuardedPool>;

// How far a thread, or a heap without threads, is from its next samples. A place with zeroes is a new one.
struct Countdown {
  std::uint64_t left[kBins] = {};  // allocations of the class until one is a sample, itself included; 0: not
                                   // drawn
  Random random = {};
  Rates rates;  // for which it was drawn
};

enum class Sample : std::uint8_t {
  kNone,
  kRecorded,  // a block in a run, which an extension records
  kOwned,     // an extension's block
};

struct Sampling {
  // Whether there are samples, or were: what they changed may have to be ended.
  static bool is_on() { return HeapProfile::records() || GuardedPool::is_on(); }
  static Rates rates() { return {.interval = HeapProfile::interval(), .every = GuardedPool::every()}; }

  // What the next allocation of a class is, or a huge block of so many bytes. Of the profile there is room
  // for it. `own`: the program does not get it.
  static Sample next(Countdown& countdown, Bin bin, std::size_t bytes, bool own);
  static void draw(Countdown& countdown, Bin bin, std::size_t bytes);  // if it is to be

  // Bytes of quotas, and of all tables of extensions, as far as they are touched.
  static std::atomic<std::uint64_t>& metadata() { return HeapProfile::state.bytes; }
  // Zeroed memory for a thread's quota; nullptr if there is none.
  static void* map_quota(std::size_t bytes);
  static void unmap_quota(void* quota, std::size_t bytes);

  static double chance_of(double rate);  // 1 - exp(-rate)
};

}  // namespace hz
