// SPDX-License-Identifier: Apache-2.0
//
// A write to a freed block, over its mark: found when the block leaves the thread.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(WriteAfterFree, "E06 write-after-free", kFatal) {
  constexpr int kCount = 4000;
  static void* blocks[kCount];
  for (void*& block : blocks) block = api::Malloc(64);
  const std::size_t usable = api::UsableSize(blocks[0]);
  api::Free(blocks[0]);
  static_cast<std::uint64_t*>(hz_test::Opaque(blocks[0]))[1] ^= 0xFF;
  scene.Expect(blocks[0], usable);
  for (int i = 1; i < kCount; ++i) api::Free(blocks[i]);
  api::Trim();
}
