// SPDX-License-Identifier: Apache-2.0
//
// The workload of the larson lanes, after Larson and Krishnan, "Memory Allocation for Long-Running Server
// Applications" (1998): a server whose threads come and go while its blocks live on. A thread replaces random
// blocks of a table, `rounds` times as many as there are slots, then ends and leaves the table to a new
// thread, which so frees blocks of threads that are no more. This goes on in every table until the time is
// up. Run by the classic family, and by a unit test with an allocator that keeps books.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/process.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct LarsonShape {
  explicit LarsonShape(const Run& run)
      : min_size(run.number("min_size")),
        max_size(run.number("max_size")),
        slots(run.number("slots")),
        rounds(run.number("rounds")),
        nanoseconds(run.iterations() * 1'000'000),
        touch(run.touch) {}

  std::uint32_t min_size;
  std::uint32_t max_size;
  std::uint32_t slots;
  std::uint32_t rounds;
  std::uint64_t nanoseconds;
  bool touch;
};

// A table and what its threads do with it, one thread at a time.
template <class Allocator>
class Larson {
 public:
  // `slots` has shape.slots entries.
  Larson(const LarsonShape& shape, Xorshift64Star random, void** slots)
      : shape_(shape), random_(random), slots_(slots) {}

  // The first thread, before its generation.
  void fill() {
    Caller<Allocator> caller;
    for (std::uint32_t i = 0; i < shape_.slots; ++i) slots_[i] = allocate(caller, shape_, random_);
    tally_ += caller.tally();
  }

  // What one thread does. False when it stopped before the end because the time was up.
  bool generation(std::uint64_t deadline_ns) {
    const LarsonShape shape =
        shape_;  // copies: the allocator is opaque, so members would be loaded after every call
    Xorshift64Star random = random_;
    void** const slots = slots_;
    Caller<Allocator> caller;
    std::uint64_t left = std::uint64_t{shape.rounds} * shape.slots;
    bool in_time = true;
    for (; left != 0 && in_time; --left) {
      void*& slot = slots[random.below(shape.slots)];
      caller.release(slot);
      slot = allocate(caller, shape, random);
      if (left % kReplacementsPerClockLook == 0) in_time = now_ns() < deadline_ns;
    }
    random_ = random;
    tally_ += caller.tally();
    return in_time;
  }

  // The table changes hands.
  void inherit() { tally_.sent += shape_.slots; }

  // The last thread, after its generation.
  void finish() {
    Caller<Allocator> caller;
    caller.release_all(slots_, shape_.slots);
    tally_ += caller.tally();
  }

  const Tally& tally() const { return tally_; }

 private:
  static constexpr std::uint64_t kReplacementsPerClockLook = 256;

  static void* allocate(Caller<Allocator>& caller, const LarsonShape& shape, Xorshift64Star& random) {
    const std::size_t size = shape.min_size + random.below(shape.max_size - shape.min_size + 1);
    void* p = caller.allocate(size);
    if (shape.touch) write_ends(p, size);
    return p;
  }

  LarsonShape shape_;
  Xorshift64Star random_;
  void** slots_;
  Tally tally_;
};

}  // namespace hz::bench
