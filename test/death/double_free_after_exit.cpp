// SPDX-License-Identifier: Apache-2.0
//
// A block freed again after the thread that allocated and freed it is gone.
#include <thread>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeAfterExit, "E03 double-free", kFatal) {
  void* block = nullptr;
  void* neighbours[200];
  std::size_t usable = 0;
  std::thread([&] {
    for (int i = 0; i < 100; ++i) neighbours[i] = api::Malloc(64);
    block = api::Malloc(64);
    for (int i = 100; i < 200; ++i) neighbours[i] = api::Malloc(64);
    usable = api::UsableSize(block);
    api::Free(block);
  }).join();
  scene.Expect(block, usable);
  api::Free(block);
  hz_test::Scene::SlotsComeHome();
  for (void* neighbour : neighbours) api::Free(neighbour);
}
