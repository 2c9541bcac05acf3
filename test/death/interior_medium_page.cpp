// SPDX-License-Identifier: Apache-2.0
//
// free of a page inside a medium block.
#include "death/bug.hpp"
#include "support/pattern.hpp"

namespace api = hz_test::api;

HZ_BUG(InteriorMediumPage, "E04 interior-pointer", kFatal) {
  void* block = api::Malloc(20'000);
  hz_test::FillPattern(block, 20'000, 1);
  void* inside = hz_test::Inside(block, 4096);
  scene.Expect(inside, api::UsableSize(block));
  api::Free(inside);
  scene.Check(hz_test::HasPattern(block, 20'000, 1), "the block around it is left alone");
  api::Free(block);
}
