// SPDX-License-Identifier: Apache-2.0
// A program may have a malloc of its own, as those do that are linked with a static jemalloc or tcmalloc.
// These lack reallocarray. The C library's calls the program's realloc, and so does ours: the program's free
// gets blocks of its own malloc alone.
// prints: ok
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char pool[1 << 22];
static size_t used;
static unsigned foreign;

static int is_own(const void* block) {
  return (const char*)block >= pool && (const char*)block < pool + sizeof pool;
}

void* malloc(size_t size) {
  const size_t bytes = ((size + 15) & ~(size_t)15) + 16;
  const size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
  if (size > sizeof pool || at + bytes > sizeof pool) return errno = ENOMEM, NULL;
  memcpy(pool + at, &size, sizeof size);
  return pool + at + 16;
}

void free(void* block) {
  if (block != NULL && !is_own(block)) ++foreign;
}

void* calloc(size_t count, size_t size) { return malloc(count * size); }

void* realloc(void* block, size_t size) {
  void* moved = malloc(size);
  if (block == NULL || moved == NULL) return moved;
  if (!is_own(block)) return ++foreign, moved;
  size_t before = 0;
  memcpy(&before, (char*)block - 16, sizeof before);
  memcpy(moved, block, before < size ? before : size);
  return moved;
}

int main(void) {
  char* block = reallocarray(NULL, 10, 10);
  const int first = is_own(block);
  strcpy(block, "text");
  block = reallocarray(block, 100, 10);
  const int kept = is_own(block) && strcmp(block, "text") == 0;
  errno = 0;
  volatile size_t many = SIZE_MAX / 2;
  const int refused = reallocarray(block, many, 3) == NULL && errno == ENOMEM;
  free(block);
  if (first && kept && refused && foreign == 0)
    puts("ok");
  else
    printf("wrong: first %d, kept %d, refused %d, foreign %u\n", first, kept, refused, foreign);
  return 0;
}
