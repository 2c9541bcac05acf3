// SPDX-License-Identifier: Apache-2.0
//
// First-class heaps of the measured allocator, if it has some: ours, or a peer's by the names that it has
// from bench/peers, asked of the loader. Called once, before measuring.
#pragma once

#include <dlfcn.h>

#include <cstddef>

namespace hz::bench {

struct HeapFunctions {
  void* (*begin)() = nullptr;
  void* (*allocate)(void* heap, std::size_t size) = nullptr;
  void (*destroy)(void* heap) = nullptr;

  bool complete() const { return begin != nullptr && allocate != nullptr && destroy != nullptr; }
};

template <class Function>
void find_function(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// None where a line has the functions but no such heaps.
inline HeapFunctions find_heap_functions() {
  HeapFunctions heaps;
  find_function("hz_heap_new", heaps.begin);
  find_function("hz_heap_malloc", heaps.allocate);
  find_function("hz_heap_destroy", heaps.destroy);
  if (heaps.complete()) {
    void* const heap = heaps.begin();
    if (heap == nullptr) return {};
    heaps.destroy(heap);
    return heaps;
  }
  find_function("peer_heap_new", heaps.begin);
  find_function("peer_heap_malloc", heaps.allocate);
  find_function("peer_heap_destroy", heaps.destroy);
  return heaps.complete() ? heaps : HeapFunctions();
}

}  // namespace hz::bench
