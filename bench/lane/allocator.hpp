// SPDX-License-Identifier: Apache-2.0
//
// What lanes do with the measured allocator beside calling it. Loops take it as a template parameter, so that
// unit tests can run them with an allocator that keeps books.
#pragma once

#include <cstddef>
#include <cstring>

#include "lane/lane.hpp"
#include "support/system_allocator.hpp"

namespace hz::bench {

// A lane that ran out of memory has measured nothing.
inline void* checked(void* p) {
  if (p == nullptr) [[unlikely]]
    fail("malloc failed");
  return p;
}

inline void write_ends(void* p, std::size_t size) {
  volatile char* bytes = static_cast<char*>(p);
  bytes[0] = 1;
  bytes[size - 1] = 1;
}
// Of a block that was just allocated: its ends, or, `in_full`, all of it.
inline void write(void* p, std::size_t size, bool in_full) {
  in_full ? static_cast<void>(std::memset(p, 1, size)) : write_ends(p, size);
}

}  // namespace hz::bench
