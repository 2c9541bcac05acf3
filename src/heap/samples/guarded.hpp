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

#include "base/size_classes.hpp"
#include "box/guard/contract.hpp"

namespace hz {

struct GuardedPool {
  static constexpr unsigned kPlaces = 256;

  // Whether there are such pages. Acquire: who sees that finds them.
  static bool is_on() { return state.bytes.load(std::memory_order_acquire) != 0; }
  // One allocation in how many; 0: none at the time. Acquire: as in is_on().
  static std::uint64_t every() { return state.every.load(std::memory_order_acquire); }
  // Bytes that such a block can have.
  static std::size_t most() { return state.page; }
  // When the heap opens: from now on one allocation in `every`; or a warning why not. `line`: for reports.
  static void open(std::uint64_t every, const char* line);
  // From now on accesses are told of, and stacks are whole. Without a lock: the C library is asked.
  static void hear(bool& walking);
  // While the process runs: the same, and 0: none, and the blocks that there are stay. False if there is no
  // memory for it. Without a lock of the heap's. `walking`: see heap/samples/stacks.hpp.
  static bool change(std::uint64_t every, const char* line, bool& walking);
  static void in_child();  // a process begins

  // Whether it is an address of ours.
  static bool has(const void* at) {
    // Acquire: as in is_on().
    const std::size_t bytes = state.bytes.load(std::memory_order_acquire);
    return bytes != 0 && reinterpret_cast<std::uintptr_t>(at) - state.base < bytes;
  }

  // Returns a block that reads as zero; nullptr if all places are in use, or the system refuses.
  // Lock: the caller holds the thread's lock.
  static void* take(Bin bin, std::size_t size, std::size_t alignment);
  // Shrinks a live block where it lies; the bytes that it loses are checked at its free.
  // Requires: `size` is no larger than the block, and not 0.
  static void shrink(const void* block, std::size_t size);
  // Whose it is, without a lock, before the program has it. `walking`: see heap/samples/stacks.hpp.
  static void note(const void* block, const void* caller, bool& walking);

  struct Finding {
    Fault fault = Fault::kNone;
    Bin bin = 0;
    std::uintptr_t at = 0;  // what is wrong, if not the pointer
  };
  // What a free of it would find.
  static Finding look(const void* at);
  // Visits live blocks, and maybe a block that another thread frees meanwhile. Returns the visitor's first
  // answer that is not 0, or 0.
  static int walk(int (*visit)(void* block, std::size_t bytes, void* argument), void* argument);
  static std::size_t size_of(const void* block);  // that was asked for; 0: no live block begins there
  static bool is_start(const void* at);           // of one, live or free

  static constexpr unsigned kMostFrames = 32;
  struct Stack {
    std::uint64_t thread = 0;
    std::uint32_t depth = 0;
    void* frames[kMostFrames] = {};

    void walk(const void* caller, bool& walking);
  };
  // Ends a block, unless what is found says that it is none: kOutOfBounds, though, is found of one that does.
  // `by`: who ends it. With the thread's lock: no fork comes between the page and the ring.
  static Finding release(const void* block, const Stack& by);

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
