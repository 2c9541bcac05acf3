// SPDX-License-Identifier: Apache-2.0
//
// A medium block freed twice.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeMedium, "E03 double-free", kFatal) {
  void* block = api::Malloc(20'000);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  scene.Expect(block, usable);
  api::Free(block);
}
