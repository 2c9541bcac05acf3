// SPDX-License-Identifier: Apache-2.0
//
// The workload of aligned64k: an iteration allocates one aligned block, writes its first and last byte, and
// frees it. Run by the blocks family, and by a unit test with an allocator that keeps books.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"

namespace hz::bench {

struct AlignedShape {
  explicit AlignedShape(const Run& run)
      : size(run.lane.definition["size"]),
        alignment(run.lane.definition["alignment"]),
        iterations(run.iterations()),
        touch(run.touch) {}

  std::size_t size;
  std::size_t alignment;
  std::uint64_t iterations;
  bool touch;
};

template <class Allocator>
Tally allocate_aligned_blocks(const AlignedShape shape) {
  Caller<Allocator> caller;
  for (std::uint64_t i = 0; i < shape.iterations; ++i) {
    void* p = caller.allocate_aligned(shape.alignment, shape.size);
    if (shape.touch) write_ends(p, shape.size);
    caller.release_aligned(p, shape.alignment, shape.size);
  }
  return caller.tally();
}

}  // namespace hz::bench
