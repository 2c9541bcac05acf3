// SPDX-License-Identifier: Apache-2.0
//
// The rules of C and POSIX around the heap: ENOMEM, EINVAL, zero sizes. Shared by the malloc family and the
// direct API; inlined, so that the hot path stays one function.
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
inline void* reallocarray(void* block, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, size, &bytes) ? no_memory() : ThisHeap::realloc(block, bytes);
}

inline void* aligned(std::size_t alignment, std::size_t size) {
  if (!is_power_of_two(alignment)) return invalid();
  return ThisHeap::aligned(alignment, size);
}

}  // namespace hz::c_rules
