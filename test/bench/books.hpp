// SPDX-License-Identifier: Apache-2.0
//
// An allocator that keeps books, for the loops of the lanes: every block is known, freed once, and looked at when it
// is freed. Used on one thread at a time, so every number is exact.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

namespace hz::bench {

struct Books {
  static inline std::map<void*, std::size_t> live;
  static inline std::uint64_t allocations;
  static inline std::uint64_t releases;
  static inline std::uint64_t unknown;    // released though not live
  static inline std::uint64_t untouched;  // released with the first or last byte as allocated
  static inline std::uint64_t arrays;     // grown by reallocate: the lane's own, not counted above
  static inline std::size_t smallest;
  static inline std::size_t largest;

  static void open() {
    live.clear();
    allocations = releases = unknown = untouched = arrays = largest = 0;
    smallest = SIZE_MAX;
  }

  static void* allocate(std::size_t size) {
    void* p = std::malloc(size);
    std::memset(p, 0, size);
    live[p] = size;
    ++allocations;
    smallest = std::min(smallest, size);
    largest = std::max(largest, size);
    return p;
  }

  static void release(void* p) {
    if (p == nullptr) return;
    const auto found = live.find(p);
    if (found == live.end()) {
      ++unknown;
      return;
    }
    const char* bytes = static_cast<char*>(p);
    if (found->second == 0) {
      --arrays;
    } else {
      untouched += bytes[0] == 0 || bytes[found->second - 1] == 0;
      ++releases;
    }
    live.erase(found);
    std::free(p);
  }

  // Size 0 in `live` marks an array.
  static void* reallocate(void* p, std::size_t size) {
    arrays += p == nullptr;
    live.erase(p);
    void* grown = std::realloc(p, size);
    live[grown] = 0;
    return grown;
  }
};

}  // namespace hz::bench
