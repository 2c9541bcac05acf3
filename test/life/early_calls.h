// SPDX-License-Identifier: Apache-2.0
//
// What is done with malloc at a moment when little else works, and checked when everything does. Included by
// the program and by the libraries of the early tests, each of which records its own moments.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { kEarlyBlocks = 40, kHuge = 3 << 20 };

struct Moment {
  int reached;
  int sound;
  unsigned char* blocks[kEarlyBlocks];
};

static size_t early_size(int i) { return i == kEarlyBlocks - 1 ? (size_t)kHuge : (size_t)(i * i * 53 + 1); }

// The very first call is free(NULL).
static inline void early_calls(struct Moment* moment) {
  free(NULL);
  moment->reached = moment->sound = 1;
  for (int i = 0; i < kEarlyBlocks; ++i) {
    unsigned char* zeroed = calloc(1, early_size(i));
    unsigned char* block = malloc(1 + early_size(i) / 2);
    if (zeroed == NULL || block == NULL || zeroed[0] != 0 || zeroed[early_size(i) - 1] != 0)
      moment->sound = 0;
    block = realloc(block, early_size(i));
    for (size_t at = 0; at < early_size(i); ++at) block[at] = (unsigned char)(i + at);
    free(zeroed);
    moment->blocks[i] = block;
  }
  // So much that it would be worth a thread, could there be one already.
  void* much[20];
  for (int i = 0; i < 20; ++i) much[i] = malloc(kHuge);
  for (int i = 0; i < 20; ++i) free(much[i]);
  void* aligned = memalign(4096, 100);
  if (((size_t)aligned & 4095) != 0) moment->sound = 0;
  free(aligned);
}

// Whether all of it is still there, and all of it ours; frees it.
static inline int early_is_sound(struct Moment* moment, int (*owns)(const void*)) {
  if (!moment->reached || !moment->sound) return 0;
  for (int i = 0; i < kEarlyBlocks; ++i) {
    if (!owns(moment->blocks[i]) || malloc_usable_size(moment->blocks[i]) < early_size(i)) return 0;
    for (size_t at = 0; at < early_size(i); ++at) {
      if (moment->blocks[i][at] != (unsigned char)(i + at)) return 0;
    }
    free(moment->blocks[i]);
  }
  return 1;
}
