// SPDX-License-Identifier: Apache-2.0
//
// A block of 128 KiB freed twice: its span waits in a cache.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeLarge, "E03 double-free", kFatal) {
  void* block = api::Malloc(128 << 10);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  scene.Expect(block, usable);
  api::Free(block);
}
