// SPDX-License-Identifier: Apache-2.0
//
// Every box of the role source. Add a box here and it is held to the contract.
#pragma once

#include <gtest/gtest.h>

#include "box/source/arena.hpp"

namespace hz_test {

// As where the system refuses the places that it would grow at.
struct ReservedArena : hz::Arena {
  static bool open(Global& g, const hz::TableShape* shapes, unsigned count) {
    return hz::Arena::open(g, shapes, count, false);
  }
};

using SourceBoxes = ::testing::Types<hz::Arena, ReservedArena>;

// A byte a granule for the route, and two tables for others.
inline constexpr hz::TableShape kTableShapes[] = {{1, true, true}, {24, false, true}, {600, false, true}};
inline constexpr unsigned kTables = 3;
inline constexpr std::size_t kTableBytes = 625;

}  // namespace hz_test
