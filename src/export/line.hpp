// SPDX-License-Identifier: Apache-2.0
//
// The line that this library is built from; the build names it (HZ_LINE, HZ_LINE_HEADER).
#pragma once

#include HZ_LINE_HEADER
#include "heap/library.hpp"

namespace hz {
using ThisLine = HZ_LINE;
using ThisHeap = Heap<ThisLine>;
using ThisLibrary = Library<ThisLine>;
}  // namespace hz
