// SPDX-License-Identifier: Apache-2.0
//
// A first-class heap destroyed twice, while a new one has its place.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(HeapDestroyedTwice, "E07 no-heap", kFatal) {
  hz_heap_t* const heap = hz_heap_new();
  hz_heap_malloc(heap, 64);
  hz_heap_destroy(heap);
  hz_heap_t* const next = hz_heap_new();
  void* const block = hz_heap_malloc(next, 64);
  scene.Expect(heap, hz_test::Scene::kNoClass);
  hz_heap_destroy(hz_test::Opaque(heap));
  scene.Check(hz_check(block) == 0, "the new one is left alone");
  hz_heap_destroy(next);
}
