// SPDX-License-Identifier: Apache-2.0
//
// What one thread of a solo lane does. Called by the solo family with malloc and by the unit tests with an
// allocator that keeps books.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "solo/draws.hpp"

namespace hz::bench {

// The numbers of a solo lane, out of its definition.
struct SoloShape {
  SoloShape() = default;
  explicit SoloShape(const Run& run)
      : iterations(run.iterations()),
        field{run.number("slots"), run.number("min_size"), run.number("max_size")},
        written(run.number("written")),
        realloc_every(run.number("realloc_every")),
        touch(run.touch && (run.mode == Mode::kFair || written != 0)) {}

  std::uint64_t iterations = 0;
  Field field{};
  std::uint32_t written = 0;
  std::uint32_t realloc_every = 0;
  bool touch = true;
};

template <class Allocator>
class SlotLoop {
 public:
  // `slots` has shape.field.slots entries, all null.
  SlotLoop(const SoloShape& shape, void** slots) : shape_(shape), slots_(slots) {}

  template <class Draws>
  void iterate(Draws draws) {
    const SoloShape shape =
        shape_;  // copies: the allocator is opaque, so members would be loaded after every call
    void** const slots = slots_;
    Caller<Allocator> caller;
    std::uint64_t next_realloc = shape.realloc_every != 0 ? 0 : UINT64_MAX;
    for (std::uint64_t i = 0; i < shape.iterations; ++i) {
      const Pick pick = draws.next();
      const bool resize = i == next_realloc;
      if (resize) next_realloc += shape.realloc_every;
      void* const old = slots[pick.slot];
      if (old != nullptr) {
        slots[pick.slot] = nullptr;
        caller.release(old);
        continue;
      }
      void* p = caller.allocate(pick.size);
      if (shape.touch) write(p, pick.size, shape.written);
      if (resize) p = caller.reallocate(p, pick.size + 16);
      slots[pick.slot] = p;
    }
    tally_ += caller.tally();
  }

  // Frees what is left in the slots.
  void finish() {
    Caller<Allocator> caller;
    caller.release_all(slots_, shape_.field.slots);
    tally_ += caller.tally();
  }

  const Tally& tally() const { return tally_; }

 private:
  static void write(void* p, std::size_t size, std::size_t written) {
    if (written == 0) {
      write_ends(p, size);
    } else {
      std::memset(p, 1, std::min(size, written));
    }
  }

  SoloShape shape_;
  void** slots_;
  Tally tally_;
};

}  // namespace hz::bench
