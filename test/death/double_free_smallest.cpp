// SPDX-License-Identifier: Apache-2.0
//
// A block of the smallest class freed twice: its mark has the least room.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeSmallest, "E03 double-free", kFatal) {
  void* block = api::Malloc(1);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  scene.Expect(block, usable);
  api::Free(block);
}
