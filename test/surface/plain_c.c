/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in C alone. free(NULL) is the first thing it does, before any constructor has run; then it
 * allocates, and at the end it makes sure that no C++ runtime came along with the allocator. Exit code 0 if
 * all is well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* early_block;

// musl has no .preinit_array.
#ifdef __GLIBC__
#define FIRST
#else
#define FIRST __attribute__((constructor(101)))
#endif
FIRST static void first_of_all(void) {
  free(NULL);
  early_block = malloc(100);
  free(malloc(1000));
}

#ifdef __GLIBC__
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = first_of_all;
#endif

static int find_cxx(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  if (strstr(info->dlpi_name, "libstdc++") != NULL || strstr(info->dlpi_name, "libc++") != NULL)
    *(int*)found = 1;
  return 0;
}

static int fail(const char* why) {
  fprintf(stderr, "plain_c: %s\n", why);
  return 1;
}

int main(void) {
  const char* expected = getenv("HZ_TEST_LINE");
  if (expected == NULL) return fail("HZ_TEST_LINE must name the line that serves this test");
  if (strcmp(expected, "libc") != 0) {
    const char* (*line)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "hz_line");
    int (*owns)(const void*) = (int (*)(const void*))dlsym(RTLD_DEFAULT, "hz_owns");
    if (line == NULL || owns == NULL || strcmp(line(), expected) != 0)
      return fail("not served by the expected line");
    if (owns(early_block) != 1) return fail("the early block is not ours");
  }
  if (early_block == NULL) return fail("no early block");
  free(early_block);

  enum { kCount = 20000 };
  static unsigned char* blocks[kCount];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCount; ++i) {
      size_t size = (size_t)(i % 3000) + 1;
      blocks[i] = malloc(size);
      if (blocks[i] == NULL) return fail("malloc");
      memset(blocks[i], i & 0xFF, size);
    }
    for (int i = 0; i < kCount; ++i) {
      size_t size = (size_t)(i % 3000) + 1;
      if (blocks[i][0] != (i & 0xFF) || blocks[i][size - 1] != (i & 0xFF))
        return fail("a block was overwritten");
      free(blocks[i]);
    }
  }

  int cxx = 0;
  dl_iterate_phdr(find_cxx, &cxx);
  if (cxx) return fail("a C++ runtime was loaded");
  puts("ok");
  return 0;
}
