// SPDX-License-Identifier: Apache-2.0
// calloc returns zeroes on a guarded page that the program wrote to after its free.
// lines: hakozuna hz3 hz3-fast hz4 hz5 hz6 hz8 secure
// run: HZ_GUARD_SAMPLE=1 HZ_ON_INVALID=report
// prints: E08 use-after-free
// prints: ok
// alone
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char* const block = malloc(512);
  free(block);
  memset(block, 'A', 512);
  for (int i = 0; i < 1000; ++i) {
    char* const zeroes = calloc(1, 512);
    for (int at = 0; at < 512; ++at)
      if (zeroes[at] != 0) return printf("calloc %d: byte %d is %d\n", i, at, zeroes[at]), 1;
    free(zeroes);
  }
  puts("ok");
  return 0;
}
