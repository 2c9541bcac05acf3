// SPDX-License-Identifier: Apache-2.0
//
// The workload of rss_plateau: every round allocates all blocks and writes to each of their pages, then frees
// them all in the same order. How much stays resident round by round is what the lane is about, so `observe`
// is called after every phase. Run by the blocks family, and by a unit test with an allocator that keeps
// books.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"

namespace hz::bench {

struct PlateauShape {
  explicit PlateauShape(const Run& run)
      : size(run.lane.definition["size"]),
        slots(run.lane.definition["slots"]),
        rounds(run.number("rounds")),
        touch(run.touch) {}

  std::size_t size;
  std::size_t slots;
  unsigned rounds;
  bool touch;
};

// `slots` has shape.slots entries, all null. observe(const char* phase, unsigned round).
template <class Allocator, class Observe>
Tally fill_and_empty(const PlateauShape shape, void** slots, Observe observe) {
  Caller<Allocator> caller;
  for (unsigned round = 1; round <= shape.rounds; ++round) {
    for (std::size_t i = 0; i < shape.slots; ++i) {
      slots[i] = caller.allocate(shape.size);
      if (shape.touch) write_pages(slots[i], 0, shape.size);
    }
    observe("allocated", round);
    caller.release_all(slots, shape.slots);
    observe("freed", round);
  }
  return caller.tally();
}

}  // namespace hz::bench
