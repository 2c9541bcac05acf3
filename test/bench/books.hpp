// SPDX-License-Identifier: Apache-2.0
//
// An allocator that keeps books, for the loops of the lanes: every block is known, freed once, and looked at
// when it is freed. Most tests use it on one thread, so every number is exact.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace hz::bench {

struct Books {
  struct Block {
    std::size_t size;     // 0: an array, grown by reallocate
    std::int64_t serial;  // blocks are numbered from 1 in the order of allocation
    std::thread::id owner;
  };
  static inline std::mutex lock;
  static inline std::map<void*, Block> live;
  static inline std::uint64_t allocations;
  static inline std::uint64_t releases;
  static inline std::uint64_t unknown;    // released though not live
  static inline std::uint64_t untouched;  // released with the first or last byte as allocated
  static inline std::uint64_t foreign;    // released by another thread than the one that allocated
  static inline std::uint64_t arrays;     // grown by reallocate: the lane's own, not counted above
  static inline std::size_t smallest;
  static inline std::size_t largest;
  static inline std::size_t most_live;            // blocks and arrays at a time
  static inline std::vector<std::size_t> sizes;   // by serial - 1
  static inline std::vector<std::int64_t> calls;  // serial for an allocation, -serial for a release
  static inline std::vector<std::pair<std::size_t, std::size_t>> resizes;  // from, to
  static inline std::function<void(const unsigned char*, std::size_t)>
      inspect;  // called with a block to be freed

  static void open() {
    live.clear();
    sizes.clear();
    calls.clear();
    resizes.clear();
    inspect = nullptr;
    allocations = releases = unknown = untouched = foreign = arrays = largest = most_live = 0;
    smallest = SIZE_MAX;
  }

  static void* allocate(std::size_t size) { return allocate_aligned(alignof(std::max_align_t), size); }

  static void* allocate_aligned(std::size_t alignment, std::size_t size) {
    void* p = nullptr;
    if (posix_memalign(&p, alignment, size) != 0) std::abort();
    std::memset(p, 0, size);
    const std::lock_guard guard(lock);
    sizes.push_back(size);
    const auto serial = static_cast<std::int64_t>(++allocations);
    calls.push_back(serial);
    live[p] = {size, serial, std::this_thread::get_id()};
    smallest = std::min(smallest, size);
    largest = std::max(largest, size);
    most_live = std::max(most_live, live.size());
    return p;
  }

  static void release(void* p) {
    if (p == nullptr) return;
    const std::lock_guard guard(lock);
    const auto found = live.find(p);
    if (found == live.end()) {
      ++unknown;
      return;
    }
    const Block block = found->second;
    if (block.size == 0) {
      --arrays;
    } else {
      look_at(static_cast<const unsigned char*>(p), block);
    }
    live.erase(found);
    std::free(p);
  }

  static void release_aligned(void* p, std::size_t, std::size_t) { release(p); }

  // A block that `allocate` has given keeps its number; anything else is an array.
  static void* reallocate(void* p, std::size_t size) {
    const std::lock_guard guard(lock);
    Block block{};
    if (const auto found = live.find(p); found != live.end()) block = found->second;
    arrays += p == nullptr;
    live.erase(p);
    auto* resized = static_cast<unsigned char*>(std::realloc(p, size));
    if (block.size != 0) {
      resizes.emplace_back(block.size, size);
      if (size > block.size) std::memset(resized + block.size, 0, size - block.size);
      block.size = size;
    }
    live[resized] = block;
    return resized;
  }

 private:
  static void look_at(const unsigned char* bytes, const Block& block) {
    ++releases;
    calls.push_back(-block.serial);
    untouched += bytes[0] == 0 || bytes[block.size - 1] == 0;
    foreign += block.owner != std::this_thread::get_id();
    if (inspect) inspect(bytes, block.size);
  }
};

}  // namespace hz::bench
