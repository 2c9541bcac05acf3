// SPDX-License-Identifier: Apache-2.0
//
// free of a misaligned address inside a small block.
#include "death/bug.hpp"
#include "support/pattern.hpp"

namespace api = hz_test::api;

HZ_BUG(InteriorOdd, "E04 interior-pointer", kFatal) {
  void* block = api::Malloc(64);
  hz_test::FillPattern(block, 64, 1);
  void* inside = hz_test::Inside(block, 8);
  scene.Expect(inside, api::UsableSize(block));
  api::Free(inside);
  scene.Check(hz_test::HasPattern(block, 64, 1), "the block around it is left alone");
  api::Free(block);
}
