// SPDX-License-Identifier: Apache-2.0
//
// free_sized of a huge block, with the size of a small one.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(SizeMismatchHuge, "E05 size-mismatch", kNeverFatal) {
  void* block = api::Malloc(16 << 20);
  scene.Expect(block, hz_test::Scene::kNoClass);  // a huge block has no class
  api::FreeSized(block, 100);
}
