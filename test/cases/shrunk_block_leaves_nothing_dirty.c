// SPDX-License-Identifier: Apache-2.0
//
// What a large block loses when it shrinks goes back to the system at once, and counts as gone.
//
// prints: ok
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char* block = malloc(100 << 20);
  if (block == NULL) return 77;
  memset(block, 1, 100 << 20);
  const size_t before = mallinfo2().keepcost;
  char* const smaller = realloc(block, 10 << 20);
  const size_t after = mallinfo2().keepcost;
  free(smaller);
  if (after > before + (1 << 20)) return printf("%zu bytes are said to be there\n", after - before), 1;
  puts("ok");
  return 0;
}
