// SPDX-License-Identifier: Apache-2.0
//
// What <malloc.h> of the GNU C library declares of its functions that describe and tune a heap, also where
// the C library is another one: our libraries have the same surface with each. For src/export alone.
#pragma once

#include <malloc.h>
#include <stdio.h>

#if !defined(__GLIBC__)
#pragma GCC system_header  // a function and a type share a name, as they do there

struct mallinfo {
  int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo2 {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
extern "C" struct mallinfo mallinfo();
extern "C" struct mallinfo2 mallinfo2();
inline constexpr int M_MXFAST = 1, M_TRIM_THRESHOLD = -1, M_TOP_PAD = -2, M_MMAP_THRESHOLD = -3,
                     M_MMAP_MAX = -4, M_CHECK_ACTION = -5, M_PERTURB = -6, M_ARENA_TEST = -7,
                     M_ARENA_MAX = -8;

#endif
