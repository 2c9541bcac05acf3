// SPDX-License-Identifier: Apache-2.0
//
// First-class heaps of the measured allocator, on Windows: asked of nobody there, for the programs are linked
// with one line each, and with a C library that has none.
#pragma once

#include <cstddef>

namespace hz::bench {

struct HeapFunctions {
  void* (*begin)() = nullptr;
  void* (*allocate)(void* heap, std::size_t size) = nullptr;
  void (*destroy)(void* heap) = nullptr;

  bool complete() const { return false; }
};

inline HeapFunctions find_heap_functions() { return {}; }

}  // namespace hz::bench
