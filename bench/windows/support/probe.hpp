// SPDX-License-Identifier: Apache-2.0
//
// Which allocator serves the lanes of this program, on Windows. Call it after all measuring: the loader may
// allocate.
#pragma once

#include <windows.h>

#include "hakozuna/hakozuna.h"

namespace hz::bench {

struct AllocatorProbe {
  const char* name;  // the line's name for ours, else the library's file name
  const char* file;  // that library, or the program itself, which a line was linked into
};

inline AllocatorProbe probe_allocator() {
  static char path[MAX_PATH + 1];
  const HMODULE library = GetModuleHandleA(hz_line());
  return {hz_line(), GetModuleFileNameA(library, path, MAX_PATH) != 0 ? path : "unknown"};
}

}  // namespace hz::bench
