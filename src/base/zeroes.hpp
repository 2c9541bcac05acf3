// SPDX-License-Identifier: Apache-2.0
//
// Memory that is to be zero: written so, and proved to be so. Called by guards that clear what is freed
// (box/guard/sealed.hpp), for each block; costs some six instructions for each 64 bytes, in place, or twelve
// for each 256 by a call. All of it ends in half a lane: what lies behind is the guard's.
//
// No call of the C library's: who is on the hot path would have to save what it holds; and it has nothing
// that compares with zero.
#pragma once

#include <cstdint>

#include "base/compiler.hpp"
#include "base/plain_word.hpp"
#include "base/units.hpp"

namespace hz {

struct Zeroes {
  static constexpr std::size_t kLane = 16, kHalf = 8;

  // From `at`, which begins a lane, to `end`, in the middle of one.
  HZ_INLINE static void write(std::uintptr_t at, std::uintptr_t end) {
    for (; HZ_UNLIKELY(at + 4 * kLane <= end); at += 4 * kLane)
      lane(at) = lane(at + kLane) = lane(at + 2 * kLane) = lane(at + 3 * kLane) = Lane{};
    for (; at + kLane <= end; at += kLane) lane(at) = Lane{};
    half(end - kHalf) = 0;
  }
  HZ_INLINE static bool are(std::uintptr_t at, std::uintptr_t end) {
    Lane any = {half(end - kHalf), 0};
    for (; HZ_UNLIKELY(at + 4 * kLane <= end); at += 4 * kLane)
      any |= lane(at) | lane(at + kLane) | lane(at + 2 * kLane) | lane(at + 3 * kLane);
    for (; at + kLane <= end; at += kLane) any |= lane(at);
    return (any[0] | any[1]) == 0;
  }

  // The same of much.
  static void write_much(std::uintptr_t at, std::uintptr_t end) {
    if (!is_wide() || end - at < sizeof(Wide)) return write(at, end);
    write_wide(at, end);
  }
  static bool are_much(std::uintptr_t at, std::uintptr_t end) {
    return !is_wide() || end - at < sizeof(Wide) ? are(at, end) : are_wide(at, end);
  }

  // Before the first of these: whether the processor has lanes of 32 bytes.
  static void open() { wide_lanes.set(has_wide_lanes() ? 1 : 0); }

 private:
  using Half = std::uint64_t __attribute__((may_alias));
  using Lane = std::uint64_t __attribute__((vector_size(16), may_alias));
  using Wide = std::uint64_t __attribute__((vector_size(32)));
  // One that lies anywhere.
  struct __attribute__((packed, may_alias)) WideAt {
    Wide lanes;
  };

  static bool is_wide() { return wide_lanes.get() != 0; }

  // The last lane shares bytes with the one before.
  HZ_WIDE static void write_wide(std::uintptr_t at, std::uintptr_t end) {
    constexpr std::size_t kBytes = sizeof(Wide);
    for (; at + 8 * kBytes <= end; at += 8 * kBytes) {
      WideAt* const row = wide(at);
      row[0].lanes = row[1].lanes = row[2].lanes = row[3].lanes = Wide{};
      row[4].lanes = row[5].lanes = row[6].lanes = row[7].lanes = Wide{};
    }
    for (; at + kBytes <= end; at += kBytes) wide(at)->lanes = Wide{};
    wide(end - kBytes)->lanes = Wide{};
  }
  HZ_WIDE static bool are_wide(std::uintptr_t at, std::uintptr_t end) {
    constexpr std::size_t kBytes = sizeof(Wide);
    Wide any = wide(end - kBytes)->lanes;
    for (; at + 8 * kBytes <= end; at += 8 * kBytes) {
      const WideAt* const row = wide(at);
      any |= row[0].lanes | row[1].lanes | row[2].lanes | row[3].lanes;
      any |= row[4].lanes | row[5].lanes | row[6].lanes | row[7].lanes;
    }
    for (; at + kBytes <= end; at += kBytes) any |= wide(at)->lanes;
    return (any[0] | any[1] | any[2] | any[3]) == 0;
  }

  HZ_INLINE static Half& half(std::uintptr_t at) { return *static_cast<Half*>(pointer(at)); }
  HZ_INLINE static Lane& lane(std::uintptr_t at) { return *static_cast<Lane*>(pointer(at)); }
  static WideAt* wide(std::uintptr_t at) { return static_cast<WideAt*>(pointer(at)); }

  static inline constinit OnceWord<unsigned> wide_lanes{0};
};

}  // namespace hz
