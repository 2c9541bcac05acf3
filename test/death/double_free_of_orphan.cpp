// SPDX-License-Identifier: Apache-2.0
//
// A block of a thread that is gone, freed twice by a stranger.
#include <thread>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeOfOrphan, "E03 double-free", kFatal) {
  void* blocks[200];
  std::thread([&] {
    for (void*& block : blocks) block = api::Malloc(64);
  }).join();
  const std::size_t usable = api::UsableSize(blocks[100]);
  api::Free(blocks[100]);
  scene.Expect(blocks[100], usable);
  api::Free(blocks[100]);
  for (int i = 0; i < 200; ++i) {
    if (i != 100) api::Free(blocks[i]);
  }
}
