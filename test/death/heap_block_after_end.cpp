// SPDX-License-Identifier: Apache-2.0
//
// free of a block whose heap was destroyed.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(HeapBlockAfterEnd, "E02 not-allocated", kFatal) {
  hz_heap_t* const heap = hz_heap_new();
  void* const block = hz_heap_malloc(heap, 64);
  hz_heap_destroy(heap);
  scene.Expect(block, hz_test::Scene::kNoClass);
  api::Free(block);
}
