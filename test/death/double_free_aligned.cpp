// SPDX-License-Identifier: Apache-2.0
//
// An over-aligned block freed twice.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeAligned, "E03 double-free", kFatal) {
  void* block = api::AlignedAlloc(1024, 1000);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  scene.Expect(block, usable);
  api::Free(block);
}
