// SPDX-License-Identifier: Apache-2.0
//
// free of an address far inside a huge block.
#include "death/bug.hpp"
#include "support/pattern.hpp"

namespace api = hz_test::api;

HZ_BUG(InteriorHugeFar, "E04 interior-pointer", kFatal) {
  void* block = api::Malloc(16 << 20);
  hz_test::FillPattern(block, 16 << 20, 1);
  void* inside = hz_test::Inside(block, 8 << 20);
  scene.Expect(inside, hz_test::Scene::kNoClass);  // a huge block has no class
  api::Free(inside);
  scene.Check(hz_test::HasPattern(block, 16 << 20, 1), "the block around it is left alone");
  api::Free(block);
}
