// SPDX-License-Identifier: Apache-2.0
// A block on a guarded page has the bytes that were asked for, and no more: what hz_good_size promises of a
// size may be written, and is a size to free with.
// run: HZ_GUARD_SAMPLE=1
// run: HZ_GUARD_SAMPLE=3
// run: HZ_GUARD_SAMPLE=0
// alone
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang 14 ends with a signal at a constant 0.
static volatile size_t no_alignment = 0;

int main(void) {
  size_t (*good_size)(size_t) = (size_t(*)(size_t))dlsym(RTLD_DEFAULT, "hz_good_size");
  void (*free_sized)(void*, size_t) = (void (*)(void*, size_t))dlsym(RTLD_DEFAULT, "free_sized");
  void (*free_aligned)(void*, size_t, size_t) =
      (void (*)(void*, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
  if (good_size == NULL || free_sized == NULL || free_aligned == NULL) return puts("ok"), 0;  // without us
  for (size_t size = 1; size < 9000; size += 1 + size / 9) {
    char* const block = malloc(size);
    memset(block, 1, good_size(size));
    free_sized(block, good_size(size));
    void* const other = aligned_alloc(no_alignment, size);  // as the C library takes it
    free_aligned(other, 0, size);
    void* smaller = aligned_alloc(no_alignment, 2 * size);
    smaller = realloc(smaller, size + size / 5);
    free_aligned(smaller, 0, size + size / 5);
  }
  puts("ok");
  return 0;
}
