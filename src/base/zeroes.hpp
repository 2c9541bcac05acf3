// SPDX-License-Identifier: Apache-2.0
//
// Memory that is to be zero: written so, and proved to be so. Called by guards that clear what is freed
// (box/guard/sealed.hpp), for each block; costs some six instructions for each 64 bytes, in place, or twelve
// for each 256 by a call. All of it ends in half a lane, for what lies behind is the guard's; but for
// are_words(), which heaps ask of pages that may have no memory.
//
// Calls no function of the C library: the hot path would have to save its registers, and no function compares
// with zero.
#pragma once

#include <cstdint>

#include "base/lanes.hpp"
#include "base/plain_word.hpp"

namespace hz {

struct Zeroes {
  // From `at`, which begins a lane, to `end`, in the middle of one. The last step shares bytes with the one
  // before it, so that there is one loop, whose length alone a processor has to guess.
  HZ_INLINE static void write(std::uintptr_t at, std::uintptr_t end) {
    if (HZ_UNLIKELY(end - at < kStep)) return write_little(at, end);
    for (; at + kStep < end; at += kStep) write_step(at);
    write_step(end - kStep);
  }
  HZ_INLINE static bool are(std::uintptr_t at, std::uintptr_t end) {
    if (HZ_UNLIKELY(end - at < kStep)) return are_little(at, end);
    Lane any = of_step(end - kStep);
    for (; at + kStep < end; at += kStep) any |= of_step(at);
    return (any[0] | any[1]) == 0;
  }

  // The same of much.
  static void write_much(std::uintptr_t at, std::uintptr_t end) {
    if (!is_wide() || end - at < kWideStep) return write(at, end);
    write_wide(at, end);
  }
  static bool are_much(std::uintptr_t at, std::uintptr_t end) {
    return !is_wide() || end - at < kWideStep ? are(at, end) : are_wide(at, end);
  }

  // The same of words, wherever they end; stops soon after the first that is not zero.
  static bool are_words(std::uintptr_t at, std::uintptr_t end) {
    for (; at + kStep <= end; at += kStep) {
      const Lane any = of_step(at);
      if ((any[0] | any[1]) != 0) return false;
    }
    for (; at < end; at += sizeof(Half))
      if (half(at) != 0) return false;
    return true;
  }

  // Before the first of these, but are_words().
  static void open() { wide_lanes.set(has_wide_lanes() ? 1 : 0); }
  // Whether the processor has lanes of 32 bytes.
  static bool is_wide() { return wide_lanes.get() != 0; }

 private:
  using Half = std::uint64_t __attribute__((may_alias));
  static constexpr std::size_t kStep = 4 * sizeof(Lane), kWideStep = 8 * sizeof(WideLane);

  HZ_INLINE static void write_step(std::uintptr_t at) {
    LaneAt* const lane = lanes_at(at);
    lane[0].value = lane[1].value = lane[2].value = lane[3].value = Lane{};
  }
  HZ_INLINE static Lane of_step(std::uintptr_t at) {
    const LaneAt* const lane = lanes_at(at);
    return lane[0].value | lane[1].value | lane[2].value | lane[3].value;
  }
  // Less than a step.
  HZ_INLINE static void write_little(std::uintptr_t at, std::uintptr_t end) {
    for (; at + sizeof(Lane) <= end; at += sizeof(Lane)) lanes_at(at)->value = Lane{};
    half(end - sizeof(Half)) = 0;
  }
  HZ_INLINE static bool are_little(std::uintptr_t at, std::uintptr_t end) {
    Lane any = {half(end - sizeof(Half)), 0};
    for (; at + sizeof(Lane) <= end; at += sizeof(Lane)) any |= lanes_at(at)->value;
    return (any[0] | any[1]) == 0;
  }

  HZ_WIDE static void write_wide(std::uintptr_t at, std::uintptr_t end) {
    for (; at + kWideStep < end; at += kWideStep) write_wide_step(at);
    write_wide_step(end - kWideStep);
  }
  HZ_WIDE static bool are_wide(std::uintptr_t at, std::uintptr_t end) {
    WideLane any{};
    add_wide_step(any, end - kWideStep);
    for (; at + kWideStep < end; at += kWideStep) add_wide_step(any, at);
    return (any[0] | any[1] | any[2] | any[3]) == 0;
  }
  HZ_WIDE_INLINE static void write_wide_step(std::uintptr_t at) {
    WideLaneAt* const lane = wide_lanes_at(at);
    lane[0].value = lane[1].value = lane[2].value = lane[3].value = WideLane{};
    lane[4].value = lane[5].value = lane[6].value = lane[7].value = WideLane{};
  }
  HZ_WIDE_INLINE static void add_wide_step(WideLane& any, std::uintptr_t at) {
    const WideLaneAt* const lane = wide_lanes_at(at);
    any |= lane[0].value | lane[1].value | lane[2].value | lane[3].value;
    any |= lane[4].value | lane[5].value | lane[6].value | lane[7].value;
  }

  HZ_INLINE static Half& half(std::uintptr_t at) { return *static_cast<Half*>(pointer(at)); }

  static inline constinit OnceWord<unsigned> wide_lanes{0};
};

}  // namespace hz
