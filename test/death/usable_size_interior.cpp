// SPDX-License-Identifier: Apache-2.0
//
// The usable size of an address inside a block is 0.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(UsableSizeInterior, "E04 interior-pointer", kFatal) {
  void* block = api::Malloc(64);
  void* inside = hz_test::Inside(block, 16);
  scene.Expect(inside, api::UsableSize(block));
  scene.Check(api::UsableSize(inside) == 0, "the usable size of a bad pointer is 0");
  api::Free(block);
}
