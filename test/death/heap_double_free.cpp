// SPDX-License-Identifier: Apache-2.0
//
// A block of a first-class heap freed twice, with another free between.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(HeapDoubleFree, "E03 double-free", kFatal) {
  hz_heap_t* const heap = hz_heap_new();
  void* const block = hz_heap_malloc(heap, 100);
  void* const other = hz_heap_malloc(heap, 100);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  api::Free(other);
  scene.Expect(block, usable);
  api::Free(block);
  scene.Check(hz_heap_malloc(heap, 100) != hz_heap_malloc(heap, 100), "no block is handed out twice");
  hz_heap_destroy(heap);
}
