// SPDX-License-Identifier: Apache-2.0
//
// Calls of the allocator, counted. A Caller is meant to be a local variable of a workload's loop, so that its
// counters stay in registers; a call costs one addition and one test more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane/allocator.hpp"

namespace hz::bench {

struct Tally {
  std::uint64_t allocated = 0;
  std::uint64_t released = 0;
  std::uint64_t resized = 0;
  std::uint64_t sent = 0;  // blocks handed to another thread; not a call

  std::uint64_t calls() const { return allocated + released + resized; }

  Tally& operator+=(const Tally& o) {
    allocated += o.allocated;
    released += o.released;
    resized += o.resized;
    sent += o.sent;
    return *this;
  }
};

// Allocator: the functions of SystemAllocator, of which a workload needs to find those that it uses.
template <class Allocator>
class Caller {
 public:
  void* allocate(std::size_t size) {
    ++tally_.allocated;
    return checked(Allocator::allocate(size));
  }
  void* allocate_aligned(std::size_t alignment, std::size_t size) {
    ++tally_.allocated;
    return checked(Allocator::allocate_aligned(alignment, size));
  }
  void* reallocate(void* p, std::size_t size) {
    ++tally_.resized;
    return checked(Allocator::reallocate(p, size));
  }
  void release(void* p) {
    ++tally_.released;
    Allocator::release(p);
  }
  void release_aligned(void* p, std::size_t alignment, std::size_t size) {
    ++tally_.released;
    Allocator::release_aligned(p, alignment, size);
  }
  // Frees what stands in a table, and empties it.
  void release_all(void** slots, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (slots[i] == nullptr) continue;
      release(slots[i]);
      slots[i] = nullptr;
    }
  }
  void sent() { ++tally_.sent; }

  const Tally& tally() const { return tally_; }

 private:
  Tally tally_;
};

// One byte of every page in [from, to), as a program that fills its block would make them resident.
inline void write_pages(void* p, std::size_t from, std::size_t to) {
  constexpr std::size_t kPage = 4096;
  volatile char* bytes = static_cast<char*>(p);
  for (std::size_t at = from; at < to; at += kPage) bytes[at] = 1;
}

}  // namespace hz::bench
