// SPDX-License-Identifier: Apache-2.0
//
// A thread frees a block twice, with another free between, and ends. What it leaves goes to the next thread:
// unproved, it would be handed out twice.
#include <thread>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeThreadEnds, "E03 double-free", kFatal) {
  void* neighbours[100];
  for (void*& block : neighbours) block = api::Malloc(64);
  std::thread([&] {
    void *first = api::Malloc(64), *second = api::Malloc(64), *third = api::Malloc(64);
    const std::size_t usable = api::UsableSize(first);
    api::Free(first);
    api::Free(second);
    scene.Expect(first, usable);
    api::Free(first);
    api::Free(third);
  }).join();
  for (void* block : neighbours) api::Free(block);
}
