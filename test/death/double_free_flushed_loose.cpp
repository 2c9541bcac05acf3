// SPDX-License-Identifier: Apache-2.0
//
// A block freed twice among many that leave the thread together, for a list that is shared.
#include <vector>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(DoubleFreeFlushedLoose, "E03 double-free", kFatal) {
  std::vector<void*> blocks(4000);
  for (void*& block : blocks) block = api::Malloc(64);
  const std::size_t usable = api::UsableSize(blocks[0]);
  for (std::size_t i = 0; i < 3; ++i) api::Free(blocks[i]);
  scene.Expect(blocks[0], usable);
  api::Free(blocks[0]);
  for (std::size_t i = 3; i < 2000; ++i) api::Free(blocks[i]);
  for (std::size_t i = 2000; i < blocks.size(); ++i) api::Free(blocks[i]);
}
