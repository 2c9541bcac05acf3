// SPDX-License-Identifier: Apache-2.0
//
// A write to a freed block, found when its thread ends.
#include <thread>

#include "death/bug.hpp"

namespace api = hz_test::api;

HZ_BUG(WriteAfterFreeExit, "E06 write-after-free", kFatal) {
  std::thread([&] {
    void* blocks[8];
    for (void*& block : blocks) block = api::Malloc(64);
    const std::size_t usable = api::UsableSize(blocks[3]);
    for (void* block : blocks) api::Free(block);
    static_cast<std::uint64_t*>(hz_test::Opaque(blocks[3]))[1] = 0;
    scene.Expect(blocks[3], usable);
  }).join();
}
