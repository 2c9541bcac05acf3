// SPDX-License-Identifier: Apache-2.0
// Line secure, where free blocks were written to by the hundred and the program goes on: each such block
// stays out of circulation, and no block is handed out twice, nor two that overlap. (A bin whose first block
// was refused was taken for an empty one, and filled once more beyond its end.)
// lines: secure
// run: HZ_ON_INVALID=report
// alone
// prints: ok
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kFreed = 20000, kBlocks = 60000 };
static unsigned char* freed[kFreed];
static struct {
  uintptr_t at;
  size_t size;
} blocks[kBlocks];

static int by_place(const void* one, const void* other) {
  const uintptr_t a = *(const uintptr_t*)one, b = *(const uintptr_t*)other;
  return a < b ? -1 : a > b;
}

int main(void) {
  static const size_t kSizes[] = {48, 16, 96, 200, 400, 1000};
  for (int i = 0; i < kFreed; ++i) freed[i] = malloc(48);
  for (int i = 0; i < kFreed; ++i) free(freed[i]);
  for (int i = 0; i < kFreed; i += 2) *(volatile unsigned char*)(freed[i] + 24) = 7;
  for (int i = 0; i < kBlocks; ++i) {
    const size_t size = i < kBlocks / 2 ? 48 : kSizes[i % 6];
    void* const block = malloc(size);
    if (block == NULL) return puts("no memory"), 1;
    memset(block, 1, size);
    blocks[i].at = (uintptr_t)block;
    blocks[i].size = size;
  }
  qsort(blocks, kBlocks, sizeof *blocks, &by_place);
  for (int i = 1; i < kBlocks; ++i)
    if (blocks[i - 1].at + blocks[i - 1].size > blocks[i].at) return puts("two blocks overlap"), 1;
  for (int i = 0; i < kBlocks; ++i) free((void*)blocks[i].at);
  malloc_trim(0);
  puts("ok");
  return 0;
}
