// SPDX-License-Identifier: Apache-2.0
//
// A block freed twice by a thread that then sleeps: where the free itself does not tell, the purger does when
// it takes the thread's slots back.
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeIdle, "E03 double-free", kFatal) {
  std::atomic<bool> over{false};
  // Threads, and a heap that is worth a purger.
  std::thread other([&] {
    std::vector<void*> blocks(20'000);
    for (void*& block : blocks) block = api::Malloc(1000);
    while (!over.load()) usleep(1000);
    for (void* block : blocks) api::Free(block);
  });
  void *first = api::Malloc(64), *second = api::Malloc(64), *neighbour = api::Malloc(64);
  const std::size_t usable = api::UsableSize(first);
  std::vector<void*> more(1000);
  for (void*& block : more) block = api::Malloc(1000);  // a slow path, and there is a purger
  api::Free(first);
  api::Free(second);
  scene.ExpectOfPurger(first, usable);
  api::Free(first);
  hz_stats_t stats = {};
  auto* const read = hz_test::FindFunction<void(hz_stats_t*, std::size_t)>("hz_stats");
  for (int i = 0; i < 2000 && stats.revocations < 2 && hz_test::SeesSecondFreesLate(); ++i) {
    usleep(10'000);
    read(&stats, sizeof stats);
  }
  usleep(200'000);  // it has found the slot, and is about to say so
  over.store(true);
  other.join();
  for (void* block : more) api::Free(block);
  api::Free(neighbour);
}
