// SPDX-License-Identifier: Apache-2.0
//
// The smallest malloc there is, for the launcher's tests of programs and preloads that bring one: nothing is
// reused.
#include <stddef.h>
#include <string.h>

static _Alignas(16) char memory[1 << 20];
static size_t used;

void* malloc(size_t size) {
  const size_t place = __atomic_fetch_add(&used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
  if (size > sizeof memory || place + size + 16 > sizeof memory) return NULL;
  memcpy(memory + place, &size, sizeof size);
  return memory + place + 16;
}

void* calloc(size_t count, size_t size) { return malloc(count * size); }  // static memory is zero

void* realloc(void* old, size_t size) {
  char* block = malloc(size);
  size_t old_size = 0;
  if (old != NULL) memcpy(&old_size, (char*)old - 16, sizeof old_size);
  if (block != NULL && old != NULL) memcpy(block, old, old_size < size ? old_size : size);
  return block;
}

void free(void* block) { (void)block; }
