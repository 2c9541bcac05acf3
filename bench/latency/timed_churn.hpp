// SPDX-License-Identifier: Apache-2.0
//
// What one thread of the latency lane does; the definition stands in latency/lanes.hpp. Called by the family
// with malloc and by the unit tests with an allocator that keeps books.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "lane/random.hpp"
#include "latency/clock.hpp"
#include "latency/histogram.hpp"
#include "solo/draws.hpp"

namespace hz::bench {

struct LatencyShape {
  LatencyShape() = default;
  explicit LatencyShape(const Run& run)
      : iterations(run.iterations()),
        slots(run.number("slots")),
        min_size(run.number("min_size")),
        max_size(run.number("max_size")),
        remote_percent(run.number("remote_percent")),
        large_every(run.number("large_every")),
        phase(run.lane.definition["phase"]),
        touch(run.touch) {}

  static constexpr std::uint32_t kLarge = 32'768;

  std::uint64_t iterations = 0;
  std::uint32_t slots = 0;
  std::uint32_t min_size = 0;
  std::uint32_t max_size = 0;
  std::uint32_t remote_percent = 0;
  std::uint32_t large_every = 0;
  std::uint64_t phase = 0;
  bool touch = true;
};

// Where threads leave blocks for each other to free. Whoever is done last empties it.
struct Board {
  static constexpr std::uint32_t kPlaces = 1024;
  std::atomic<void*> places[kPlaces];
  std::atomic<unsigned> at_work;

  // The exchange passes the block's content on with its address.
  void* swap(std::uint32_t place, void* block) {
    return places[place].exchange(block, std::memory_order_acq_rel);
  }
};

// Both kinds of calls of one thread; in harness memory, all zero.
struct CallHistograms {
  Histogram allocate;
  Histogram release;
};

template <class Allocator>
class TimedChurn {
 public:
  // `slots` has shape.slots entries, all null.
  TimedChurn(const LatencyShape& shape, void** slots, Board& board, CallHistograms& times)
      : shape_(shape), slots_(slots), board_(board), times_(times) {}

  void run(std::uint64_t seed, unsigned thread) {
    auto random = make_random<Mode::kFair>(seed, thread);
    Application sizes({shape_.slots, shape_.min_size, shape_.max_size}, splitmix64(seed), thread);
    std::uint64_t left = shape_.phase;
    for (std::uint64_t i = 0; i < shape_.iterations; ++i) {
      const Pick pick = sizes.next();
      const std::uint64_t number = random.next();
      void*& slot = slots_[pick.slot];
      if (slot == nullptr) {
        slot = allocate(size(pick.size, number));
      } else {
        void* const block = slot;
        slot = nullptr;
        leave(block, number);
      }
      if (--left == 0) {
        release_all();
        left = shape_.phase;
      }
    }
    release_all();
    // Release: the last one sees what the others left. Acquire: it is the last.
    if (board_.at_work.fetch_sub(1, std::memory_order_acq_rel) == 1) empty_board();
  }

  const Tally& tally() const { return tally_; }

 private:
  std::uint32_t size(std::uint32_t usual, std::uint64_t number) const {
    if (scaled(high_half(number), shape_.large_every) != 0) return usual;
    return LatencyShape::kLarge + scaled(low_half(number), shape_.max_size - LatencyShape::kLarge + 1);
  }

  void* allocate(std::size_t bytes) {
    const std::uint64_t before = ticks();
    void* const block = Allocator::allocate(bytes);
    times_.allocate.add(ticks() - before);
    ++tally_.allocated;
    checked(block);
    if (shape_.touch) {
      write_pages(block, 0, bytes);
      write_ends(block, bytes);
    }
    return block;
  }

  void release(void* block) {
    if (block == nullptr) return;
    const std::uint64_t before = ticks();
    Allocator::release(block);
    times_.release.add(ticks() - before);
    ++tally_.released;
  }

  void leave(void* block, std::uint64_t number) {
    if (scaled(high_half(number), 100) < shape_.remote_percent) {
      ++tally_.sent;
      block = board_.swap(scaled(low_half(number), Board::kPlaces), block);
    }
    release(block);
  }

  void release_all() {
    for (std::uint32_t i = 0; i < shape_.slots; ++i) {
      release(slots_[i]);
      slots_[i] = nullptr;
    }
  }

  void empty_board() {
    for (std::uint32_t i = 0; i < Board::kPlaces; ++i) release(board_.swap(i, nullptr));
  }

  LatencyShape shape_;
  void** slots_;
  Board& board_;
  CallHistograms& times_;
  Tally tally_;
};

}  // namespace hz::bench
