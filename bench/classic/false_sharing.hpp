// SPDX-License-Identifier: Apache-2.0
//
// The workload of cache_scratch and cache_thrash, after Berger et al., "Hoard" (2000): each thread allocates
// a small block, adds to each of its bytes `writes` times, frees it, and so on. That is slow when blocks of
// several threads share a cache line: because the allocator cut a line up among threads (active false
// sharing, cache_thrash), or because it gives a thread the block that it freed, which was allocated by
// another thread beside those of others (passive, cache_scratch: the first thread allocates a block for each,
// and each begins by freeing its own). Run by the classic family, and by a unit test with an allocator that
// keeps books.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"

namespace hz::bench {

struct FalseSharingShape {
  explicit FalseSharingShape(const Run& run)
      : size(run.lane.definition["size"]),
        writes(run.number("writes")),
        iterations(run.iterations()),
        given(run.lane.definition.text("first_block") == "from the first thread") {}

  std::size_t size;
  std::uint32_t writes;
  std::uint64_t iterations;
  bool given;
};

// `given` is null, or a block that another thread has allocated for this one.
template <class Allocator>
Tally write_small_blocks(const FalseSharingShape shape, void* given) {
  Caller<Allocator> caller;
  if (given != nullptr) caller.release(given);
  for (std::uint64_t i = 0; i < shape.iterations; ++i) {
    void* p = caller.allocate(shape.size);
    volatile unsigned char* bytes = static_cast<unsigned char*>(p);
    for (std::size_t at = 0; at < shape.size; ++at) bytes[at] = 0;
    for (std::uint32_t w = 0; w < shape.writes; ++w) {
      for (std::size_t at = 0; at < shape.size; ++at) bytes[at] = static_cast<unsigned char>(bytes[at] + 1);
    }
    caller.release(p);
  }
  return caller.tally();
}

}  // namespace hz::bench
