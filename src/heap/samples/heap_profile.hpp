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

#include "heap/samples/extension.hpp"
#include "heap/samples/python_functions.hpp"
#include "os/lock.hpp"

namespace hz {

struct HeapProfile : virtual NoExtension {
  static constexpr unsigned kMostFrames = 64, kLifetimes = 24;
  static constexpr std::uint32_t kMostSites = 1U << 14;

  // Acquire: a thread that sees it finds the tables.
  static bool records() { return state.interval.load(std::memory_order_acquire) != 0; }
  // Bytes between two samples; 0: none is taken at the time.
  static std::uint64_t interval() {
    return state.pauses.load(std::memory_order_relaxed) ? 0 : state.interval.load(std::memory_order_relaxed);
  }
  // From now on there is a profile, or a warning that there is no memory for one.
  static void open(const Rates& rates, const char* line);
  // From now on stacks are whole, or a warning that they are not.
  static void at_load(bool& walking);
  // Finds an interpreter that was loaded since.
  static void before_load();
  static void in_child();
  static bool change(const Rates& before, const Rates& now, const char* line, bool& walking);

  // Whether there is room for another sample, which is promised.
  static bool has_room();
  static void give_up();
  static void add(const void* block, Bin bin, std::size_t bytes, const void* caller, bool& walking);
  static Bin bin_of(const void* block);
  static Bin end(const void* block);

  static bool write(const char* path, const char* line, unsigned patience);

  static std::size_t samples() { return state.samples.load(std::memory_order_relaxed); }
  static std::size_t sample_bytes() { return state.sample_bytes.load(std::memory_order_relaxed); }

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

  static constexpr const void* begin_of_words() { return &state; }
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
};

}  // namespace hz
