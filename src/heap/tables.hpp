// SPDX-License-Identifier: Apache-2.0
//
// The tables of all boxes, one row per granule, side by side at the arena's start: how much room they take, and who
// gets which part. Called once, when the heap opens.
#pragma once

#include "heap/state.hpp"

namespace hz {

// 0 for a box that keeps none.
template <class Box>
consteval std::size_t table_bytes() {
  if constexpr (requires { Box::kTableBytesPerGranule; }) {
    return Box::kTableBytesPerGranule;
  } else {
    return 0;
  }
}

// What a guard keeps for the smallest slots alone.
template <class Guard>
consteval std::size_t dense_bytes() {
  if constexpr (requires { Guard::kDenseBytes; }) {
    return Guard::kDenseBytes;
  } else {
    return 0;
  }
}

template <class Line>
struct Tables {
  using Source = typename Line::Source;
  using S = State<Line>;
  using Global = typename S::Global;

  static constexpr std::size_t kRoute = table_bytes<typename Line::Route>();
  static constexpr std::size_t kGuard = table_bytes<typename Line::Guard>();
  static constexpr std::size_t kPool = table_bytes<typename Line::Pool>();
  static constexpr std::size_t kRemote = table_bytes<typename Line::Remote>();
  static constexpr std::size_t kBytesPerGranule = kRoute + kGuard + kPool + kRemote;
  // Of these, what is touched where blocks are not of the smallest.
  static constexpr std::size_t kUsualBytesPerGranule = kBytesPerGranule - dense_bytes<typename Line::Guard>();

  // The source is open; the route opens itself last, when everything else is ready. Tables that say nothing of a free
  // granule are the source's shadows: their pages may go back with its own.
  static void open(Global& g) {
    const std::uintptr_t base = Source::base(g.source);
    const std::size_t granules = Source::bytes(g.source) >> kGranuleShift;
    std::uintptr_t at = Source::tables(g.source) + granules * kRoute;
    if constexpr (kGuard != 0) {
      Line::Guard::open(base, at, granules);
      Source::shadow(g.source, at, Line::Guard::kDenseBytes, false);  // touched under the smallest slots alone
      Source::shadow(g.source, at + granules * Line::Guard::kDenseBytes, Line::Guard::kWideBytes, true);
    }
    at += granules * kGuard;
    Line::Pool::open(S::shelves.pool, base, at, granules);
    Source::shadow(g.source, at, Line::Pool::kBitmapBytes, true);
    Source::shadow(g.source, at + granules * Line::Pool::kBitmapBytes, kPool - Line::Pool::kBitmapBytes, true);
    at += granules * kPool;
    if constexpr (kRemote != 0) {
      Line::Remote::open(S::shelves.remote, base, at, granules);
      Source::shadow(g.source, at, Line::Remote::kBitmapBytes, true);
    }
  }
};

}  // namespace hz
