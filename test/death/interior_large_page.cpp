// SPDX-License-Identifier: Apache-2.0
//
// free of a page inside a large block.
#include "death/bug.hpp"
#include "support/pattern.hpp"

namespace api = hz_test::api;

HZ_BUG(InteriorLargePage, "E04 interior-pointer", kFatal) {
  void* block = api::Malloc(128 << 10);
  hz_test::FillPattern(block, 128 << 10, 1);
  void* inside = hz_test::Inside(block, 4096);
  scene.Expect(inside, api::UsableSize(block));
  api::Free(inside);
  scene.Check(hz_test::HasPattern(block, 128 << 10, 1), "the block around it is left alone");
  api::Free(block);
}
