// SPDX-License-Identifier: Apache-2.0
//
// The tables of all boxes, one row per granule, which the source sets aside: the lengths of their rows, and
// the box of each. Called once, when the heap opens. The source calls it under its lock when the route covers
// more.
#pragma once

#include <iterator>

#include "heap/state/state.hpp"

namespace hz {

// What a box keeps a granule, and what of it is for slots below 128 bytes alone: untouched under others, so
// no limit counts it. 0 for a box that keeps nothing.
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

template <class Box>
inline constexpr unsigned kLastingTables = 0;
template <class Box>
requires requires { Box::kLasting; }
inline constexpr unsigned kLastingTables<Box> = Box::kLasting;

template <class Line>
struct Tables {
  using Source = typename Line::Source;
  using Route = typename Line::Route;
  using S = State<Line>;
  using Global = typename S::Global;

  static constexpr std::size_t kBytesPerGranule = kTableBytes<Route> + kTableBytes<typename Line::Guard> +
                                                  kTableBytes<typename Line::Pool> +
                                                  kTableBytes<typename Line::Exchange>;
  // Of these, what is touched where slots are not of the smallest.
  static constexpr std::size_t kUsualBytesPerGranule = kBytesPerGranule - kDenseBytes<typename Line::Guard> -
                                                       kDenseBytes<typename Line::Pool> -
                                                       kDenseBytes<typename Line::Exchange>;

  // False if there is no memory. Nothing has tags yet.
  static bool open(Global& g) {
    static constexpr Shapes shapes;  // a copy would call the C library
    if (!Source::open(g.source, shapes.of, shapes.count)) return false;
    const std::uintptr_t base = Source::base(g.source);
    const std::size_t granules = Source::bytes(g.source) >> kGranuleShift;
    const auto table = [&](unsigned i) { return Source::table(g.source, i); };
    if constexpr (shapes.guard != 0) Line::Guard::open(base, table(shapes.guard), granules);
    Line::Pool::open(S::shelves.pool, base, table(shapes.pool), granules);
    if constexpr (shapes.exchange != 0)
      Line::Exchange::open(S::shelves.exchange, base, table(shapes.exchange), granules);
    return true;
  }

  // Last, when everything else is ready: from now on addresses of the arena have tags.
  static void open_route(Global& g) {
    Route::open(g.route, Source::base(g.source), 0);
    Source::tell(g.source, &covered);
  }

 private:
  static void covered(std::size_t bytes) { Route::cover(S::global.route, bytes); }

  // The route's table, then those of each box side by side, in the order in which it counts on them.
  struct Shapes {
    TableShape of[Source::kMostTables];
    unsigned count = 0, guard = 0, pool = 0, exchange = 0;

    constexpr Shapes() {
      of[count++] = {.row_bytes = kTableBytes<Route>, .lasts = true, .counts = true};
      guard = add<typename Line::Guard>();
      pool = add<typename Line::Pool>();
      exchange = add<typename Line::Exchange>();
    }
    // The number of its first table, 0 if it has none.
    template <class Box>
    constexpr unsigned add() {
      if constexpr (kTableBytes<Box> == 0) {
        return 0;
      } else {
        const unsigned first = count;
        constexpr auto tables = static_cast<unsigned>(std::size(Box::kTables));
        for (unsigned i = 0; i < tables; ++i)
          of[count++] = {.row_bytes = Box::kTables[i],
                         .lasts = i + kLastingTables<Box> >= tables,
                         .counts = Box::kTables[i] != kDenseBytes<Box>};
        return first;
      }
    }
  };
};

}  // namespace hz
