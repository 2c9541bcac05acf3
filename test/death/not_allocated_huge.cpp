// SPDX-License-Identifier: Apache-2.0
//
// A huge block freed twice: with the first free its address range is gone.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(NotAllocatedHuge, "E02 not-allocated", kFatal) {
  void* block = api::Malloc(16 << 20);
  api::Free(block);
  scene.Expect(block, hz_test::Scene::kNoClass);
  api::Free(block);
}
