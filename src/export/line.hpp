// SPDX-License-Identifier: Apache-2.0
//
// The line that this library is built from; the build names it (HZ_LINE, HZ_LINE_HEADER).
#pragma once

#include HZ_LINE_HEADER
#include "heap/control.hpp"
#include "heap/library.hpp"

namespace hz {
using ThisLine = HZ_LINE;
using ThisHeap = Heap<ThisLine>;
using TheseHeaps = Heaps<ThisLine>;
using ThisLibrary = Library<ThisLine>;

void begin_control();  // direct_ctl.cpp
}  // namespace hz
