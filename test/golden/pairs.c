/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates and frees one block, N times, in each way that golden.txt has a column for, each after a warm-up.
 * Run by golden.sh under callgrind, which counts inside of pairs_... alone and writes a file after each call
 * of one; the names and the order are those of the columns. A second number chooses one way, without a
 * warm-up: for golden_emulated.sh. C++'s operators are asked for by name: a C
 * program has no C++ runtime. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

static void* (*new_)(size_t);
static void (*delete_)(void*);
static void (*sized_delete)(void*, size_t);
static void* (*aligned_new)(size_t, size_t);
static void (*aligned_sized_delete)(void*, size_t, size_t);

#define OPAQUE(block) __asm__ volatile("" : "+r"(block) : : "memory")
#define PAIRS(name, allocation, release)                                \
  __attribute__((noinline)) static void pairs_##name(unsigned long n) { \
    for (; n != 0; --n) {                                               \
      void* block = allocation;                                         \
      OPAQUE(block);                                                    \
      release;                                                          \
    }                                                                   \
  }
static void* kept;

PAIRS(malloc, malloc(64), free(block))
PAIRS(new, new_(64), delete_(block))
PAIRS(sized, new_(64), sized_delete(block, 64))
PAIRS(aligned, aligned_new(64, 64), aligned_sized_delete(block, 64, 64))
PAIRS(calloc, calloc(1, 64), free(block))
PAIRS(realloc, kept, kept = realloc(block, n % 2 == 0 ? 64 : 50))
PAIRS(usable, kept, malloc_usable_size(block))

#define FIND(function, name) (*(void**)(&(function)) = dlsym(RTLD_DEFAULT, name)) == NULL

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  if (FIND(new_, "_Znwm") || FIND(delete_, "_ZdlPv") || FIND(sized_delete, "_ZdlPvm") ||
      FIND(aligned_new, "_ZnwmSt11align_val_t") || FIND(aligned_sized_delete, "_ZdlPvmSt11align_val_t"))
    return 3;
  void (*const all[])(unsigned long) = {pairs_malloc, pairs_new,     pairs_sized, pairs_aligned,
                                        pairs_calloc, pairs_realloc, pairs_usable};
  kept = malloc(64);
  const unsigned long n = strtoul(argv[1], NULL, 10);
  const size_t chosen = argc == 3 ? strtoul(argv[2], NULL, 10) : 0; /* from 1 */
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    if (chosen == 0) all[i](1000);
    if (chosen == 0 || chosen == i + 1) all[i](n);
  }
  free(kept);
  return 0;
}
