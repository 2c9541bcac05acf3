// SPDX-License-Identifier: Apache-2.0
//
// A block freed by two threads, neither of which allocated it.
#include <thread>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeByTwoRemotes, "E03 double-free", kFatal) {
  void* block = api::Malloc(64);
  void* neighbour = api::Malloc(64);
  const std::size_t usable = api::UsableSize(block);
  std::thread([&] { api::Free(block); }).join();
  std::thread([&] {
    scene.Expect(block, usable);
    api::Free(block);
    hz_test::Scene::SlotsComeHome();
  }).join();
  api::Free(neighbour);
}
