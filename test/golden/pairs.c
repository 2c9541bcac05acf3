/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates and frees one block of 64 bytes, N times, after a warm-up. Run by golden.sh, which counts the instructions
 * spent in the library; a run with 2N less a run with N leaves nothing but the pairs. */
#include <stdlib.h>

static void pairs(unsigned long count) {
  for (; count != 0; --count) {
    void* block = malloc(64);
    __asm__ volatile("" : "+r"(block) : : "memory");
    free(block);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  pairs(1000);
  pairs(strtoul(argv[1], NULL, 10));
  return 0;
}
