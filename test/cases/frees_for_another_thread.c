// SPDX-License-Identifier: Apache-2.0
// In a small process a thread that frees for another one keeps slots in its cache. (Each of its flushes
// returned the whole cache: 7,000 instructions, and a flush for every second free.)
//
// lines: hakozuna hz3 hz4 hz5 hz6
// run: HZ_STATS=1
// prints: flushes=[0-9]{1,4} remote
// alone
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBlocks = 900, kRounds = 60 };  // 108,000 frees
static void* blocks[2 * kBlocks];
static pthread_barrier_t barrier;

static unsigned state = 1;
static unsigned next(unsigned below) {
  state = state * 1103515245 + 12345;
  return (state >> 16) % below;
}
static void fill(void** from, unsigned first) {
  for (int i = 0; i < kBlocks; ++i) from[i] = malloc(280 + (first + (unsigned)i * 37) % 720);
}
static void* other(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    fill(blocks, (unsigned)i);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_barrier_init(&barrier, NULL, 2) != 0 || pthread_create(&thread, NULL, other, NULL) != 0)
    return 77;
  for (int i = 0; i < kRounds; ++i) {
    fill(blocks + kBlocks, (unsigned)i);
    pthread_barrier_wait(&barrier);
    for (unsigned left = 2 * kBlocks; left != 0; --left) {
      const unsigned one = next(left);
      free(blocks[one]);
      blocks[one] = blocks[left - 1];
    }
    pthread_barrier_wait(&barrier);
  }
  pthread_join(thread, NULL);
  return 0;
}
