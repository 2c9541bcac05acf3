// SPDX-License-Identifier: Apache-2.0
//
// realloc of a block that was freed: NULL.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(ReallocFreed, "E03 double-free", kFatal) {
  void* block = api::Malloc(64);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  scene.Expect(block, usable);
  scene.Check(api::Realloc(block, 4000) == nullptr, "realloc of a bad pointer is NULL");
}
