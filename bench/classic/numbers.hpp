// SPDX-License-Identifier: Apache-2.0
//
// The workload of cfrac_like, after what cfrac (factoring by continued fractions, D. Barrett; in the studies
// of Zorn and Grunwald, 1993) asks of its allocator: numbers of a few words, nearly all of which live for a
// handful of operations. An iteration is one operation: the result gets a block and is written from two of
// the newest numbers; then one of the two is dropped, and the result takes its place. One result in
// `saved_every` is kept: a table of `saved` of them drops its oldest. Threads have nothing in common. Run by
// the classic family, and by a unit test with an allocator that keeps books.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct NumbersShape {
  explicit NumbersShape(const Run& run)
      : min_words(run.number("min_size") / sizeof(std::uint64_t)),
        max_words(run.number("max_size") / sizeof(std::uint64_t)),
        temporaries(run.number("temporaries")),
        saved(run.number("saved")),
        saved_every(run.number("saved_every")),
        iterations(run.iterations()) {}

  std::uint32_t min_words;
  std::uint32_t max_words;
  std::uint32_t temporaries;
  std::uint32_t saved;
  std::uint32_t saved_every;
  std::uint64_t iterations;

  std::size_t places() const { return std::size_t{temporaries} + saved; }
};

// Its first word says how many follow.
using Number = std::uint64_t*;

// `numbers` has shape.places() entries, all null.
template <class Allocator>
Tally compute_with_numbers(const NumbersShape shape, Xorshift64Star random, void** numbers) {
  Caller<Allocator> caller;
  const auto make = [&](std::uint64_t word) {
    const std::uint32_t words = shape.min_words + random.below(shape.max_words - shape.min_words + 1);
    auto* number = static_cast<Number>(caller.allocate(words * sizeof(std::uint64_t)));
    number[0] = words - 1;
    for (std::uint32_t i = 1; i < words; ++i) number[i] = word += i;
    return number;
  };
  void** const table = numbers + shape.temporaries;
  for (std::uint32_t i = 0; i < shape.temporaries; ++i) numbers[i] = make(i);
  std::uint32_t oldest = 0;
  for (std::uint64_t i = 0; i < shape.iterations; ++i) {
    void*& dropped = numbers[random.below(shape.temporaries)];
    const auto* first = static_cast<const std::uint64_t*>(dropped);
    const auto* second = static_cast<const std::uint64_t*>(numbers[random.below(shape.temporaries)]);
    void* result = make(first[first[0]] + second[second[0]]);
    caller.release(dropped);
    dropped = result;
    if (i % shape.saved_every != 0) continue;
    if (table[oldest] != nullptr) caller.release(table[oldest]);
    table[oldest] = make(i);
    oldest = (oldest + 1) % shape.saved;
  }
  caller.release_all(numbers, shape.places());
  return caller.tally();
}

}  // namespace hz::bench
