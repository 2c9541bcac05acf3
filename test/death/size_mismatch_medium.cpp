// SPDX-License-Identifier: Apache-2.0
//
// free_sized of a medium and a large block, with the size of a small one.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(SizeMismatchMedium, "E05 size-mismatch", kNeverFatal) {
  for (const std::size_t size : {20'000u, 200'000u}) {
    void* block = api::Malloc(size);
    scene.Expect(block, api::UsableSize(block));
    api::FreeSized(block, 100);
  }
}
