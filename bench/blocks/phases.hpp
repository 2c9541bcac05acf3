// SPDX-License-Identifier: Apache-2.0
//
// The workload of the phases lanes: a program that is another one every second or so. A phase is so many
// iterations of each thread: draw a slot; an empty one gets a block, of an occupied one the block is freed.
// What changes from phase to phase is one of three things: the size that three of four blocks have, how many
// threads are at work, or how many blocks another thread frees. Threads meet between phases, and the resident
// set is read there. Run by the blocks family, and by a unit test with an allocator that keeps books.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "lane/random.hpp"
#include "solo/draws.hpp"

namespace hz::bench {

struct PhasesShape {
  explicit PhasesShape(const Run& run)
      : slots(run.number("slots")),
        phases(run.number("phases")),
        iterations(run.iterations() / phases),
        shift(run.lane.definition.text("shift")),
        touch(run.touch) {}

  // A header and a power of two, as many programs ask for.
  static constexpr std::uint32_t kSizes[] = {1'032, 264, 4'120, 520, 2'056, 136};
  static constexpr std::uint32_t kSteady = 264, kOthers = 1'024;
  static constexpr std::uint32_t kRemotePercent = 90;

  std::uint32_t size(unsigned phase) const {
    return shift == "sizes" ? kSizes[phase % (sizeof kSizes / sizeof *kSizes)] : kSteady;
  }
  bool works(unsigned thread, unsigned phase) const {
    return shift != "threads" || phase % 2 == 0 || thread % 2 == 0;
  }
  std::uint32_t remote_percent(unsigned phase) const {
    return shift == "remote" && phase % 2 != 0 ? kRemotePercent : 0;
  }

  std::uint32_t slots;
  std::uint32_t phases;
  std::uint64_t iterations;  // of a phase
  std::string_view shift;
  bool touch;
};

// Where threads meet, and leave blocks for each other to free. In harness memory.
struct PhasesMeeting {
  static constexpr std::uint32_t kPlaces = 1024;
  pthread_barrier_t barrier;
  std::atomic<void*> places[kPlaces];

  void open(unsigned threads) { pthread_barrier_init(&barrier, nullptr, threads); }
  void wait() { pthread_barrier_wait(&barrier); }
};

// `slots` has shape.slots entries, all null. observe(const char* label, unsigned phase), by the first thread.
template <class Allocator, class Observe>
Tally run_phases(const PhasesShape& shape, Xorshift64Star random, unsigned thread, void** slots,
                 PhasesMeeting& meeting, Observe observe) {
  Caller<Allocator> caller;
  for (unsigned phase = 0; phase < shape.phases; ++phase) {
    const std::uint32_t usual = shape.size(phase), remote = shape.remote_percent(phase);
    for (std::uint64_t i = shape.works(thread, phase) ? shape.iterations : 0; i != 0; --i) {
      void*& slot = slots[random.below(shape.slots)];
      const std::uint64_t number = random.next();
      if (slot == nullptr) {
        const std::uint32_t size =
            low_half(number) % 4 != 0 ? usual : 16 + scaled(high_half(number), PhasesShape::kOthers - 15);
        slot = caller.allocate(size);
        if (shape.touch) {
          write_pages(slot, 0, size);
          write_ends(slot, size);
        }
        continue;
      }
      void* block = slot;
      slot = nullptr;
      if (scaled(high_half(number), 100) < remote) {
        caller.sent();
        // The exchange passes the block's content on with its address.
        block = meeting.places[low_half(number) % PhasesMeeting::kPlaces].exchange(block,
                                                                                   std::memory_order_acq_rel);
      }
      if (block != nullptr) caller.release(block);
    }
    meeting.wait();
    if (thread == 0) observe("phase", phase + 1);
    meeting.wait();
  }
  caller.release_all(slots, shape.slots);
  meeting.wait();
  for (std::atomic<void*>& place : meeting.places) {
    void* const block = thread == 0 ? place.exchange(nullptr, std::memory_order_acq_rel) : nullptr;
    if (block != nullptr) caller.release(block);
  }
  return caller.tally();
}

}  // namespace hz::bench
