// SPDX-License-Identifier: Apache-2.0
//
// A block freed by the thread that allocated it, and again by another.
#include <thread>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeByRemote, "E03 double-free", kFatal) {
  void* block = api::Malloc(64);
  void* neighbour = api::Malloc(64);
  const std::size_t usable = api::UsableSize(block);
  api::Free(block);
  std::thread([&] {
    scene.Expect(block, usable);
    api::Free(block);
    hz_test::Scene::SlotsComeHome();
  }).join();
  api::Free(neighbour);
}
