// SPDX-License-Identifier: Apache-2.0
// A heap profile takes few of the mappings that the system lets a process have: 100,000 blocks live with one
// sample in two, and then large ones between guard pages. (In line secure there was no memory after 37,000.)
//
// run: HZ_PROFILE_HEAP=100 HZ_PROFILE_HEAP_FILE=/dev/null
// lines: hakozuna hz8 secure
// prints: ok
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 100000, kBytes = 100, kLarge = 2000, kLargeBytes = 50000 };

static char *blocks[kBlocks], *large[kLarge];

int main(void) {
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(kBytes);
    if (blocks[i] == NULL) return printf("no memory for block %d\n", i), 1;
    memset(blocks[i], i, kBytes);
  }
  for (int i = 0; i < kLarge; ++i) {
    large[i] = malloc(kLargeBytes);
    if (large[i] == NULL) return printf("no memory for large block %d\n", i), 1;
    large[i][0] = 1;
  }
  for (int i = 0; i < kBlocks; ++i) {
    if (blocks[i][kBytes - 1] != (char)i) return puts("a block has changed"), 1;
    free(blocks[i]);
  }
  for (int i = 0; i < kLarge; ++i) free(large[i]);
  puts("ok");
  return 0;
}
