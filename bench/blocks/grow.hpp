// SPDX-License-Identifier: Apache-2.0
//
// The workload of realloc_grow: a block grows by `growth_percent` a step from `min_size` to `max_size`, is
// freed, and starts again. An iteration is one step. After each step the first and the last byte of what was
// there before are checked, and every page that was gained is written, as by a program that fills its buffer.
// Run by the blocks family, and by a unit test with an allocator that keeps books.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"

namespace hz::bench {

struct GrowShape {
  explicit GrowShape(const Run& run)
      : min_size(run.lane.definition["min_size"]),
        max_size(run.lane.definition["max_size"]),
        growth_percent(run.number("growth_percent")),
        iterations(run.iterations()),
        touch(run.touch) {}

  std::size_t next(std::size_t size) const { return std::min(size * growth_percent / 100, max_size); }

  std::size_t min_size;
  std::size_t max_size;
  std::uint32_t growth_percent;
  std::uint64_t iterations;
  bool touch;
};

inline constexpr unsigned char kFirstByte = 0xA5;
inline constexpr unsigned char kLastByte = 0x5A;

template <class Allocator>
Tally grow_blocks(const GrowShape shape) {
  Caller<Allocator> caller;
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  for (std::uint64_t i = 0; i < shape.iterations; ++i) {
    if (bytes == nullptr) {
      size = shape.min_size;
      bytes = static_cast<unsigned char*>(caller.allocate(size));
      bytes[0] = kFirstByte;
    } else {
      const std::size_t old = size;
      size = shape.next(size);
      bytes = static_cast<unsigned char*>(caller.reallocate(bytes, size));
      if (bytes[0] != kFirstByte || bytes[old - 1] != kLastByte) fail("realloc lost what was in the block");
      if (shape.touch) write_pages(bytes, old, size);
    }
    bytes[size - 1] = kLastByte;
    if (size < shape.max_size) continue;
    caller.release(bytes);
    bytes = nullptr;
  }
  if (bytes != nullptr) caller.release(bytes);
  return caller.tally();
}

}  // namespace hz::bench
