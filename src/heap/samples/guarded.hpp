// SPDX-License-Identifier: Apache-2.0
//
// Blocks on guarded pages: one allocation in N lies on a page of its own, at its start or its end at random,
// between pages that nobody may touch; once it is freed nobody may touch its page either, until all others
// that were free before have been used. So an access beside such a block or after its free ends at once, with
// a report that has both stacks; and what it did to bytes of the page that are no block's is found at the
// free. Kept with HZ_GUARD_SAMPLE alone, or once that is set while the process runs; called for such blocks
// (heap/samples/sampling.hpp), from slow paths. Costs two system calls and two walks along the stack a block,
// and a lock that is the last a thread takes.
//
//   base   page   guard  page   guard  page   guard      place i: one page at (2 i + 1) pages from base
//   |guard |......|guard |......|guard |......|guard
//
//   Each place is with the program (kLive), or in the ring of free ones, which is a queue: never used before
//   (kUnused), or freed (kFreed).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/samples/extension.hpp"

namespace hz {

struct GuardedPool : virtual NoExtension {
  static constexpr unsigned kPlaces = 256;

  // Whether there are such pages. Acquire: who sees that finds them.
  static bool is_on() { return state.bytes.load(std::memory_order_acquire) != 0; }
  // One allocation in how many; 0: none at the time. Acquire: as in is_on().
  static std::uint64_t every() { return state.every.load(std::memory_order_acquire); }
  // From now on one allocation in `every`; or a warning why not.
  static void open(const Rates& rates, const char* line);
  // From now on accesses are told of, and stacks are whole. Without a lock: the C library is asked.
  static void at_load(bool& walking);
  static bool change(const Rates& before, const Rates& now, const char* line, bool& walking);
  static void in_child();

  static bool has(const void* at) {
    // Acquire: as in is_on().
    const std::size_t bytes = state.bytes.load(std::memory_order_acquire);
    return bytes != 0 && reinterpret_cast<std::uintptr_t>(at) - state.base < bytes;
  }
  static bool may_take(std::size_t size) { return every() != 0 && size - 1 < state.page; }
  // Returns nullptr if all places are in use, or the system refuses.
  static void* take(Bin bin, std::size_t size, std::size_t alignment);
  static void note(const void* block, const void* caller, bool& walking);
  static void shrink(const void* block, std::size_t size);  // a free checks the bytes that it loses
  static Found look(const void* at);
  static int walk(Visit visit, void* argument);

  static constexpr unsigned kMostFrames = 32;
  struct Stack {
    std::uint64_t thread = 0;
    std::uint32_t depth = 0;
    void* frames[kMostFrames] = {};

    void walk(const void* caller, bool& walking);
  };
  // With the thread's lock: no fork comes between the page and the ring.
  static Found release(const void* block, const Stack& by);
  HZ_COLD static Found free(auto enter, const void* block, bool& walking) {
    Stack by;
    by.walk(nullptr, walking);
    const auto entered = enter();
    return release(block, by);
  }

  struct State {
    std::atomic<std::uint64_t> every;
    std::atomic<std::size_t> bytes;
    std::uintptr_t base;
    std::size_t page;
    const char* line;
  };
  static inline constinit State state = {};
};

}  // namespace hz
