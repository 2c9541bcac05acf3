// SPDX-License-Identifier: Apache-2.0
// A library that wraps every function which ours imports from the C library, and allocates in each wrapper:
// at the start, growth, threads, a fork, a purge, the end. The heap holds no lock while it calls any of them.
// run:
// run: HZ_STATS=1 HZ_GUARD_SAMPLE=100 HZ_PROFILE_HEAP=1 HZ_PROFILE_HEAP_FILE=/dev/null
// run: HZ_BACKGROUND=0 HZ_CONTROL=1
// run: HZ_OPTIONS=limit_soft:50%,preset:small HZ_POLICY=observe HZ_PROFILE=/dev/null HZ_STATSS=1
// prints: ok
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlocks = 600, kRounds = 3, kThreads = 3 };

static void use(uint32_t seed) {
  void* blocks[kBlocks];
  for (int round = 0; round < kRounds; ++round) {
    for (uint32_t i = 0; i < kBlocks; ++i) {
      seed = seed * 1103515245 + 12345;
      const uint32_t most = i % 100 == 0 ? 3000000 : i % 10 == 0 ? 40000 : 700;
      blocks[i] = calloc(1, (seed >> 8) % most + 1);
    }
    for (uint32_t i = 0; i < kBlocks; i += 7) blocks[i] = realloc(blocks[i], i * 4885 % 5000000 + 1);
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
  const pid_t child = fork();
  use(99);
  if (child == 0) _exit(0);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  malloc_trim(0);
  usleep(50000);
  use(7);
  puts("ok");
  return 0;
}
