// SPDX-License-Identifier: Apache-2.0
//
// hz_heap_realloc of a block of another heap.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(HeapOfAnother, "E01 foreign-pointer", kFatal) {
  hz_heap_t* const heap = hz_heap_new();
  hz_heap_t* const other = hz_heap_new();
  void* const block = hz_heap_malloc(heap, 64);
  scene.Expect(block, hz_test::Scene::kNoClass);
  scene.Check(hz_heap_realloc(other, block, 1000) == nullptr, "it is not resized");
  scene.Check(hz_check(block) == 0, "it is left alone");
  hz_heap_destroy(heap);
  hz_heap_destroy(other);
}
