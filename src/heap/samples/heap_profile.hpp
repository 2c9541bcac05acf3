// SPDX-License-Identifier: Apache-2.0
//
// The heap profile: which call stacks the program's memory comes from, known by samples. A block of s bytes
// is a sample with probability 1 - exp(-s / interval), whatever came before it, and stands for as many blocks
// as that one is of. Here are the tables of stacks and of samples that live, what they add up to, and the
// text that is written of them; which allocation is a sample is drawn (heap/samples/sampling.hpp) and counted
// down by the heap (heap/api/quotas.hpp). Kept with HZ_PROFILE_HEAP alone, or once that is set while the
// process runs; called for samples, and when a huge block is freed or asked about: costs a walk along the
// stack and a lock of its own, which is the last that a thread takes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "base/size_classes.hpp"
#include "heap/samples/python_functions.hpp"
#include "os/lock.hpp"

namespace hz {

struct HeapProfile {
  static constexpr unsigned kMostFrames = 64, kLifetimes = 24;
  static constexpr std::uint32_t kMostSites = 1U << 14;

  // Whether there is a profile. Acquire: who sees that finds its tables.
  static bool is_on() { return state.interval.load(std::memory_order_acquire) != 0; }
  // Bytes between two samples; 0: none is taken at the time.
  static std::uint64_t interval() {
    return state.pauses.load(std::memory_order_relaxed) ? 0 : state.interval.load(std::memory_order_relaxed);
  }
  // When the heap opens: from now on there is a profile, or a warning that there is no memory for one.
  static void open(std::size_t interval);
  // When the loader has come to constructors: from now on stacks are whole, or a warning that they are not.
  static void at_load(bool& walking);
  // While the process runs: samples of this interval from now on; 0: none, and those that there are stay.
  // False if there is no memory for a profile. By one thread at a time, without a lock of the heap's.
  static bool change(std::size_t interval, bool& walking);
  static void in_child();  // a process begins
  // Before the program loads a library, which may bring an interpreter: finds one that was loaded since.
  static void before_load();

  // Whether there is room for another sample, which is promised.
  static bool has_room();
  static void give_up();  // there was no memory for what was to be a sample

  // One that is no thread's but the caller's, without a lock. `caller` and `walking`: see
  // heap/samples/stacks.hpp.
  static void add(const void* block, Bin bin, std::size_t bytes, const void* caller, bool& walking);
  // The class of a block that is a sample, kHugeBin of a huge one; 0 if it is none.
  static Bin bin_of(const void* block);

  // A block ends, and nobody else can have its address yet. The same.
  static Bin end(const void* block);

  struct Live {
    std::uintptr_t block = 0;  // 0: none
    std::uint32_t site = 0;
    std::uint32_t bin = 0;
    std::uint64_t bytes = 0;
    std::uint64_t interval = 0;  // at which it was chosen
    std::uint64_t since = 0;     // microseconds
  };

  // False where none is kept, another thread is at it, or it cannot be written. Null: where the user said.
  // `patience`: milliseconds for the lock, which who interrupted a thread may wait for in vain; 0: endless.
  static bool write(const char* path, const char* line, unsigned patience);

  // Live samples that belong to a class. They lie in runs of their own, as huge blocks do.
  static std::size_t samples() { return state.samples.load(std::memory_order_relaxed); }
  static std::size_t sample_bytes() { return state.sample_bytes.load(std::memory_order_relaxed); }

  static std::size_t metadata_bytes() { return state.bytes.load(std::memory_order_relaxed); }

  // Words for who looks from outside.
  struct Site {
    std::uint32_t state = 0;  // 0: empty, and so are all that follow
    std::uint32_t depth = 0;
    // Blocks and bytes that the samples stand for
    std::uint64_t live_blocks = 0, live_bytes = 0;
    std::uint64_t peak_blocks = 0, peak_bytes = 0;  // when all live bytes together were the most
    std::uint64_t allocated_blocks = 0, allocated_bytes = 0;
    std::uint64_t hash = 0;
    std::uint64_t samples = 0, freed = 0;               // as they are
    std::uint64_t live_parts = 0, allocated_parts = 0;  // of blocks, kParts in one
    std::uint32_t lifetimes[kLifetimes] = {};  // of those that were freed: [2^i, 2^(i+1)) microseconds
    std::uintptr_t frames[kMostFrames] = {};
  };
  struct State {
    std::atomic<std::uint64_t> interval;  // of the last samples; 0: there never was a profile
    std::atomic<bool> pauses;
    Site* sites;
    std::atomic<std::uint64_t> dropped;  // samples that there was no room for
    std::atomic<std::uint64_t> bytes;  // of quotas, and of all tables of samples, as far as they are touched
    std::atomic<std::uint64_t> samples, sample_bytes;  // those that live and belong to a class
    PythonFunctions::Entry* functions;                 // null: there is no interpreter
  };
  static inline constinit State state = {};

  static constexpr auto words(layout::Part part, layout::Part pattern) {
    using Word = layout::Word;
    constexpr std::size_t kWide = sizeof(std::uint64_t);
    return layout::joined(
        layout::placed(layout::Words<7>{Word("profile.interval", offsetof(State, interval), kWide),
                                        {"profile.sites", offsetof(State, sites), sizeof(void*)},
                                        {"profile.dropped", offsetof(State, dropped), kWide},
                                        {"profile.bytes", offsetof(State, bytes), kWide},
                                        {"profile.samples", offsetof(State, samples), kWide},
                                        {"profile.sample_bytes", offsetof(State, sample_bytes), kWide},
                                        {"profile.functions", offsetof(State, functions), sizeof(void*)}},
                       part, 0),
        layout::placed(PythonFunctions::words_of_entry(), pattern, 0),
        layout::placed(layout::Words<14>{Word("site.bytes", sizeof(Site)),
                                         {"site.most", kMostSites},
                                         {"site.state", offsetof(Site, state), sizeof(std::uint32_t)},
                                         {"site.live_blocks", offsetof(Site, live_blocks), kWide},
                                         {"site.live_bytes", offsetof(Site, live_bytes), kWide},
                                         {"site.allocated_blocks", offsetof(Site, allocated_blocks), kWide},
                                         {"site.allocated_bytes", offsetof(Site, allocated_bytes), kWide},
                                         {"site.peak_blocks", offsetof(Site, peak_blocks), kWide},
                                         {"site.peak_bytes", offsetof(Site, peak_bytes), kWide},
                                         {"site.samples", offsetof(Site, samples), kWide},
                                         {"site.freed", offsetof(Site, freed), kWide},
                                         {"site.lifetimes", offsetof(Site, lifetimes), 4, kLifetimes},
                                         {"site.depth", offsetof(Site, depth), sizeof(std::uint32_t)},
                                         {"site.frames", offsetof(Site, frames), sizeof(void*), kMostFrames}},
                       pattern, 0));
  }

 private:
  static constexpr unsigned kParts = 1U << 12;
};

}  // namespace hz
