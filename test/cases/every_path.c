// SPDX-License-Identifier: Apache-2.0
// Every path of a heap in one program: small, large and huge blocks, realloc, threads, a trim, an idle
// second.
// prints: ok
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kBlocks = 3000, kRounds = 6, kThreads = 3 };

static void use(uint32_t seed) {
  static __thread void* blocks[kBlocks];
  for (int round = 0; round < kRounds; ++round) {
    for (uint32_t i = 0; i < kBlocks; ++i) {
      seed = seed * 1103515245 + 12345;
      const uint32_t most = i % 100 == 0 ? 3000000 : i % 10 == 0 ? 40000 : 700;
      blocks[i] = malloc((seed >> 8) % most + 1);
    }
    for (uint32_t i = 0; i < kBlocks; i += 7) blocks[i] = realloc(blocks[i], i * 977 % 5000000 + 1);
    for (uint32_t i = 0; i < kBlocks; ++i) free(blocks[i]);
  }
}

static void* run(void* seed) {
  use((uint32_t)(uintptr_t)seed);
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  for (uintptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, run, (void*)(i + 1));
  use(99);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  malloc_trim(0);
  usleep(300000);
  use(7);
  puts("ok");
  return 0;
}
