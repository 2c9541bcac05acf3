// SPDX-License-Identifier: Apache-2.0
//
// A block freed again after many others were: a check of the last free alone would miss it.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeLater, "E03 double-free", kFatal) {
  void* blocks[20];
  for (void*& block : blocks) block = api::Malloc(64);
  const std::size_t usable = api::UsableSize(blocks[0]);
  for (int i = 0; i < 15; ++i) api::Free(blocks[i]);
  scene.Expect(blocks[3], usable);
  api::Free(blocks[3]);
  hz_test::Scene::SlotsComeHome();
  for (int i = 15; i < 20; ++i) api::Free(blocks[i]);
}
