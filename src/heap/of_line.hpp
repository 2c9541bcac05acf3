// SPDX-License-Identifier: Apache-2.0
//
// What a library asks of its line: a heap, first-class heaps, what a library does beside allocating, how the
// heap's state is laid out, and a walk over all blocks. heap.hpp, heaps.hpp, library.hpp, layout.hpp and
// walk.hpp make them for a line of boxes; a line that is built otherwise (hz7) specialises them. Called by
// src/export alone.
#pragma once

#include <cstdint>

namespace hz {

using HeapHandle = std::uint64_t;  // of a first-class heap; 0: none

template <class Line>
struct Heap;

template <class Line>
struct Heaps;

template <class Line>
struct Library;

template <class Line>
struct LayoutOf;

template <class Line>
struct Walk;

}  // namespace hz
