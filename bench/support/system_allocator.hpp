// SPDX-License-Identifier: Apache-2.0
//
// The measured allocator, as lanes call it: whichever malloc the process has. Costs nothing beside the call.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace hz::bench {

struct SystemAllocator {
  static void* allocate(std::size_t size) { return std::malloc(size); }
  static void* reallocate(void* p, std::size_t size) { return std::realloc(p, size); }
  static void release(void* p) { std::free(p); }
  // A block of the first is freed by the second, for not every system has one free for all blocks.
  static void* allocate_aligned(std::size_t alignment, std::size_t size) {
    return std::aligned_alloc(alignment, size);
  }
  static void release_aligned(void* p, std::size_t, std::size_t) { std::free(p); }
};

}  // namespace hz::bench
