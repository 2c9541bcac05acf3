// SPDX-License-Identifier: Apache-2.0
// memalign and aligned_alloc serve what glibc serves: an alignment that is no power of two is rounded up to
// one.
// prints: ok
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  static const size_t asked[] = {0, 1, 3, 24, 48, 100, 4095};
  for (unsigned i = 0; i < sizeof asked / sizeof *asked; ++i) {
    size_t rounded = 16;
    while (rounded < asked[i]) rounded *= 2;
    char* blocks[2] = {memalign(asked[i], 1000), aligned_alloc(asked[i], 1000)};
    for (int k = 0; k < 2; ++k) {
      if (!blocks[k] || (uintptr_t)blocks[k] % rounded != 0) {
        printf("alignment %zu: %p\n", asked[i], (void*)blocks[k]);
        return 1;
      }
      memset(blocks[k], 1, 1000);
      free(blocks[k]);
    }
  }
  puts("ok");
  return 0;
}
