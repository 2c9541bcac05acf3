// SPDX-License-Identifier: Apache-2.0
//
// A small block freed twice in a row.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeAtOnce, "E03 double-free", kFatal) {
  void* block = api::Malloc(64);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  scene.Expect(block, usable);
  api::Free(block);
}
