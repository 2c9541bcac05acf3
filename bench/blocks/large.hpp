// SPDX-License-Identifier: Apache-2.0
//
// The workload of the large_* lanes: few live blocks, each drawn slot freed if it is occupied, else filled.
// Sizes are log-uniform. One byte of each page of the first `written` bytes and the last byte are written.
// Run by the blocks family, and by a unit test with an allocator that keeps books.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/log_uniform.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct LargeShape {
  explicit LargeShape(const Run& run)
      : sizes(run.number("min_size"), run.number("max_size")),
        slots(run.number("slots")),
        written(run.lane.definition["written"]),
        iterations(run.iterations()),
        touch(run.touch) {}

  LogUniform sizes;
  std::uint32_t slots;
  std::size_t written;
  std::uint64_t iterations;
  bool touch;
};

// `slots` has shape.slots entries, all null.
template <class Allocator>
Tally churn_large(const LargeShape shape, Xorshift64Star random, void** slots) {
  Caller<Allocator> caller;
  for (std::uint64_t i = 0; i < shape.iterations; ++i) {
    void** slot = slots + random.below(shape.slots);
    if (*slot != nullptr) {
      caller.release(*slot);
      *slot = nullptr;
      continue;
    }
    const std::size_t size = shape.sizes.draw(random);
    *slot = caller.allocate(size);
    if (!shape.touch) continue;
    write_pages(*slot, 0, std::min(size, shape.written));
    write_ends(*slot, size);
  }
  caller.release_all(slots, shape.slots);
  return caller.tally();
}

}  // namespace hz::bench
