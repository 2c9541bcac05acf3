// SPDX-License-Identifier: Apache-2.0
//
// realloc of a freed block to a size that would fit where it is: NULL all the same.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(ReallocFreedInPlace, "E03 double-free", kFatal) {
  void* block = api::Malloc(64);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  scene.Expect(block, usable);
  scene.Check(api::Realloc(block, 60) == nullptr, "realloc of a bad pointer is NULL");
}
