// SPDX-License-Identifier: Apache-2.0
//
// What a library asks of its line: a heap, and what a library does beside allocating. heap.hpp and
// library.hpp make both for a line of boxes; a line that is built otherwise (hz7) specialises them. Called by
// src/export alone.
#pragma once

namespace hz {

template <class Line>
struct Heap;

template <class Line>
struct Library;

}  // namespace hz
