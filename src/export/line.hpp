// SPDX-License-Identifier: Apache-2.0
//
// The line that this library is built from; the build names it (HZ_LINE, HZ_LINE_HEADER).
#pragma once

#include HZ_LINE_HEADER
#include "heap/api/library.hpp"
#include "heap/settings/control.hpp"

namespace hz {
using ThisLine = HZ_LINE;
using ThisHeap = Heap<ThisLine>;
using TheseHeaps = Heaps<ThisLine>;
using ThisLibrary = Library<ThisLine>;

// In direct.cpp for all files of a library, so that a compiler makes the slow paths once. Without an effect
// on a line that specialises them (hz7).
extern template struct Heap<ThisLine>;
extern template struct Heaps<ThisLine>;
extern template struct Library<ThisLine>;

void begin_control();  // direct_ctl.cpp
}  // namespace hz
