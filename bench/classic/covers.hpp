// SPDX-License-Identifier: Apache-2.0
//
// The workload of espresso_like, after what espresso (minimising two-level logic, R. Brayton and others,
// 1984; in the studies of Zorn and Grunwald, 1993) asks of its allocator: sets of small blocks of one size
// that are built, copied, thinned out and dropped as a whole, and an array of pointers for each, which grows
// by realloc. An iteration makes one cover of `min_cubes` to `max_cubes` cubes; every cube is copied and the
// copy dropped at once (expand), every second one drawn goes (irredundant), the others are copied to a second
// cover (reduce), and both covers go, in the order in which they were made. Threads have nothing in common.
// Run by the classic family, and by a unit test with an allocator that keeps books.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct CoversShape {
  explicit CoversShape(const Run& run)
      : min_size(run.number("min_size")),
        max_size(run.number("max_size")),
        min_cubes(run.number("min_cubes")),
        max_cubes(run.number("max_cubes")),
        iterations(run.iterations()) {}

  std::uint32_t min_size;  // of a cube
  std::uint32_t max_size;
  std::uint32_t min_cubes;
  std::uint32_t max_cubes;
  std::uint64_t iterations;
};

template <class Allocator>
class Covers {
 public:
  Covers(const CoversShape& shape, Xorshift64Star random) : shape_(shape), random_(random) {}

  Tally run() {
    for (std::uint64_t i = 0; i < shape_.iterations; ++i) minimise();
    return caller_.tally();
  }

 private:
  static constexpr std::uint32_t kFirstRoom = 16;

  struct Cover {
    void** cubes;
    std::uint32_t count, room;
  };

  void minimise() {
    size_ = shape_.min_size + random_.below((shape_.max_size - shape_.min_size) / 8 + 1) * 8;
    Cover cover = open();
    const std::uint32_t cubes = shape_.min_cubes + random_.below(shape_.max_cubes - shape_.min_cubes + 1);
    for (std::uint32_t i = 0; i < cubes; ++i) {
      void* cube = caller_.allocate(size_);
      std::memset(cube, static_cast<int>(i | 1), size_);
      add(cover, cube);
    }
    for (std::uint32_t i = 0; i < cover.count; ++i) caller_.release(copied(cover.cubes[i]));
    Cover reduced = open();
    for (std::uint32_t i = 0; i < cover.count; ++i) {
      if (random_.below(2) == 0) {
        caller_.release(cover.cubes[i]);
        cover.cubes[i] = nullptr;
      } else {
        add(reduced, copied(cover.cubes[i]));
      }
    }
    close(cover);
    close(reduced);
  }

  Cover open() { return {static_cast<void**>(caller_.allocate(kFirstRoom * sizeof(void*))), 0, kFirstRoom}; }
  void add(Cover& cover, void* cube) {
    if (cover.count == cover.room) {
      cover.room *= 2;
      cover.cubes = static_cast<void**>(caller_.reallocate(cover.cubes, cover.room * sizeof(void*)));
    }
    cover.cubes[cover.count++] = cube;
  }
  void* copied(const void* cube) {
    void* copy = caller_.allocate(size_);
    std::memcpy(copy, cube, size_);
    return copy;
  }
  void close(Cover& cover) {
    caller_.release_all(cover.cubes, cover.count);
    caller_.release(cover.cubes);
  }

  CoversShape shape_;
  Xorshift64Star random_;
  std::uint32_t size_ = 0;
  Caller<Allocator> caller_;
};

}  // namespace hz::bench
