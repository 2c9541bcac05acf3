// SPDX-License-Identifier: Apache-2.0
//
// The workload of alloc_test, after the allocator test of ITHare: many blocks in a table, of which few live
// shortly and many live long. Four of five draws hit the same fifth of the slots, and so on within it
// (Pareto). An empty slot gets a block that is written as a whole; the block of an occupied one is read, a
// byte of each cache line, and freed. Threads have nothing in common. Run by the classic family, and by a
// unit test with an allocator that keeps books.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/log_uniform.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct AllocTestShape {
  explicit AllocTestShape(const Run& run)
      : sizes(run.number("min_size"), run.number("max_size")),
        slots(run.number("slots")),
        iterations(run.iterations()),
        touch(run.touch) {}

  LogUniform sizes;
  std::uint32_t slots;
  std::uint64_t iterations;
  bool touch;
};

// What a slot of the table holds.
struct SizedBlock {
  void* p;
  std::size_t size;
};

// 79.5 % of the slots drawn are in the first fifth: for u uniform in [0, 1), u^7 < 0.2 has the probability
// 0.2^(1/7).
inline std::uint32_t pareto_slot(Xorshift64Star& random, std::uint32_t slots) {
  const std::uint64_t u = random.next() >> 32;
  const std::uint64_t u2 = u * u >> 32;
  const std::uint64_t u4 = u2 * u2 >> 32;
  const std::uint64_t u7 = (u4 * u2 >> 32) * u >> 32;
  return static_cast<std::uint32_t>(u7 * slots >> 32);
}

// The sum of one byte per cache line.
inline unsigned read_lines(const SizedBlock& block) {
  constexpr std::size_t kLine = 64;
  const volatile unsigned char* bytes = static_cast<const unsigned char*>(block.p);
  unsigned sum = 0;
  for (std::size_t at = 0; at < block.size; at += kLine) sum += bytes[at];
  return sum;
}

// `slots` has shape.slots entries, all null.
template <class Allocator>
Tally replace_by_pareto(const AllocTestShape shape, Xorshift64Star random, SizedBlock* slots) {
  Caller<Allocator> caller;
  for (std::uint64_t i = 0; i < shape.iterations; ++i) {
    SizedBlock& slot = slots[pareto_slot(random, shape.slots)];
    if (slot.p != nullptr) {
      if (shape.touch) read_lines(slot);
      caller.release(slot.p);
      slot.p = nullptr;
      continue;
    }
    slot.size = shape.sizes.draw(random);
    slot.p = caller.allocate(slot.size);
    if (shape.touch) std::memset(slot.p, 1, slot.size);
  }
  for (std::uint32_t i = 0; i < shape.slots; ++i) {
    if (slots[i].p != nullptr) caller.release(slots[i].p);
    slots[i].p = nullptr;
  }
  return caller.tally();
}

}  // namespace hz::bench
