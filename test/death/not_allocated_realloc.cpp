// SPDX-License-Identifier: Apache-2.0
//
// realloc of a huge block that was freed.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(NotAllocatedRealloc, "E02 not-allocated", kFatal) {
  void* block = api::Malloc(16 << 20);
  api::Free(block);
  scene.Expect(block, hz_test::Scene::kNoClass);
  scene.Check(api::Realloc(block, 32 << 20) == nullptr, "realloc of a bad pointer is NULL");
}
