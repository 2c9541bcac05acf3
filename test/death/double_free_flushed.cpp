// SPDX-License-Identifier: Apache-2.0
//
// A block freed again after its batch has left the thread; a neighbour keeps the span alive.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeFlushed, "E03 double-free", kFatal) {
  constexpr int kCount = 4000;
  static void* blocks[kCount];
  for (void*& block : blocks) block = api::Malloc(64);
  const std::size_t usable = api::UsableSize(blocks[0]);
  // Every other one, so that no span becomes empty.
  for (int i = 0; i < kCount; i += 2) api::Free(blocks[i]);
  api::Trim();
  scene.Expect(blocks[1000], usable);
  api::Free(blocks[1000]);
  hz_test::Scene::SlotsComeHome();
  for (int i = 1; i < kCount; i += 2) api::Free(blocks[i]);
}
