// SPDX-License-Identifier: Apache-2.0
// realloc to a smaller size never fails and changes no other block, also where no memory is left to move to:
// of blocks in slots, in runs, in a first-class heap, on guarded pages, and of samples of the heap profile.
// run: HZ_LIMIT_HARD=6M process
// run: HZ_LIMIT_HARD=6M heap
// run: HZ_LIMIT_HARD=6M HZ_GUARD_SAMPLE=1 process
// run: HZ_LIMIT_HARD=6M HZ_PROFILE_HEAP=1 HZ_PROFILE_HEAP_FILE=/dev/null process
// prints: ok
// alone
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct hz_heap hz_heap_t;
static hz_heap_t* (*heap_new)(void);
static void* (*heap_malloc)(hz_heap_t*, size_t);
static void* (*heap_realloc)(hz_heap_t*, void*, size_t);
static void (*sized_free)(void*, size_t);
static hz_heap_t* heap;

static void* allocate(size_t size) { return heap != NULL ? heap_malloc(heap, size) : malloc(size); }
static void* resize(void* block, size_t size) {
  return heap != NULL ? heap_realloc(heap, block, size) : realloc(block, size);
}
static int is_filled(const unsigned char* block, int with, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (block[i] != with) return printf("byte %zu is %d, not %d\n", i, block[i], with), 0;
  return 1;
}

enum { kSizes = 7 };
static const size_t sizes[kSizes] = {300, 2000, 4000, 20000, 33000, 70000, 300000};

int main(int count, char** arguments) {
  unsigned char *blocks[kSizes], *beside[kSizes];
  *(void**)&heap_new = dlsym(RTLD_DEFAULT, "hz_heap_new");
  *(void**)&heap_malloc = dlsym(RTLD_DEFAULT, "hz_heap_malloc");
  *(void**)&heap_realloc = dlsym(RTLD_DEFAULT, "hz_heap_realloc");
  *(void**)&sized_free = dlsym(RTLD_DEFAULT, "free_sized");
  if (count > 1 && strcmp(arguments[1], "heap") == 0 && heap_new != NULL) heap = heap_new();
  for (int i = 0; i < kSizes; ++i) {
    blocks[i] = memset(allocate(sizes[i]), 1, sizes[i]);
    beside[i] = memset(allocate(sizes[i]), 7, sizes[i]);
  }
  for (size_t size = 100000; size >= 16; size /= 2)
    while (allocate(size) != NULL) continue;
  for (int i = 0; i < kSizes; ++i) {
    unsigned char* const kept = resize(blocks[i], 100);
    if (kept == NULL) return printf("realloc from %zu to 100 fails\n", sizes[i]), 1;
    if (malloc_usable_size(kept) < 100 || !is_filled(kept, 1, 100)) return 1;
    if (!is_filled(beside[i], 7, sizes[i])) return 1;
    memset(kept, 2, 100);
    sized_free != NULL ? sized_free(kept, 100) : free(kept);
    free(beside[i]);
  }
  puts("ok");
  return 0;
}
