// SPDX-License-Identifier: Apache-2.0
// What hz_walk says of a block may be read, and is not more than the pages that it has.
// run:
// run: HZ_PROFILE_HEAP=10000 HZ_PROFILE_HEAP_FILE=/dev/null
// alone
// prints: ok
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sum;
static int failed;

static int visit(void* block, size_t bytes, void* argument) {
  const size_t usable = malloc_usable_size(block);
  (void)argument;
  for (size_t i = 0; i < bytes; i += 512) sum += ((volatile unsigned char*)block)[i];
  if (bytes != 0) sum += ((volatile unsigned char*)block)[bytes - 1];
  if (bytes < usable || bytes - usable > 65536)
    fprintf(stderr, "wrong: %zu for %zu\n", bytes, usable), failed = 1;
  return 0;
}

int main(void) {
  int (*walk)(int (*)(void*, size_t, void*), void*) =
      (int (*)(int (*)(void*, size_t, void*), void*))dlsym(RTLD_DEFAULT, "hz_walk");
  if (walk == NULL) return puts("ok"), 0;  // without us
  void* volatile blocks[40];
  for (int i = 0; i < 40; ++i) blocks[i] = malloc((size_t)(i % 8) * 40000);
  for (int i = 0; i < 40; i += 3) blocks[i] = realloc(blocks[i], (size_t)(i % 8) * 44000 + 1);
  fflush(stdout);
  walk(visit, NULL);
  for (int i = 0; i < 40; ++i) free(blocks[i]);
  if (!failed) puts("ok");
  return failed;
}
