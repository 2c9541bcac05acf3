// SPDX-License-Identifier: Apache-2.0
//
// The workload of arena_request: a request allocates `blocks` blocks, sizes as servers have them (80 % in
// 16..128, 17 % in 129..1024, 3 % in 1025..8192), and all of them end together. An iteration is one request.
// Where the allocator has heaps of its own, each request has one, which is destroyed; else the blocks are
// freed one by one, in the order of allocation. Run by the blocks family, and by a unit test with an
// allocator that keeps books.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/heap_functions.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct RequestsShape {
  explicit RequestsShape(const Run& run)
      : blocks(run.number("blocks")), iterations(run.iterations()), touch(run.touch) {}

  std::uint32_t blocks;
  std::uint64_t iterations;
  bool touch;
};

inline std::uint32_t size_in_request(Xorshift64Star& random) {
  const std::uint32_t percentile = random.below(100);
  if (percentile < 80) return 16 + random.below(128 - 16 + 1);
  if (percentile < 97) return 129 + random.below(1'024 - 129 + 1);
  return 1'025 + random.below(8'192 - 1'025 + 1);
}

// `blocks` has shape.blocks entries.
template <class Allocator>
Tally serve_one_by_one(const RequestsShape shape, Xorshift64Star random, void** blocks) {
  Caller<Allocator> caller;
  for (std::uint64_t request = 0; request < shape.iterations; ++request) {
    for (std::uint32_t i = 0; i < shape.blocks; ++i) {
      const std::uint32_t size = size_in_request(random);
      blocks[i] = caller.allocate(size);
      if (shape.touch) write_ends(blocks[i], size);
    }
    for (std::uint32_t i = 0; i < shape.blocks; ++i) caller.release(blocks[i]);
  }
  return caller.tally();
}

// The end of each block counts as an op, as if it had been freed.
inline Tally serve_from_heaps(const RequestsShape shape, Xorshift64Star random, const HeapFunctions heaps,
                              void** blocks) {
  Tally tally;
  for (std::uint64_t request = 0; request < shape.iterations; ++request) {
    void* const heap = checked(heaps.begin());
    for (std::uint32_t i = 0; i < shape.blocks; ++i) {
      const std::uint32_t size = size_in_request(random);
      blocks[i] = checked(heaps.allocate(heap, size));
      if (shape.touch) write_ends(blocks[i], size);
    }
    heaps.destroy(heap);
  }
  tally.allocated = tally.released = shape.iterations * shape.blocks;
  return tally;
}

}  // namespace hz::bench
