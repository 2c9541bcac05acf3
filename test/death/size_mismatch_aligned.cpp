// SPDX-License-Identifier: Apache-2.0
//
// free_aligned_sized with a size that cannot be true.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(SizeMismatchAligned, "E05 size-mismatch", kNeverFatal) {
  void* block = api::AlignedAlloc(256, 1000);
  scene.Expect(block, api::UsableSize(block));
  api::FreeAlignedSized(block, 256, 100'000);
}
