// SPDX-License-Identifier: Apache-2.0
//
// The rules of C and POSIX around the heap: ENOMEM, EINVAL, zero sizes. Shared by the malloc family and the direct API;
// inlined, so that the hot path stays one function.
#pragma once

#include <errno.h>

#include "export/line.hpp"

namespace hz::c_rules {

HZ_COLD inline void* no_memory() {
  errno = ENOMEM;
  return nullptr;
}
HZ_COLD inline void* invalid() {
  errno = EINVAL;
  return nullptr;
}
HZ_INLINE void* or_no_memory(void* block) { return HZ_LIKELY(block != nullptr) ? block : no_memory(); }

inline void* calloc(std::size_t count, std::size_t size) { return or_no_memory(ThisHeap::calloc(count, size)); }

inline void* realloc(void* block, std::size_t size) {
  if (block == nullptr) return or_no_memory(ThisHeap::malloc(size));
  if (size == 0) {
    ThisHeap::free(block);
    return nullptr;
  }
  return or_no_memory(ThisHeap::realloc(block, size));
}

inline void* reallocarray(void* block, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : realloc(block, bytes);
}

inline void* aligned(std::size_t alignment, std::size_t size) {
  if (!is_power_of_two(alignment) || alignment > ThisHeap::kMaxAlignment) return invalid();
  return or_no_memory(ThisHeap::aligned(alignment, size));
}

}  // namespace hz::c_rules
