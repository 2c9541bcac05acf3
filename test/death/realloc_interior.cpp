// SPDX-License-Identifier: Apache-2.0
//
// realloc of an address inside a block: NULL, and the block keeps its content.
#include "death/bug.hpp"
#include "support/pattern.hpp"

namespace api = hz_test::api;

HZ_BUG(ReallocInterior, "E04 interior-pointer", kFatal) {
  void* block = api::Malloc(64);
  hz_test::FillPattern(block, 64, 1);
  void* inside = hz_test::Inside(block, 16);
  scene.Expect(inside, api::UsableSize(block));
  scene.Check(api::Realloc(inside, 4000) == nullptr, "realloc of a bad pointer is NULL");
  scene.Check(hz_test::HasPattern(block, 64, 1), "the block around it is left alone");
  api::Free(block);
}
