// SPDX-License-Identifier: Apache-2.0
//
// A block that another thread has freed, freed again by the one that allocated it.
#include <atomic>
#include <thread>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeOfRemote, "E03 double-free", kFatal) {
  void* block = api::Malloc(64);
  void* neighbour = api::Malloc(64);
  const std::size_t usable = api::UsableSize(block);
  std::atomic<bool> freed = false;
  std::atomic<bool> done = false;
  std::thread other([&] {
    api::Free(block);
    freed = true;
    while (!done) std::this_thread::yield();
  });
  while (!freed) std::this_thread::yield();
  scene.Expect(block, usable);
  api::Free(block);
  hz_test::Scene::SlotsComeHome();
  done = true;
  other.join();
  api::Free(neighbour);
}
