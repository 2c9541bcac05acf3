// SPDX-License-Identifier: Apache-2.0
//
// The measured allocator, as lanes call it on Windows, where nothing is preloaded: by the direct API of the
// line that the program was linked with. The program without a line has the C library's malloc behind these
// names (c_runtime.cpp).
#pragma once

#include <cstddef>

#include "hakozuna/hakozuna.h"

namespace hz::bench {

struct SystemAllocator {
  static void* allocate(std::size_t size) { return hz_malloc(size); }
  static void* reallocate(void* p, std::size_t size) { return hz_realloc(p, size); }
  static void release(void* p) { hz_free(p); }
  // A block of the first is freed by the second: the C library of Windows has one free for these blocks and
  // one for others.
  static void* allocate_aligned(std::size_t alignment, std::size_t size) {
    return hz_aligned_alloc(alignment, size);
  }
  static void release_aligned(void* p, std::size_t alignment, std::size_t size) {
    hz_free_aligned_sized(p, alignment, size);
  }
};

}  // namespace hz::bench
