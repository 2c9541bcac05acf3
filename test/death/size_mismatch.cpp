// SPDX-License-Identifier: Apache-2.0
//
// free_sized with sizes that cannot be true: reported, and the block is freed all the same.
#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(SizeMismatch, "E05 size-mismatch", kNeverFatal) {
  for (const std::size_t wrong : {std::size_t{0} + 40'000, std::size_t{65}, std::size_t{1} << 40}) {
    void* block = api::Malloc(64);
    scene.Expect(block, api::UsableSize(block));
    api::FreeSized(block, wrong);
  }
}
