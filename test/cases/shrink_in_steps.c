// SPDX-License-Identifier: Apache-2.0
// A block that becomes smaller by small steps stays where it is, but for a few moves, and keeps its bytes.
// (Line secure copied a large block at each step: 600 us for 2 MB.) It may grow again where it is.
//
// prints: ok
// seconds: 20
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const size_t kFrom = 2000000, kTo = 100000, kStep = 128;
static const double kMost = 1;  // seconds of a processor; a copy at each step takes 4

static int is_marked(const unsigned char* block, size_t size) {
  for (size_t i = 0; i < size; i += 4093)
    if (block[i] != (unsigned char)(i / 4093)) return 0;
  return 1;
}

int main(void) {
  unsigned char* block = malloc(kFrom);
  if (block == NULL) return 1;
  for (size_t i = 0; i < kFrom; i += 4093) block[i] = (unsigned char)(i / 4093);
  const clock_t began = clock();
  unsigned moves = 0;
  for (size_t size = kFrom; size >= kTo; size -= kStep) {
    unsigned char* smaller = realloc(block, size);
    if (smaller == NULL) return puts("a shrink failed"), 1;
    moves += smaller != block;
    block = smaller;
  }
  const double taken = (double)(clock() - began) / CLOCKS_PER_SEC;
  if (!is_marked(block, kTo)) return puts("bytes are lost"), 1;
  if (taken > kMost || moves > 20) return printf("%.2f s, %u moves\n", taken, moves), 1;
  for (int i = 0; i < 20; ++i) {
    block = realloc(block, kFrom);
    if (block == NULL || !is_marked(block, kTo)) return puts("bytes are lost in growth"), 1;
    for (size_t at = kTo; at < kFrom; ++at) block[at] = 1;
    block = realloc(block, kTo);
    if (block == NULL || !is_marked(block, kTo)) return puts("bytes are lost in a shrink"), 1;
  }
  free(block);
  puts("ok");
  return 0;
}
