// SPDX-License-Identifier: Apache-2.0
//
// The tables of all boxes, one row per granule, side by side at the arena's start: how much room they take, and who
// gets which part. Called once, when the heap opens.
#pragma once

#include "heap/state.hpp"

namespace hz {

// What a box keeps a granule, and what of it is for slots below 128 bytes alone: untouched under others, so no limit
// counts it. 0 for a box that keeps nothing.
template <class Box>
inline constexpr std::size_t kTableBytes = 0;
template <class Box>
inline constexpr std::size_t kDenseBytes = 0;
template <class Box>
requires requires { Box::kTableBytesPerGranule; }
inline constexpr std::size_t kTableBytes<Box> = Box::kTableBytesPerGranule;
template <class Box>
requires requires { Box::kDenseBytes; }
inline constexpr std::size_t kDenseBytes<Box> = Box::kDenseBytes;

template <class Line>
struct Tables {
  using Source = typename Line::Source;
  using S = State<Line>;
  using Global = typename S::Global;

  static constexpr std::size_t kRoute = kTableBytes<typename Line::Route>;
  static constexpr std::size_t kGuard = kTableBytes<typename Line::Guard>;
  static constexpr std::size_t kPool = kTableBytes<typename Line::Pool>;
  static constexpr std::size_t kRemote = kTableBytes<typename Line::Remote>;
  static constexpr std::size_t kBytesPerGranule = kRoute + kGuard + kPool + kRemote;
  // Of these, what is touched where slots are not of the smallest.
  static constexpr std::size_t kUsualBytesPerGranule = kBytesPerGranule - kDenseBytes<typename Line::Guard> -
                                                       kDenseBytes<typename Line::Pool> -
                                                       kDenseBytes<typename Line::Remote>;

  // The source is open; the route opens itself last, when everything else is ready.
  static void open(Global& g) {
    const std::uintptr_t base = Source::base(g.source);
    const std::size_t granules = Source::bytes(g.source) >> kGranuleShift;
    std::uintptr_t at = Source::tables(g.source) + granules * kRoute;
    if constexpr (kGuard != 0) {
      Line::Guard::open(base, at, granules);
      share<typename Line::Guard>(g, at, granules);
    }
    at += granules * kGuard;
    Line::Pool::open(S::shelves.pool, base, at, granules);
    share<typename Line::Pool>(g, at, granules);
    at += granules * kPool;
    if constexpr (kRemote != 0) {
      Line::Remote::open(S::shelves.remote, base, at, granules);
      share<typename Line::Remote>(g, at, granules);
    }
  }

 private:
  // A box's first tables, which say nothing of a free granule, are the source's shadows: their pages may go back with
  // its own.
  template <class Box>
  static void share(Global& g, std::uintptr_t at, std::size_t granules) {
    for (const std::size_t stride : Box::kShadows) {
      Source::shadow(g.source, at, stride, stride != kDenseBytes<Box>);
      at += granules * stride;
    }
  }
};

}  // namespace hz
