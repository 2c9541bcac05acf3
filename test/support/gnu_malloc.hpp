// SPDX-License-Identifier: Apache-2.0
//
// The GNU functions that describe and tune a heap, declared also where the C library is another one: our
// libraries have them with each. In place of <malloc.h>.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdio>

namespace hz_test {
#if defined(__GLIBC__)
inline constexpr bool kGlibc = true;
#else
inline constexpr bool kGlibc = false;
#endif
}  // namespace hz_test

#if !defined(__GLIBC__)

inline constexpr int M_MXFAST = 1, M_TRIM_THRESHOLD = -1, M_TOP_PAD = -2, M_MMAP_THRESHOLD = -3,
                     M_MMAP_MAX = -4, M_CHECK_ACTION = -5, M_PERTURB = -6, M_ARENA_TEST = -7,
                     M_ARENA_MAX = -8;

extern "C" {
struct mallinfo {
  int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo2 {
  std::size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
// Weak: who is served by preload is linked with a C library that has none of them.
__attribute__((weak)) struct mallinfo mallinfo();
__attribute__((weak)) struct mallinfo2 mallinfo2();
__attribute__((weak)) int malloc_info(int options, FILE* stream);
__attribute__((weak)) void malloc_stats();
__attribute__((weak)) int malloc_trim(std::size_t pad);
__attribute__((weak)) int mallopt(int parameter, int value);
__attribute__((weak)) void* pvalloc(std::size_t size);
}

#endif
