// SPDX-License-Identifier: Apache-2.0
// Blocks of several classes, and a large one, come and go.
#include <hakozuna/hakozuna.h>

enum { kBlocks = 100 };

int use(void);
int use(void) {
  void* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) blocks[i] = hz_malloc((size_t)(100 * i + 1));
  for (int i = 0; i < kBlocks; ++i) hz_free(blocks[i]);
  hz_free(hz_malloc(10000000));
  return 1;
}
