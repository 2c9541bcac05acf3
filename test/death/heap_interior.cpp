// SPDX-License-Identifier: Apache-2.0
//
// free of an address inside of a block of a first-class heap.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(HeapInterior, "E04 interior-pointer", kFatal) {
  hz_heap_t* const heap = hz_heap_new();
  void* const block = hz_heap_malloc(heap, 5000);
  void* const inside = hz_test::Inside(block, 4096);
  scene.Expect(inside, api::UsableSize(block));
  api::Free(inside);
  scene.Check(hz_check(block) == 0, "the block around it is left alone");
  hz_heap_destroy(heap);
}
